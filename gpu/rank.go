// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	_ "embed" // the benchmark's kernel
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Rank opens each adapter, measures it and puts the fastest first. bench tells the speed in any unit, more is better; nil
// counts the interactions of bodies by gravity per second. Adapters that cannot be measured are left out; the error tells
// why if none is left. It waits until the context ends at most, whose error is then the selection's.
func (s Selection) Rank(ctx context.Context, bench func(context.Context, *Device) (float64, error)) Selection {
	if s.err != nil {
		return s
	}
	if bench == nil {
		bench = nbody
	}
	found := new(findings)
	if s.found != nil {
		*found = findings{s.found.names, slices.Clip(s.found.errs)}
	}
	speeds := map[*Adapter]float64{}
	var list []*Adapter
	for _, a := range s.list {
		if _, ok := speeds[a]; !ok {
			v, err := measure(ctx, a, bench)
			if cerr := ctx.Err(); cerr != nil {
				s.err, s.list = cerr, nil
				return s
			}
			if err != nil {
				found.errs = append(found.errs, err)
				v = math.NaN()
			}
			speeds[a] = v
		}
		if v := speeds[a]; v == v {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b *Adapter) int { return cmp.Compare(speeds[b], speeds[a]) })
	s.list, s.found = list, found
	s.asked += " Rank(...)"
	return s
}

func measure(ctx context.Context, a *Adapter, bench func(context.Context, *Device) (float64, error)) (float64, error) {
	d, err := a.Open(ctx)
	if err != nil {
		return 0, err
	}
	v, err := bench(ctx, d)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err == nil && !(v >= 0 && v <= math.MaxFloat64) {
		err = fail("Rank", ErrInvalid, "the speed of ", a.Info.Name, " is no number")
	}
	return v, err
}

//go:embed nbody.wgsl
var nbodySource string

// The work of one launch of the benchmark. Large GPUs are busy with as many points; the loop over the bodies stays far below
// what software adapters allow.
const (
	nbodyPoints = 16384
	nbodyBodies = 1024
	nbodyGroup  = 64
)

// How long the benchmark measures at least, and with how many launches at most.
const (
	nbodyTime     = 10 * time.Millisecond
	nbodyLaunches = 4096
)

// nbody measures how many interactions of bodies by gravity the device computes in a second. A device that compiles no WGSL
// is [ErrUnsupported].
func nbody(ctx context.Context, dev *Device) (float64, error) {
	if err := dev.Usable(); err != nil {
		return 0, err
	}
	if !dev.Has(FeatureWGSL) {
		return 0, fail("Rank", ErrUnsupported, dev.info.Name, " compiles no WGSL")
	}
	k, err := dev.Kernel(ctx, KernelDesc{
		Label: "nbody", Source: nbodySource, Bindings: []Access{AccessParams, AccessRead, AccessReadWrite},
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = k.Close() }()
	bodies := nbodyPositions()
	in, err := dev.NewBuffer(uint64(len(bodies)))
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	out, err := dev.NewBuffer(uint64(len(bodies)))
	if err != nil {
		return 0, err
	}
	defer func() { _ = out.Close() }()
	if err := in.Write(0, HostBytes(bodies)); err != nil {
		return 0, err
	}
	params := binary.LittleEndian.AppendUint32(nil, nbodyPoints)
	params = binary.LittleEndian.AppendUint32(params, nbodyBodies)
	params = append(params, make([]byte, 8)...)
	launch := func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := k.Dispatch([3]uint32{nbodyPoints / nbodyGroup, 1, 1}, params, Arg{Buffer: in}, Arg{Buffer: out}); err != nil {
				return 0, err
			}
		}
		err := dev.Sync(ctx)
		return time.Since(start), err
	}
	if _, err := launch(1); err != nil { // the first one compiles
		return 0, err
	}
	for n := 1; ; n *= 2 {
		took, err := launch(n)
		if err != nil {
			return 0, err
		}
		if took >= nbodyTime || n >= nbodyLaunches {
			return float64(n) * nbodyPoints * nbodyBodies / max(took, time.Nanosecond).Seconds(), nil
		}
	}
}

// nbodyPositions returns positions in the unit cube and masses below 1, by a linear congruential generator with the factors of
// Numerical Recipes.
func nbodyPositions() []byte {
	var b []byte
	x := uint32(1)
	for range nbodyPoints * 4 {
		x = x*1664525 + 1013904223
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x>>8)/(1<<24)))
	}
	return b
}
