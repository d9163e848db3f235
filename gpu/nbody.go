// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	_ "embed" // the kernel
	"errors"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

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
	k, err := dev.Kernel(ctx, KernelDesc{
		Label: "nbody", Source: nbodySource, Bounded: true, Bindings: []driver.Access{driver.AccessRead, driver.AccessReadWrite},
	})
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
	least := max(nbodyTime, 4*clockStep(time.Now)) // a step more or less makes little difference
	for n := 0; ; n = max(1, 2*n) {                // the first round, which counts for nothing, compiles
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
		if n > 0 && (took >= least || n >= nbodyLaunches) {
			return float64(n) * nbodyPoints * nbodyBodies / took.Seconds(), nil
		}
	}
}

// clockStep returns by how much a clock advances at a time: up to 16 ms on Windows.
func clockStep(now func() time.Time) time.Duration {
	next := func(t time.Time) time.Time {
		for {
			if u := now(); u.After(t) {
				return u
			}
		}
	}
	begin := next(now())
	return next(begin).Sub(begin)
}
