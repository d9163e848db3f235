// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// poolKernels are the kernels of the tests of tasks and pools.
const poolKernels = `
fn double(i: u32) { x[i] = x[i] * 2u; }
fn gather(i: u32) { var s = 0u; for (var k = 0u; k < arrayLength(&x); k++) { s += x[k]; } y[i] = s; }
fn setup(i: u32) { table[i] = i * i; }
fn look(i: u32) { x[i] = x[i] + table[i % 16u]; }
fn grow(i: u32) { acc[i] = acc[i] + by; }
fn show(i: u32) { y[i] = acc[i]; }
fn bad(i: u32) { x[i] = oops; }
`

func words(t testing.TB, name string, n int, value func(i int) uint32) *cruncher.Array[uint32] {
	t.Helper()
	a := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32](name, n))
	t.Cleanup(func() { check(t, a.Close()) })
	for i := range n {
		a.Data()[i] = value(i)
	}
	return a
}

func ordinal(i int) uint32 { return uint32(i) }
func zero(int) uint32      { return 0 }

func task(t testing.TB, p cruncher.Param, kernels string, r cruncher.Range, opts ...taskOption) *cruncher.Task {
	t.Helper()
	return must[*cruncher.Task](t)(cruncher.NewTask(1, kernels, r, p, options(opts)))
}

// taskOption sets one of the options of a task.
type taskOption func(*cruncher.TaskOptions)

func withType(types cruncher.TaskType) taskOption {
	return func(o *cruncher.TaskOptions) { o.Type |= types }
}

func withCallback(done func(error)) taskOption {
	return func(o *cruncher.TaskOptions) { o.Callback = done }
}

func options(list []taskOption) (all cruncher.TaskOptions) {
	for _, set := range list {
		set(&all)
	}
	return all
}

func isError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func equals(t testing.TB, what string, got, want []uint32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// tidy checks at the end of a test that what it made is gone: goroutines, and memory on the devices.
func tidy(t *testing.T, devices []*gpu.Device) {
	t.Helper()
	routines := runtime.NumGoroutine()
	var buffers []int
	for _, d := range devices {
		buffers = append(buffers, d.Stats().Buffers)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > routines && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // those that were told to end
		}
		if n := runtime.NumGoroutine(); n > routines {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before:\n%s", n, routines, stacks[:runtime.Stack(stacks, true)])
		}
		for i, d := range devices {
			if n := d.Stats().Buffers; !errors.Is(d.Usable(), gpu.ErrClosed) && n != buffers[i] {
				t.Errorf("device %d has %d buffers, %d before", i, n, buffers[i])
			}
		}
	})
}

// TestTaskFreezes changes everything that a task was made of.
func TestTaskFreezes(t *testing.T) {
	for n := 1; n <= 2; n++ {
		cr := newCruncher(t, n, `fn square(i: vec2<u32>) { a[i.y * 4u + i.x] = a[i.y * 4u + i.x] * a[i.y * 4u + i.x]; }`)
		a := words(t, "a", 32, ordinal)
		edit(a).PartialRead(true)
		inner := []int{4}
		called := 0
		k := task(t, a, "square", cruncher.Range{Global: 8, Inner: inner}, withCallback(func(err error) {
			check(t, err)
			called++
		}))
		edit(a).PartialRead(false).Read(false).Write(false).ElementsPerItem(7)
		inner[0] = 1000
		check(t, k.Compute(t.Context(), cr))
		for i, v := range a.Data() {
			if v != uint32(i*i) {
				t.Fatalf("%d devices: element %d is %d", n, i, v)
			}
		}
		if got := cr.Traffic(); got.Up != 128 || got.Down != 128 || called != 1 {
			t.Errorf("%d devices: %+v, %d callbacks", n, got, called)
		}
	}
}

func TestTaskTransferOnly(t *testing.T) {
	cr := newCruncher(t, 1, poolKernels)
	x := words(t, "x", 64, ordinal)
	k := task(t, x, "double", cruncher.Range{Global: 64}, withType(cruncher.TransferOnly))
	check(t, k.Compute(t.Context(), cr))
	if got := cr.Traffic(); got.Up != 256 || got.Down != 256 || x.Data()[63] != 63 {
		t.Errorf("%+v, and element 63 is %d", got, x.Data()[63])
	}
}

func TestTaskMistakes(t *testing.T) {
	x := words(t, "x", 64, ordinal)
	closed := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("x", 64))
	check(t, closed.Close())
	r := cruncher.Range{Global: 64}
	make := func(p cruncher.Param, kernels string, r cruncher.Range, opts ...taskOption) error {
		_, err := cruncher.NewTask(1, kernels, r, p, options(opts))
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"closed array", make(cruncher.Params(closed), "double", r), gpu.ErrClosed},
		{"no group", make(nil, "double", r), gpu.ErrInvalid},
		{"twice", make(cruncher.Params(x, x), "double", r), cruncher.ErrName},
		{"no kernel", make(cruncher.Params(x), " , ", r), kernel.ErrKernel},
		{"range", make(cruncher.Params(x), "double", cruncher.Range{Global: -1}), cruncher.ErrRange},
		{"broadcast that writes", make(cruncher.Params(x), "double", r, withType(cruncher.Broadcast)), gpu.ErrInvalid},
		{"nil task", (*cruncher.Task)(nil).Compute(t.Context(), nil), gpu.ErrInvalid},
		{"empty task", new(cruncher.Task).Compute(t.Context(), new(cruncher.Cruncher)), gpu.ErrInvalid},
	} {
		isError(t, c.name, c.err, c.want)
	}
	cr := newCruncher(t, 1, poolKernels)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	isError(t, "cancelled", task(t, x, "double", r).Compute(ctx, cr), context.Canceled)
	if x.Data()[63] != 63 {
		t.Error("a cancelled task was computed")
	}
}

// TestArrayOfTwoCrunchers uses one array with two crunchers by turns: each sees what the other wrote.
func TestArrayOfTwoCrunchers(t *testing.T) {
	a, b := newCruncher(t, 1, poolKernels), newCruncher(t, 2, poolKernels)
	x := words(t, "x", 64, ordinal)
	for range 3 {
		check(t, x.Compute(t.Context(), a, 1, "double", cruncher.Range{Global: 64}))
		check(t, x.Compute(t.Context(), b, 1, "double", cruncher.Range{Global: 64, Local: 8}))
	}
	if x.Data()[63] != 63<<6 {
		t.Errorf("element 63 is %d, want %d", x.Data()[63], 63<<6)
	}
}
