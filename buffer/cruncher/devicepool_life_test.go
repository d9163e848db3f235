// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestPoolLostBroadcast loses a device before it runs a broadcast: one of two, and the only one.
func TestPoolLostBroadcast(t *testing.T) {
	for n := 1; n <= 2; n++ {
		devices := openDevices(t, 3)
		p := newPool(t, cruncher.Greedy, devices[:n])
		check(t, devices[0].Close())
		x, table := words(t, "x", piece, ordinal), words(t, "table", 16, zero)
		edit(table).Read(false).Write(false)
		ran := 0
		setup := task(t, table, "setup", cruncher.Range{Global: 16}, withType(cruncher.Broadcast),
			withCallback(func(err error) { check(t, err); ran++ }))
		enqueue(t, p, setup, task(t, cruncher.Params(x, table), "look", cruncher.Range{Global: piece}))
		if n == 1 {
			for p.Remaining() > 0 { // until the loss was noticed
				if _, err := p.Finish(t.Context()); err != nil {
					isError(t, "the only one", err, gpu.ErrDeviceLost)
					break
				}
			}
			check(t, p.AddDevice(devices[2]))
		}
		finish(t, p)
		if v := x.Data()[5]; ran != 1 || v != 5+25 {
			t.Errorf("%d devices: the broadcast ran %d times, element 5 is %d", n, ran, v)
		}
	}
}

// TestPoolLost closes devices while tasks are under way, in the end all of them.
func TestPoolLost(t *testing.T) {
	devices := openDevices(t, 3)
	p := newPool(t, cruncher.RoundRobin, devices[:2])
	x := words(t, "x", 40*piece, ordinal)
	list := pieces(t, x)
	list[7] = task(t, x, "double", cruncher.Range{Global: piece, Offset: 7 * piece}, withCallback(func(error) {
		check(t, devices[0].Close())
	}))
	enqueue(t, p, list...)
	finish(t, p)
	if done := p.Completed(); sum(done) != 40 || done[1] < 20 {
		t.Errorf("completed %v", done)
	}
	check(t, devices[1].Close())
	enqueue(t, p, list...)
	_, err := p.Finish(t.Context())
	isError(t, "all lost", err, gpu.ErrDeviceLost)
	if p.Remaining() != 40 {
		t.Errorf("%d remain", p.Remaining())
	}
	check(t, p.AddDevice(devices[2]))
	finish(t, p)
	for i, v := range x.Data() {
		if v != uint32(4*i) {
			t.Fatalf("element %d is %d: a task was not done once", i, v)
		}
	}
}

// TestPoolLostSection loses the device of a section: before it begins others do it, later it cannot go on.
func TestPoolLostSection(t *testing.T) {
	for _, at := range []int{0, 2} {
		devices := openDevices(t, 2)
		p := newPool(t, cruncher.Greedy, devices[:1])
		list, y := section(t, 4, cruncher.SerialBegin, cruncher.SerialEnd)
		if at == 0 {
			check(t, devices[0].Close())
		} else {
			acc := words(t, "acc", 8, zero)
			edit(acc).Read(false).Write(false)
			again := func(i int, opts ...taskOption) *cruncher.Task {
				return task(t, cruncher.Params(acc, cruncher.NewScalar("by", uint32(i))), "grow", cruncher.Range{Global: 8}, opts...)
			}
			list = []*cruncher.Task{
				again(1, withType(cruncher.SelectBegin)),
				again(2, withCallback(func(error) { check(t, devices[0].Close()) })),
				again(3, withType(cruncher.SelectEnd)),
			}
		}
		enqueue(t, p, list...)
		check(t, p.AddDevice(devices[1]))
		_, err := p.Finish(t.Context())
		if at == 0 {
			check(t, err)
			if y.Data()[0] != 10 {
				t.Errorf("the section makes %d", y.Data()[0])
			}
		} else {
			isError(t, "half a section", err, cruncher.ErrStale)
		}
	}
}

func TestPoolMistakes(t *testing.T) {
	_, err := cruncher.NewDevicePool(t.Context(), 7, poolKernels)
	isError(t, "mode", err, gpu.ErrInvalid)
	_, err = cruncher.NewDevicePool(t.Context(), cruncher.Greedy, "fn f(")
	isError(t, "source", err, kernel.ErrKernel)
	p := newPool(t, cruncher.Greedy, nil)
	isError(t, "nil device", p.AddDevice(nil), gpu.ErrInvalid)
	isError(t, "nil pool", (*cruncher.DevicePool)(nil).Enqueue(), gpu.ErrInvalid)
	x := words(t, "x", piece, ordinal)
	one := func(types cruncher.TaskType) *cruncher.Task {
		return task(t, x, "double", cruncher.Range{Global: piece}, withType(types))
	}
	for name, types := range map[string][]cruncher.TaskType{
		"no end":       {cruncher.SelectBegin, 0},
		"no begin":     {0, cruncher.SelectEnd},
		"overlap":      {cruncher.SelectBegin, cruncher.SerialBegin, cruncher.SerialEnd, cruncher.SelectEnd},
		"other end":    {cruncher.SelectBegin, cruncher.SerialEnd},
		"both at once": {cruncher.SelectBegin | cruncher.SerialBegin, cruncher.SelectEnd},
	} {
		var list []*cruncher.Task
		for _, k := range types {
			list = append(list, one(k))
		}
		isError(t, name, p.Enqueue(list...), gpu.ErrInvalid)
	}
	check(t, p.Enqueue())
	isError(t, "nil task", p.Enqueue(one(0), nil), gpu.ErrInvalid)
	isError(t, "empty task", p.Enqueue(new(cruncher.Task)), gpu.ErrInvalid)
	finish(t, p) // nothing to do
	enqueue(t, p, one(cruncher.SelectBegin|cruncher.SelectEnd), one(0))
	_, err = p.Finish(t.Context())
	isError(t, "no device", err, cruncher.ErrDevices)
	check(t, p.AddDevice(openDevices(t, 1)[0]))
	finish(t, p)
	if x.Data()[1] != 4 {
		t.Errorf("%d", x.Data()[1])
	}
}

// TestPoolClose closes pools in every state. It returns, and every callback is made.
func TestPoolClose(t *testing.T) {
	devices := openDevices(t, 2)
	x := words(t, "x", 20*piece, ordinal)
	t.Run("empty", func(t *testing.T) {
		p := newPool(t, cruncher.Greedy, devices)
		check(t, p.Close())
		check(t, p.Close())
		isError(t, "add", p.AddDevice(devices[0]), gpu.ErrClosed)
		isError(t, "enqueue", p.Enqueue(), gpu.ErrClosed)
		_, err := p.Finish(t.Context())
		isError(t, "finish", err, gpu.ErrClosed)
		check(t, new(cruncher.DevicePool).Close())
		check(t, (*cruncher.DevicePool)(nil).Close())
	})
	t.Run("waiting", func(t *testing.T) {
		p := newPool(t, cruncher.Greedy, nil)
		var calls sync.WaitGroup
		calls.Add(20)
		enqueue(t, p, pieces(t, x, withCallback(func(err error) {
			isError(t, "dropped", err, gpu.ErrClosed)
			calls.Done()
		}))...)
		check(t, p.Close())
		calls.Wait()
	})
	t.Run("at work", func(t *testing.T) {
		p := newPool(t, cruncher.RoundRobin, devices)
		var calls sync.WaitGroup
		calls.Add(20)
		begun, finished := make(chan struct{}, 20), make(chan error)
		hold := make(chan struct{})
		enqueue(t, p, pieces(t, x, withCallback(func(error) {
			begun <- struct{}{}
			<-hold
			calls.Done()
		}))...)
		<-begun
		go func() { _, err := p.Finish(context.Background()); finished <- err }()
		check(t, p.Close()) // although callbacks do not return
		isError(t, "finish", <-finished, gpu.ErrClosed)
		close(hold)
		calls.Wait()
	})
	for _, types := range []cruncher.TaskType{0, cruncher.SerialBegin | cruncher.SerialEnd} {
		t.Run("in a callback", func(t *testing.T) {
			p := newPool(t, cruncher.Greedy, devices)
			closed := make(chan error, 20)
			enqueue(t, p, pieces(t, x, withType(types), withCallback(func(error) { closed <- p.Close() }))...)
			for range 20 {
				check(t, <-closed)
			}
		})
	}
}

// TestPoolCancel stops waiting; the tasks go on.
func TestPoolCancel(t *testing.T) {
	p := newPool(t, cruncher.Greedy, openDevices(t, 1))
	x := words(t, "x", 4*piece, ordinal)
	hold := make(chan struct{})
	enqueue(t, p, pieces(t, x, withCallback(func(error) { <-hold }))...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Finish(ctx)
	isError(t, "cancelled", err, context.Canceled)
	close(hold)
	finish(t, p)
	if x.Data()[1] != 2 {
		t.Error("not computed")
	}
}

// TestPoolHammer enqueues from several goroutines while devices come.
func TestPoolHammer(t *testing.T) {
	devices := openDevices(t, 2)
	p := newPool(t, cruncher.Greedy, nil)
	var wg sync.WaitGroup
	var arrays []*cruncher.Array[uint32]
	for range 8 {
		x := words(t, "x", 8*piece, ordinal)
		arrays = append(arrays, x)
		list := pieces(t, x)
		wg.Go(func() {
			for range 3 {
				if err := p.Enqueue(list...); err != nil {
					t.Error(err)
				}
				for {
					if _, err := p.Finish(t.Context()); err == nil {
						break
					}
				}
			}
		})
	}
	for _, d := range append(devices, devices...) {
		check(t, p.AddDevice(d))
	}
	wg.Wait()
	for _, x := range arrays {
		if v := x.Data()[x.Len()-1]; v != uint32(8*(x.Len()-1)) {
			t.Errorf("%d, want %d", v, 8*(x.Len()-1))
		}
	}
}

// TestNoPool waits for a pool that nobody made, also with a context that ends: nothing is there to wake.
func TestNoPool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := new(cruncher.DevicePool).Finish(ctx)
	isError(t, "zero pool", err, gpu.ErrClosed)
	cancel()
	for range 100 {
		_, err = new(cruncher.DevicePool).Finish(ctx)
		isError(t, "zero pool", err, gpu.ErrClosed)
	}
}
