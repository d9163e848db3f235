// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"fmt"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var parallelCases = []testCase{
	{"ParallelUse", parallelUse},
	{"ParallelLists", parallelLists},
	{"ParallelReads", parallelReads},
	{"ParallelDevices", parallelDevices},
}

// together runs f on several goroutines and ends the test at the first error.
func (r *rig) together(n int, f func(ctx context.Context, i int) error) {
	r.Helper()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(r.ctx, i) }()
	}
	for range n {
		if err := <-errs; err != nil {
			r.Error(err)
		}
	}
	if r.Failed() {
		r.FailNow()
	}
}

// Each goroutine makes, uses and frees objects of its own.
func parallelUse(r *rig) {
	const workers, rounds, n = 4, 10, 300
	k, err := affine.kernel()
	r.check(err)
	r.together(workers, func(ctx context.Context, w int) error {
		id := driver.BufferID(w + 1)
		for i := range uint32(rounds) {
			if err := onlyUser(ctx, r.dev, id, k, pattern(n, uint32(w)*rounds+i)); err != nil {
				return fmt.Errorf("worker %d, round %d: %w", w, i, err)
			}
		}
		return nil
	})
}

// onlyUser runs affine on a new buffer. Buffer, kernel and binding set have the same id.
func onlyUser(ctx context.Context, dev driver.Device, id driver.BufferID, k *driver.Kernel, content []uint32) error {
	size, n := uint64(4*len(content)), uint32(len(content))
	if err := dev.NewBuffer(id, size, false); err != nil {
		return err
	}
	defer dev.FreeBuffer(id)
	if err := dev.NewKernel(ctx, driver.KernelID(id), k); err != nil {
		return err
	}
	defer dev.FreeKernel(driver.KernelID(id))
	var list driver.CommandList
	set := driver.BindingsID(id)
	list.Write(id, 0, driver.HostBytes(PutU32(nil, content...)))
	list.Bind(set, k.Layout, []driver.Binding{{Buffer: id, Size: size}})
	list.Dispatch(driver.KernelID(id), set, groups(len(content)), PutU32(nil, 3, n, n))
	list.Unbind(set)
	if err := dev.Submit(&list); err != nil {
		return err
	}
	got := make([]byte, size)
	if err := read(ctx, dev, id, 0, got); err != nil {
		return err
	}
	if want := each(content, func(v uint32) uint32 { return v*3 + n }); !slices.Equal(words(got), want) {
		return fmt.Errorf("got %x and so on, want %x", words(got)[:4], want[:4])
	}
	return nil
}

// Lists of several goroutines run in some order, one after another: between two commands of a list there is nothing.
func parallelLists(r *rig) {
	const workers, rounds, n = 4, 20, 256
	a, b := r.buffer(4*n), r.buffer(4*n)
	r.together(workers, func(ctx context.Context, w int) error {
		var list driver.CommandList
		for i := range uint32(rounds) {
			mine := slices.Repeat([]uint32{uint32(w)<<16 | i}, n/2)
			list.Write(a, 0, driver.HostBytes(PutU32(nil, mine...)))
			list.Write(a, 2*n, driver.HostBytes(PutU32(nil, mine...)))
			list.Copy(b, 0, a, 0, 4*n)
			if err := r.dev.Submit(&list); err != nil {
				return err
			}
			list.Reset()
			got := make([]byte, 4*n)
			if err := read(ctx, r.dev, b, 0, got); err != nil {
				return err
			}
			if v := words(got); !slices.Equal(v, slices.Repeat(v[:1], n)) {
				return fmt.Errorf("two lists ran into each other: %x and %x", v[0], v[n-1])
			}
		}
		return nil
	})
}

// Reads of several goroutines at the same time do not share their way.
func parallelReads(r *rig) {
	const workers, rounds, n = 4, 20, 1 << 12
	id := r.filled(pattern(n, 1)...)
	r.submit()
	r.together(workers, func(ctx context.Context, w int) error {
		part := pattern(n, 1)[w*n/workers:][:n/workers]
		for range rounds {
			got := make([]byte, 4*len(part))
			if err := read(ctx, r.dev, id, uint64(4*w*n/workers), got); err != nil {
				return err
			}
			if !slices.Equal(words(got), part) {
				return fmt.Errorf("worker %d read what another one asked for", w)
			}
		}
		return nil
	})
}

// Two devices have the same ids and nothing else in common.
func parallelDevices(r *rig) {
	const n = 1000
	rigs := []*rig{r, r.second()}
	if rigs[0].dev == rigs[1].dev {
		r.Fatal("open returned the same device again")
	}
	for i, s := range rigs {
		id := s.filled(pattern(n, uint32(i))...)
		k := s.kernel([]program{scale, offset}[i])
		out := s.buffer(4 * n)
		s.dispatch(k, s.bind(scale, s.whole(id), s.whole(out)), groups(n), 3, 5, n)
	}
	rigs[1].submit()
	rigs[0].submit()
	r.want(2, each(pattern(n, 0), func(v uint32) uint32 { return 3*v + 5 }))
	rigs[1].want(2, each(pattern(n, 1), func(v uint32) uint32 { return v + 15 }))
	r.check(rigs[1].dev.Close())
	r.want(2, each(pattern(n, 0), func(v uint32) uint32 { return 3*v + 5 }))
	r.refused("the closed one", rigs[1].dev.Wait(r.ctx), fault.ErrClosed)
}
