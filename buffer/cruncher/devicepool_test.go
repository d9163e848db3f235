// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

const piece = 16 // items of a task

// newPool makes a pool with the devices in it.
func newPool(t *testing.T, mode cruncher.PoolMode, devices []*gpu.Device) *cruncher.DevicePool {
	t.Helper()
	tidy(t, devices)
	p := must[*cruncher.DevicePool](t)(cruncher.NewDevicePool(t.Context(), mode, poolKernels))
	t.Cleanup(func() { check(t, p.Close()) })
	for _, d := range devices {
		check(t, p.AddDevice(d))
	}
	return p
}

func enqueue(t *testing.T, p *cruncher.DevicePool, tasks ...*cruncher.Task) {
	t.Helper()
	check(t, p.Enqueue(tasks...))
}

func finish(t *testing.T, p *cruncher.DevicePool) {
	t.Helper()
	took := must[time.Duration](t)(p.Finish(t.Context()))
	if took < 0 || took > time.Hour {
		t.Errorf("it took %v", took)
	}
}

// pieces makes tasks that double x piece by piece.
func pieces(t *testing.T, x *cruncher.Array[uint32], opts ...taskOption) []*cruncher.Task {
	t.Helper()
	edit(x).PartialRead(true)
	var list []*cruncher.Task
	for at := 0; at < x.Len(); at += piece {
		list = append(list, task(t, x, "double", cruncher.Range{Global: piece, Offset: at, Local: 8, Blobs: 2}, opts...))
	}
	return list
}

func sum(v []int) int {
	n := 0
	for _, x := range v {
		n += x
	}
	return n
}

// TestPool computes two task pools that depend on each other, in each mode.
func TestPool(t *testing.T) {
	for _, mode := range []cruncher.PoolMode{cruncher.Greedy, cruncher.RoundRobin} {
		for n := 1; n <= 3; n++ {
			devices := openDevices(t, (n+1)/2)
			if n > 1 {
				devices = append(devices, devices[0]) // one is there twice
			}
			p := newPool(t, mode, devices)
			x, y := words(t, "x", 30*piece, ordinal), words(t, "y", 1, zero)
			enqueue(t, p, pieces(t, x)...)
			edit(x).PartialRead(false).Write(false)
			sync := task(t, cruncher.Params(x, y), "gather", cruncher.Range{Global: 1}, withType(cruncher.GlobalSyncFirst))
			enqueue(t, p, sync)
			finish(t, p)
			done := p.Completed()
			if want := uint32(30 * piece * (30*piece - 1)); y.Data()[0] != want || sum(done) != 31 || p.Remaining() != 0 {
				t.Errorf("mode %d, %d devices: the sum is %d, want %d; completed %v", mode, n, y.Data()[0], want, done)
			}
			if mode == cruncher.RoundRobin {
				for i, k := range done {
					if want := 31/len(done) + max(0, min(1, 31%len(done)-i)); k != want {
						t.Errorf("round robin: device %d of %d did %v", i, n, done)
					}
				}
			}
		}
	}
}

// TestPoolGreedy holds one device up until the other has done all the rest.
func TestPoolGreedy(t *testing.T) {
	p := newPool(t, cruncher.Greedy, openDevices(t, 2))
	x := words(t, "x", 20*piece, ordinal)
	rest := make(chan struct{})
	var left atomic.Int32
	left.Store(19)
	list := pieces(t, x, withCallback(func(err error) {
		check(t, err)
		if left.Add(-1) == 0 {
			close(rest)
		}
	}))
	list[0] = task(t, x, "double", cruncher.Range{Global: piece}, withCallback(func(error) { <-rest }))
	enqueue(t, p, list...)
	finish(t, p)
	if done := p.Completed(); !slices.Equal(done, []int{1, 19}) {
		t.Errorf("completed %v", done)
	}
}

// TestPoolSync looks at what is complete when a task that synchronizes, and the one after, is.
func TestPoolSync(t *testing.T) {
	for _, mode := range []cruncher.PoolMode{cruncher.Greedy, cruncher.RoundRobin} {
		p := newPool(t, mode, openDevices(t, 2))
		x := words(t, "x", 12*piece, ordinal)
		var before, at, after atomic.Int32
		list := pieces(t, x, withCallback(func(error) {
			time.Sleep(time.Millisecond) // so that who does not wait is early
			before.Add(1)
		}))
		edit(x).PartialRead(false).Write(false)
		y := words(t, "y", 1, zero)
		list = append(list, task(t, cruncher.Params(x, y), "gather", cruncher.Range{Global: 1},
			withType(cruncher.GlobalSyncFirst|cruncher.GlobalSyncLast), withCallback(func(error) {
				if n := before.Load(); n != 12 {
					t.Errorf("%d tasks were complete before the one that waits for 12", n)
				}
				time.Sleep(10 * time.Millisecond)
				at.Add(1)
			})))
		edit(x).PartialRead(true).Write(true)
		list = append(list, pieces(t, x, withCallback(func(error) {
			if at.Load() != 1 {
				t.Error("a task did not wait")
			}
			after.Add(1)
		}))...)
		enqueue(t, p, list...)
		finish(t, p)
		if n := uint32(12 * piece); y.Data()[0] != n*(n-1) || x.Data()[n-1] != 4*(n-1) || after.Load() != 12 {
			t.Errorf("the sum is %d, the last element %d; %d tasks after", y.Data()[0], x.Data()[n-1], after.Load())
		}
	}
}

// TestPoolBroadcast fills a table on every device, also on one that comes later, and uses it there.
func TestPoolBroadcast(t *testing.T) {
	devices := openDevices(t, 2)
	p := newPool(t, cruncher.RoundRobin, devices)
	x, table := words(t, "x", 12*piece, ordinal), words(t, "table", 16, zero)
	edit(table).Read(false).Write(false)
	var ran atomic.Int32
	come, added := make(chan struct{}), make(chan struct{})
	list := []*cruncher.Task{task(t, table, "setup", cruncher.Range{Global: 16},
		withType(cruncher.Broadcast), withCallback(func(err error) { check(t, err); ran.Add(1) }))}
	edit(x).PartialRead(true)
	for at := 0; at < x.Len(); at += piece {
		wait := withCallback(func(error) {
			if at == piece {
				close(come)
				<-added
			}
		})
		list = append(list, task(t, cruncher.Params(x, table), "look", cruncher.Range{Global: piece, Offset: at}, wait))
	}
	enqueue(t, p, list...)
	<-come
	check(t, p.AddDevice(devices[1])) // in the middle
	close(added)
	finish(t, p)
	if done := p.Completed(); ran.Load() != 3 || slices.Contains(done[:2], 1) || sum(done) != 15 {
		t.Errorf("the broadcast ran %d times; completed %v", ran.Load(), done)
	}
	for i, v := range x.Data() {
		if want := uint32(i + (i%16)*(i%16)); v != want {
			t.Fatalf("element %d is %d, want %d", i, v, want)
		}
	}
}

// section makes tasks that count in an array which stays on the device, and writes it in the end.
func section(t *testing.T, n int, begin, end cruncher.TaskType, opts ...taskOption) (list []*cruncher.Task, y *cruncher.Array[uint32]) {
	t.Helper()
	acc, y := words(t, "acc", 8, zero), words(t, "y", 8, zero)
	edit(acc).Read(false).Write(false)
	edit(y).Read(false)
	for i := range n {
		var types cruncher.TaskType
		if i == 0 {
			types = begin
		}
		by := cruncher.NewScalar("by", uint32(i+1))
		list = append(list, task(t, cruncher.Params(acc, by), "grow", cruncher.Range{Global: 8}, append(opts, withType(types))...))
	}
	return append(list, task(t, cruncher.Params(acc, y), "show", cruncher.Range{Global: 8}, append(opts, withType(end))...)), y
}

// TestPoolSections interleaves sections with other tasks on several devices.
func TestPoolSections(t *testing.T) {
	for n := 1; n <= 2; n++ {
		for _, types := range [][2]cruncher.TaskType{{cruncher.SelectBegin, cruncher.SelectEnd}, {cruncher.SerialBegin, cruncher.SerialEnd}} {
			for _, mode := range []cruncher.PoolMode{cruncher.Greedy, cruncher.RoundRobin} {
				p := newPool(t, mode, openDevices(t, n))
				x := words(t, "x", 8*piece, ordinal)
				var list []*cruncher.Task
				var results []*cruncher.Array[uint32]
				var inside atomic.Int32
				for k := range 4 {
					one := withCallback(func(error) {
						if inside.Add(1) > int32(n) && types[0] == cruncher.SerialBegin {
							t.Error("two callbacks of a section at once")
						}
						time.Sleep(time.Millisecond)
						inside.Add(-1)
					})
					part, y := section(t, 5+k, types[0], types[1], one)
					list = append(list, part...)
					list = append(list, pieces(t, x)[2*k:2*k+2]...)
					results = append(results, y)
				}
				enqueue(t, p, list...)
				finish(t, p)
				for k, y := range results {
					if want := uint32((5 + k) * (6 + k) / 2); y.Data()[7] != want {
						t.Errorf("%d devices, section %d: %d, want %d", n, k, y.Data()[7], want)
					}
				}
				if v := x.Data()[x.Len()-1]; v != uint32(2*(x.Len()-1)) {
					t.Errorf("%d devices: beside the sections %d", n, v)
				}
			}
		}
	}
}

// TestPoolErrors has one task of many fail.
func TestPoolErrors(t *testing.T) {
	p := newPool(t, cruncher.RoundRobin, openDevices(t, 2))
	x := words(t, "x", 40*piece, ordinal)
	var failed atomic.Int32
	list := pieces(t, x, withCallback(func(err error) {
		if err != nil {
			failed.Add(1)
		}
	}))
	list[1] = task(t, x, "bad", cruncher.Range{Global: piece, Offset: piece})
	enqueue(t, p, list...)
	_, err := p.Finish(t.Context())
	isError(t, "the error", err, gpu.ErrCompile)
	if failed.Load() != 0 || x.Data()[x.Len()-1] != uint32(2*(x.Len()-1)) {
		t.Errorf("%d of the others failed", failed.Load())
	}
	y := words(t, "x", piece, ordinal)
	enqueue(t, p, pieces(t, y)...)
	finish(t, p) // the error was told
	if y.Data()[1] != 2 {
		t.Error("the pool is of no use after an error")
	}
}

func TestPoolCallbackPanics(t *testing.T) {
	p := newPool(t, cruncher.Greedy, openDevices(t, 1))
	x := words(t, "x", 3*piece, ordinal)
	enqueue(t, p, pieces(t, x, withCallback(func(error) { panic("oh") }))...)
	_, err := p.Finish(t.Context())
	isError(t, "panic", err, cruncher.ErrCallback)
	if x.Data()[x.Len()-1] != uint32(2*(x.Len()-1)) {
		t.Error("not all was computed")
	}
}
