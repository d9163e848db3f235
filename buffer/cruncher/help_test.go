// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// plan is a balancer that does what it is told: call is the number of the call, from 0 on.
type plan struct {
	mu    sync.Mutex
	calls int
	split func(call int, r balance.Request) []int
}

func (p *plan) Split(r balance.Request) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.split(p.calls-1, r), nil
}

func (p *plan) Observe(int, []balance.Sample) {}
func (p *plan) Stats(int) balance.Stats       { return balance.Stats{} }

// simulated tells a balancer other times than those that devices took: what the clock has for the number of a device and its items.
type simulated struct {
	balance.Balancer
	clock func(device int, s balance.Sample) float64
}

func (b simulated) Observe(id int, samples []balance.Sample) {
	samples = slices.Clone(samples)
	for i, s := range samples {
		if s.Count > 0 {
			samples[i].Seconds = b.clock(i, s)
		}
	}
	b.Balancer.Observe(id, samples)
}

// even divides ranges evenly, always the same way.
func even() cruncher.Option {
	return cruncher.WithBalancer(&plan{split: func(_ int, r balance.Request) []int { return thirds(r, 0) }})
}

// shifting gives each device another part with every call.
func shifting() cruncher.Option {
	return cruncher.WithBalancer(&plan{split: func(call int, r balance.Request) []int { return thirds(r, call) }})
}

// fixed gives the devices these shares, one call after the other.
func fixed(shares [][]int) cruncher.Option {
	return cruncher.WithBalancer(&plan{split: func(call int, _ balance.Request) []int { return slices.Clone(shares[call%len(shares)]) }})
}

// thirds divides a range among the devices that are alive; with another turn in other proportions.
func thirds(r balance.Request, turn int) []int {
	counts := make([]int, r.Devices)
	weight := func(i int) int { return 1 + (i+turn)%r.Devices*(turn%3) }
	total, last := 0, 0
	for i := range counts {
		if r.Alive == nil || r.Alive[i] {
			total, last = total+weight(i), i
		}
	}
	left := r.Global
	for i := range counts {
		if r.Alive == nil || r.Alive[i] {
			counts[i] = r.Global * weight(i) / total / r.Step * r.Step
			left -= counts[i]
		}
	}
	counts[last] += left
	return counts
}

// onDevices makes a cruncher of the first n devices.
func onDevices(t testing.TB, devices []*gpu.Device, n int, wgsl string, opts ...cruncher.Option) *cruncher.Cruncher {
	t.Helper()
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices[:n], wgsl, opts...))
	t.Cleanup(func() { check(t, cr.Close()) })
	return cr
}

func newArray[T cruncher.Elem](t testing.TB, name string, n int) *cruncher.Array[T] {
	t.Helper()
	a := must[*cruncher.Array[T]](t)(cruncher.NewArray[T](name, n))
	t.Cleanup(func() { check(t, a.Close()) })
	return a
}

func wrap[T cruncher.Elem](t testing.TB, name string, data []T) *cruncher.Array[T] {
	t.Helper()
	a := must[*cruncher.Array[T]](t)(cruncher.Wrap(name, data))
	t.Cleanup(func() { check(t, a.Close()) })
	return a
}

// count returns start, start+1 and so on.
func count[T cruncher.Elem](n int, start T) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = start + T(i)
	}
	return v
}

func same[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
	t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
}

func refused(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// moved returns what moves while fn runs.
func moved(cr *cruncher.Cruncher, fn func()) cruncher.Traffic {
	before := cr.Traffic()
	fn()
	after := cr.Traffic()
	return cruncher.Traffic{Up: after.Up - before.Up, Down: after.Down - before.Down, Migrated: after.Migrated - before.Migrated}
}

// flagEdit is an array whose flags a test changes one by one, as Cekirdekler's properties do: edit(a).Read(false).Write(false).
type flagEdit struct {
	array interface {
		Flags() cruncher.Flags
		SetFlags(f cruncher.Flags) error
	}
}

func edit(a interface {
	Flags() cruncher.Flags
	SetFlags(f cruncher.Flags) error
},
) flagEdit {
	return flagEdit{a}
}

func (a flagEdit) change(set func(f *cruncher.Flags)) flagEdit {
	f := a.array.Flags()
	set(&f)
	if err := a.array.SetFlags(f); err != nil {
		panic(err)
	}
	return a
}

func (a flagEdit) Read(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.Read = on })
}

func (a flagEdit) PartialRead(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.PartialRead = on })
}

func (a flagEdit) Write(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.Write = on })
}

func (a flagEdit) WriteAll(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.WriteAll = on })
}

func (a flagEdit) ReadOnly(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.ReadOnly = on })
}

func (a flagEdit) WriteOnly(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.WriteOnly = on })
}

func (a flagEdit) ZeroCopy(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.ZeroCopy = on })
}

func (a flagEdit) AutoFetch(on bool) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.AutoFetch = on })
}

func (a flagEdit) ElementsPerItem(n int) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.ElementsPerItem = n })
}

func (a flagEdit) Halo(n int) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.Halo = n })
}

func (a flagEdit) Mode(m kernel.Mode) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.Mode = m })
}

func (a flagEdit) Struct(name string) flagEdit {
	return a.change(func(f *cruncher.Flags) { f.Struct = name })
}

// future is a call in the background.
type future struct {
	done chan struct{}
	err  error
}

func inBackground(cr *cruncher.Cruncher, ctx context.Context, id int, kernels string, r cruncher.Range, ps ...cruncher.Param) *future {
	f := &future{done: make(chan struct{})}
	g := cruncher.Params(ps...)
	go func() {
		defer close(f.done)
		f.err = cr.Compute(ctx, id, kernels, r, g)
	}()
	return f
}

func (f *future) Done() <-chan struct{} { return f.done }

func (f *future) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
