// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestLazyCopy is the row "lazy copy", which the reference promises and does not have: Clone copies when one side is
// written, once, and only then.
func TestLazyCopy(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		buffers := func(what string, want int) {
			t.Helper()
			if n := dev.Stats().Buffers; n != want {
				t.Errorf("%s: %d buffers, want %d", what, n, want)
			}
		}
		a := must(ndarray.FromSlice(dev, count(4)))
		view := must(a.Reshape(2, 2))
		c := must(a.Clone())
		d := must(c.Clone())
		if c.UseCount() != 1 || a.UseCount() != 2 || a.Same(c) {
			t.Errorf("counts %d and %d", c.UseCount(), a.UseCount())
		}
		buffers("cloned", 1)
		before := dev.Stats()
		check(t, view.Fill(ctx, 7))
		buffers("written through a view", 2)
		holds(t, "the base", a, int32(7), 7, 7, 7)
		holds(t, "a clone", c, count(4)...)
		check(t, a.Fill(ctx, 8))
		buffers("written again", 2)
		holds(t, "the view", view, int32(8), 8, 8, 8)
		check(t, fillPart(t, c, ndarray.Region{Starts: []int{1}, Ends: []int{2}}, 5))
		buffers("the clone written", 3)
		holds(t, "the clone", c, int32(0), 5, 2, 3)
		holds(t, "its clone", d, count(4)...)
		check(t, d.Fill(ctx, 6))
		buffers("the last one written", 3)
		after := dev.Stats()
		if down := after.BytesDown - before.BytesDown; down != 5*16 { // five reads above, and nothing else
			t.Errorf("%d bytes came down", down)
		}
		e := must(d.Clone())
		check(t, d.Close())
		check(t, e.Fill(ctx, 1))
		buffers("the other side closed first", 3)
		closed(t, dev, a, view, c, e)
	})
}

// TestCloneKinds clones arrays in memory of every kind: the clone never sees what is written later, nor the other way
// round, whoever writes.
func TestCloneKinds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, a := range from(t, dev, count(6), 2, 3) {
			c, err := a.Clone()
			check(t, err)
			buf, err := a.Buffer() // as a kernel would
			check(t, err)
			check(t, buf.Write(0, gpu.HostBytes(make([]byte, 24))))
			holds(t, name+", clone", c, count(6)...)
			later, err := a.Clone()
			check(t, err)
			check(t, buf.Write(4, gpu.HostBytes([]byte{9, 0, 0, 0})))
			holds(t, name+", a clone while others have the buffer", later, 0, 0, 0, 0, 0, int32(0))
			check(t, c.Fill(t.Context(), 3))
			holds(t, name, a, 0, 9, 0, 0, 0, int32(0))
			check(t, buf.Close())
			for _, x := range []*ndarray.Array{a, c, later} {
				check(t, x.Close())
			}
		}
		closed(t, dev)
	})
}

// TestCloneReadOnly clones memory that is read-only, which stays so, and is given back once the clone has left it.
func TestCloneReadOnly(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		released := 0
		mine := count(6)
		a, err := ndarray.Wrap(dev, mine, []int{6}, ndarray.Placement{ReadOnly: true, Release: func() { released++ }})
		check(t, err)
		c, err := a.Clone()
		check(t, err)
		is(t, "the original", a.Fill(t.Context(), 1), gpu.ErrReadOnly)
		check(t, a.Close())
		holds(t, "the clone", c, mine...)
		if released != 0 {
			t.Error("released in use")
		}
		check(t, c.Fill(t.Context(), 1))
		if released != 1 {
			t.Errorf("released %d times", released)
		}
		holds(t, "the clone, written", c, 1, 1, 1, 1, 1, int32(1))
		holds(t, "the memory", must[*ndarray.Array](t)(ndarray.Wrap(dev, mine, []int{6}, ndarray.Placement{})), count(6)...)
		closed(t, dev, c)
	})
}

// TestCloneRace has eight clones written at once by eight goroutines, with readers beside them: there are as many copies
// as writers but one, and nobody sees another's values.
func TestCloneRace(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const clones = 8
		for range 20 {
			a, err := ndarray.FromSlice(dev, slices.Repeat([]int32{-1}, 64))
			check(t, err)
			all := make([]*ndarray.Array, clones)
			for i := range all {
				all[i], err = a.Clone()
				check(t, err)
			}
			check(t, a.Close())
			var wg sync.WaitGroup
			var wrong atomic.Int32
			for i, c := range all {
				for range 2 {
					wg.Go(func() {
						if c.Fill(t.Context(), float64(i)) != nil {
							wrong.Add(1)
						}
					})
				}
				wg.Go(func() {
					v, err := ndarray.Data[int32](t.Context(), c)
					if err != nil || v[0] != -1 && v[0] != int32(i) || slices.Max(v) != slices.Min(v) {
						wrong.Add(1)
					}
				})
				wg.Go(func() {
					d, err := c.Clone()
					if err != nil || d.Close() != nil {
						wrong.Add(1)
					}
				})
			}
			wg.Wait()
			if n := dev.Stats().Buffers; n != clones || wrong.Load() != 0 {
				t.Fatalf("%d buffers, %d wrong values", n, wrong.Load())
			}
			for i, c := range all {
				holds(t, "clone", c, slices.Repeat([]int32{int32(i)}, 64)...)
			}
			closed(t, dev, all...)
		}
	})
}

// TestTwoWriters has the two sides of one clone written at once: there is exactly one copy.
func TestTwoWriters(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 100 {
			a, err := ndarray.FromSlice(dev, count(16))
			check(t, err)
			b, err := a.Clone()
			check(t, err)
			var wg sync.WaitGroup
			for _, x := range []*ndarray.Array{a, b} {
				wg.Go(func() { check(t, x.Fill(t.Context(), 4)) })
			}
			wg.Wait()
			if s := dev.Stats(); s.Buffers != 2 {
				t.Fatalf("%d buffers", s.Buffers)
			}
			closed(t, dev, a, b)
		}
	})
}

// TestBufferState lends memory: a lent buffer counts as the array's own.
func TestBufferState(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, err := ndarray.FromSlice(dev, count(4))
		check(t, err)
		c, err := a.Clone()
		check(t, err)
		buf, err := a.Buffer()
		check(t, err)
		other, err := c.Buffer()
		check(t, err)
		if buf == other || buf.Location() != buffer.Device || buf.Shares() != 2 {
			t.Errorf("one buffer is lent twice, or %v", buf.Location())
		}
		check(t, buf.Close())
		check(t, other.Close())
		lazy, err := a.Clone()
		check(t, err)
		if n := dev.Stats().Buffers; n != 2 {
			t.Errorf("%d buffers: once nobody else has a share, Clone is lazy again", n)
		}
		closed(t, dev, a, c, lazy)
	})
}
