// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	_ "embed" // the benchmark's kernel
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
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
	s.errs = slices.Clip(s.errs)
	speeds := map[*Adapter]float64{} // -1 for those that cannot be measured
	for _, a := range s.list {
		if _, measured := speeds[a]; measured {
			continue
		}
		v, err := measure(ctx, a, bench)
		if cerr := ctx.Err(); cerr != nil {
			s.err, s.list = cerr, nil
			return s
		}
		if err != nil {
			s.errs = append(s.errs, err)
			v = -1
		}
		speeds[a] = v
	}
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(a *Adapter) bool { return speeds[a] < 0 })
	slices.SortStableFunc(s.list, func(a, b *Adapter) int { return cmp.Compare(speeds[b], speeds[a]) })
	return s
}

func measure(ctx context.Context, a *Adapter, bench func(context.Context, *Device) (float64, error)) (float64, error) {
	d, err := a.Open(ctx)
	if err != nil {
		return 0, err
	}
	v, err := bench(ctx, d)
	err = cmp.Or(err, d.Close())
	if err == nil && !(v >= 0 && v <= math.MaxFloat64) {
		err = fail("Rank", ErrInvalid, "the speed of ", a.Info.Name, " is no number")
	}
	return v, err
}

//go:embed nbody.wgsl
var nbodySource string

// The work of one launch of the benchmark, as the kernel has it, and for how long and with how many launches it measures. Large
// GPUs are busy with as many points; the loop over the bodies stays far below what software adapters allow.
const (
	nbodyPoints   = 16384
	nbodyBodies   = 1024
	nbodyGroup    = 64
	nbodyTime     = 10 * time.Millisecond // at least
	nbodyLaunches = 4096                  // at most
)

// nbody measures how many interactions of bodies by gravity the device computes in a second. A device that compiles no WGSL
// is [ErrUnsupported].
func nbody(ctx context.Context, dev *Device) (float64, error) {
	k, err := dev.Kernel(ctx, KernelDesc{Label: "nbody", Source: nbodySource, Bindings: []driver.Access{driver.AccessRead, driver.AccessReadWrite}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = k.Close() }()
	in, inErr := dev.NewBuffer(nbodyPoints * 16) // what it holds makes no difference
	defer func() { _ = in.Close() }()
	out, outErr := dev.NewBuffer(nbodyPoints * 16)
	defer func() { _ = out.Close() }()
	if err := errors.Join(inErr, outErr); err != nil {
		return 0, err
	}
	for n := 0; ; n = max(1, 2*n) { // the first round, which counts for nothing, compiles
		start := time.Now()
		for range max(n, 1) {
			if err := k.Dispatch([3]uint32{nbodyPoints / nbodyGroup, 1, 1}, nil, Arg{Buffer: in}, Arg{Buffer: out}); err != nil {
				return 0, err
			}
		}
		if err := dev.Sync(ctx); err != nil {
			return 0, err
		}
		took := max(time.Since(start), time.Nanosecond)
		if n > 0 && (took >= nbodyTime || n >= nbodyLaunches) {
			return float64(n) * nbodyPoints * nbodyBodies / took.Seconds(), nil
		}
	}
}
