// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestAlloc is the row of CVMArrayAlloc: the shape is copied, no dimension is one element, a dimension may be 0, a negative
// one is an error, the count is 1. Unlike there the elements are zeros.
func TestAlloc(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		shape := []int{2, 3}
		a := must(ndarray.Alloc(dev, i32, shape...))
		shape[0] = 9
		holds(t, "new", a, make([]int32, 6)...)
		if s := a.Shape(); s[0] != 2 || s[1] != 3 || a.Len() != 6 || a.Size() != 24 || a.Offset() != 0 {
			t.Errorf("shape %v, %d elements", s, a.Len())
		}
		if a.UseCount() != 1 || a.Device() != dev || a.DType() != i32 || !a.IsContiguous() {
			t.Errorf("count %d, %v", a.UseCount(), a.DType())
		}
		scalar := must(ndarray.Alloc(dev, i32))
		holds(t, "scalar", scalar, int32(0))
		empty := must(ndarray.Alloc(dev, i32, 3, 0, 1<<40))
		holds[int32](t, "empty", empty)
		odd := must(ndarray.Alloc(dev, dtype.Int8, 7)) // 7 bytes, and the device counts in words
		check(t, odd.CopyFromBytes(t.Context(), []byte{1, 2, 3, 4, 5, 6, 7}))
		holds(t, "7 bytes", odd, int8(1), 2, 3, 4, 5, 6, 7)
		is(t, "negative dimension", second(ndarray.Alloc(dev, i32, 2, -1)), buffer.ErrSize)
		is(t, "two negative dimensions", second(ndarray.Alloc(dev, i32, -2, -1)), buffer.ErrSize)
		is(t, "overflow", second(ndarray.Alloc(dev, i32, 1<<40, 1<<40)), buffer.ErrSize)
		is(t, "too large", second(ndarray.Alloc(dev, i32, 1<<50)), gpu.ErrLimit)
		is(t, "no device", second(ndarray.Alloc(nil, i32, 1)), gpu.ErrInvalid)
		is(t, "33 dimensions", second(ndarray.Alloc(dev, i32, make([]int, 33)...)), buffer.ErrShape)
		closed(t, dev, a, scalar, empty, odd)
		check(t, dev.Close())
		is(t, "closed device", second(ndarray.Alloc(dev, i32, 1)), gpu.ErrClosed)
	})
}

// TestFree is the row of CVMArrayFree: freeing one reference leaves views and copies alive. What is undefined there is
// nothing (a nil array, a second Close) or ErrClosed (a use) here.
func TestFree(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		var nothing *ndarray.Array
		check(t, nothing.Close())
		a := must(ndarray.FromSlice(dev, count(6), 2, 3))
		ref, view := must(a.Share()), must(a.View(i32, 0, 6))
		check(t, a.Close())
		check(t, a.Close()) // takes nothing from ref
		holds(t, "reference", ref, count(6)...)
		check(t, ref.Close())
		holds(t, "view of what was freed", view, count(6)...)
		if a.UseCount() != 0 || ref.UseCount() == 1 || a.Same(ref) {
			t.Error("a closed handle is in use")
		}
		closed(t, dev, view)
	})
}

// TestAfterFree calls every method on closed handles and on nil.
func TestAfterFree(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx := t.Context()
		open, err := ndarray.FromSlice(dev, count(6), 2, 3)
		check(t, err)
		gone, err := ndarray.FromSlice(dev, count(6), 2, 3)
		check(t, err)
		check(t, gone.Close())
		for want, a := range map[error]*ndarray.Array{gpu.ErrClosed: gone, buffer.ErrNil: nil} {
			part := ndarray.Region{Starts: []int{0, 0}, Ends: []int{1, 1}}
			input := ndarray.Input{Name: "x", Shape: []int{2, 3}, Precision: 8}
			for name, err := range map[string]error{
				"Share": second(a.Share()), "Move": second(a.Move()), "Clone": second(a.Clone()), "Buffer": second(a.Buffer()),
				"View": second(a.View(i32, 4, 1)), "Reshape": second(a.Reshape(6)),
				"Slice": second(a.Slice(ndarray.Region{Starts: []int{0, 0}, Ends: []int{1, 1}})), "Index": second(a.Index(1)), "Transpose": second(a.Transpose()),
				"Bytes": second(a.Bytes(ctx)), "Data": second(ndarray.Data[int32](ctx, a)), "CopyToBytes": a.CopyToBytes(ctx, make([]byte, 24)),
				"CopyFromBytes": a.CopyFromBytes(ctx, make([]byte, 24)), "CopyFrom": a.CopyFrom(ctx, open), "CopyFrom it": open.CopyFrom(ctx, a),
				"CopyToDevice": second(a.CopyToDevice(ctx, dev)), "Sync": a.Sync(ctx), "Touch": a.Touch(),
				"Fill": a.Fill(ctx, 1), "Fill a part": fillPart(t, a, part, 1), "Assign": a.Assign(ctx, open), "Assign it": open.Assign(ctx, a),
				"Assign to a part": assignPart(t, a, part, open), "Assign it to a part": assignPart(t, open, part, a),
				"Data of an input": second(input.Data(ctx, a)), "Param": second(input.Param(ctx, a)),
			} {
				is(t, name, err, want)
			}
			if a.UseCount() != 0 || a.Same(a) || a.Close() != nil {
				t.Error("in use")
			}
			_, _, _, _, _ = a.Shape(), a.Strides(), a.Offset(), a.Len(), a.Size() // and no panic
			_, _, _ = a.DType(), a.Device(), a.IsContiguous()
		}
		holds(t, "the other array", open, count(6)...)
		closed(t, dev, open)
	})
}

// TestReferences are the rows of NDArray's copy, assignment, move, reset and use_count.
func TestReferences(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		a := must(ndarray.FromSlice(dev, count(4)))
		b := must(a.Share())
		if a.UseCount() != 2 || b.UseCount() != 2 || !a.Same(b) {
			t.Errorf("copy: counts %d and %d", a.UseCount(), b.UseCount())
		}
		check(t, b.Fill(t.Context(), 7))
		holds(t, "written through the copy", a, int32(7), 7, 7, 7)
		if s := dev.Stats(); s.Buffers != 1 {
			t.Errorf("copying a reference copied data: %d buffers", s.Buffers)
		}
		m := must(b.Move())
		if m.UseCount() != 2 || b.UseCount() != 0 || !a.Same(m) {
			t.Errorf("move: counts %d and %d", m.UseCount(), b.UseCount())
		}
		check(t, a.Close())
		if m.UseCount() != 1 {
			t.Errorf("reset: count %d", m.UseCount())
		}
		closed(t, dev, m)
	})
}

// TestDeleter is the row of the default deleter: the last user frees owned memory, the last view of a base that was freed
// frees it, and wrapped memory is released once.
func TestDeleter(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		mine := count(6)
		released := 0
		a := must(ndarray.Wrap(dev, mine, []int{2, 3}, ndarray.Placement{Release: func() { released++ }}))
		v := must(a.View(i32, 0, 3))
		vv := must(v.View(i32, 0, 2))
		if a.UseCount() != 2 || v.UseCount() != 2 || vv.UseCount() != 1 {
			t.Errorf("counts %d, %d and %d", a.UseCount(), v.UseCount(), vv.UseCount())
		}
		check(t, vv.Fill(t.Context(), 9))
		check(t, vv.Sync(t.Context()))
		check(t, a.Close())
		check(t, v.Close())
		holds(t, "view of a view", vv, int32(9), 9)
		if released != 0 {
			t.Error("released in use")
		}
		check(t, vv.Close())
		check(t, vv.Close())
		if released != 1 || mine[0] != 9 || mine[2] != 2 {
			t.Errorf("released %d times, %v", released, mine)
		}
		failed := 0
		is(t, "a wrap that fails", second(ndarray.Wrap(dev, mine, []int{7}, ndarray.Placement{Release: func() { failed++ }})), buffer.ErrShort)
		if failed != 0 {
			t.Error("memory that was not taken over was released")
		}
		var again *ndarray.Array // a release function may use the package
		again = must(ndarray.Wrap(dev, mine, []int{6}, ndarray.Placement{Release: func() { is(t, "in release", second(again.Share()), gpu.ErrClosed) }}))
		closed(t, dev, again)
	})
}

// TestForeign is the row of FromDLPack as far as memory goes: what a producer hands over is used in place, with its strides
// and offset, and given back once; a producer without a deleter is fine. Other than there the tensor is checked.
func TestForeign(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		mine := count(12)
		a := must(ndarray.Wrap(dev, mine, []int{3, 2}, ndarray.Placement{Strides: []int{1, 3}, Offset: 8}))
		holds(t, "by columns", a, int32(2), 5, 3, 6, 4, 7)
		check(t, a.Fill(t.Context(), -1))
		check(t, a.Sync(t.Context()))
		if mine[1] != 1 || mine[2] != -1 || mine[7] != -1 || mine[8] != 8 {
			t.Errorf("the producer's memory: %v", mine)
		}
		mine[2] = 5
		check(t, a.Touch())
		first := must(a.Index(0, 0))
		holds(t, "after Touch", first, int32(5))
		backwards := must(ndarray.Wrap(dev, mine, []int{3}, ndarray.Placement{Strides: []int{-4}, Offset: 36}))
		holds(t, "backwards", backwards, int32(9), -1, 1)
		for name, c := range map[string]struct {
			err, want error
		}{
			"beyond the end":    {second(ndarray.Wrap(dev, mine, []int{3, 2}, ndarray.Placement{Strides: []int{1, 10}})), buffer.ErrShort},
			"before the start":  {second(ndarray.Wrap(dev, mine, []int{3}, ndarray.Placement{Strides: []int{-1}})), buffer.ErrStride},
			"one stride":        {second(ndarray.Wrap(dev, mine, []int{3, 2}, ndarray.Placement{Strides: []int{1}})), buffer.ErrStride},
			"overflow":          {second(ndarray.Wrap(dev, mine, []int{3, 2}, ndarray.Placement{Strides: []int{1 << 62, 1}})), buffer.ErrStride},
			"overflow of sums":  {second(ndarray.Wrap(dev, mine, []int{3, 3}, ndarray.Placement{Strides: []int{1<<60 - 1, 1<<60 - 1}})), buffer.ErrStride},
			"least stride":      {second(ndarray.Wrap(dev, mine, []int{3}, ndarray.Placement{Strides: []int{-1 << 63}})), buffer.ErrStride},
			"negative offset":   {second(ndarray.Wrap(dev, mine, []int{3}, ndarray.Placement{Offset: -4})), buffer.ErrStride},
			"huge offset":       {second(ndarray.Wrap(dev, mine, []int{3}, ndarray.Placement{Offset: 1<<63 - 1})), buffer.ErrStride},
			"no memory":         {second(ndarray.Wrap[int32](dev, nil, []int{3}, ndarray.Placement{})), buffer.ErrNil},
			"no device":         {second(ndarray.Wrap(nil, mine, []int{3}, ndarray.Placement{})), gpu.ErrInvalid},
			"repeated too much": {second(ndarray.Wrap(dev, mine, []int{1 << 40}, ndarray.Placement{Strides: []int{0}})), gpu.ErrLimit},
			"no buffer":         {second(ndarray.New(nil, i32, []int{3}, nil, 0)), buffer.ErrNil},
		} {
			is(t, name, c.err, c.want)
		}
		none := must(ndarray.Wrap[int32](dev, nil, []int{0, 3}, ndarray.Placement{}))
		holds[int32](t, "no memory for no elements", none)
		closed(t, dev, a, first, backwards, none)
	})
}

// TestKinds reads and writes arrays in memory of every kind.
func TestKinds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, a := range from(t, dev, count(12), 3, 4) {
			holds(t, name, a, count(12)...)
			tr := must[*ndarray.Array](t)(a.Transpose())
			check(t, fillPart(t, tr, ndarray.Region{Starts: []int{1, 0}, Ends: []int{3, 3}, Steps: []int{1, 2}}, 50))
			holds(t, name, a, 0, 50, 50, 3, 4, 5, 6, 7, 8, 50, 50, int32(11))
			check(t, a.Sync(t.Context()))
			check(t, tr.Close())
			check(t, a.Close())
		}
		closed(t, dev)
	})
}

// TestNewShares makes arrays of a buffer, which stays its maker's too.
func TestNewShares(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		buf, err := buffer.New(dev, 64)
		check(t, err)
		a, err := ndarray.New(buf, i32, []int{3}, []int{2}, 8)
		check(t, err)
		is(t, "too long", second(ndarray.New(buf, i32, []int{3}, []int{7}, 8)), buffer.ErrShort)
		if buf.Shares() != 2 {
			t.Errorf("%d shares", buf.Shares())
		}
		check(t, buf.Write(0, gpu.HostBytes([]byte{8: 1, 16: 2, 24: 3, 63: 0})))
		holds(t, "array of a buffer", a, int32(1), 2, 3)
		check(t, buf.Close())
		holds(t, "after the maker's Close", a, int32(1), 2, 3)
		check(t, a.Close())
		is(t, "closed buffer", second(ndarray.New(buf, i32, []int{3}, nil, 0)), gpu.ErrClosed)
		closed(t, dev)
	})
}

// TestCounts shares, views and closes from eight goroutines; memory is released once, by whoever is last.
func TestCounts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 50 {
			var released atomic.Int32
			a, err := ndarray.Wrap(dev, count(16), []int{4, 4}, ndarray.Placement{Release: func() { released.Add(1) }})
			check(t, err)
			var wg sync.WaitGroup
			for range 8 {
				mine, err := a.Share()
				check(t, err)
				wg.Go(func() {
					for range 20 {
						s, err1 := mine.Share()
						v, err2 := mine.View(dtype.Int8, 0, 64)
						w, err3 := v.Slice(ndarray.Region{Starts: []int{4}, Ends: []int{8}})
						check(t, v.Close())
						d, err4 := ndarray.Data[int8](t.Context(), w)
						if err1 != nil || err2 != nil || err3 != nil || err4 != nil || d[0] != 1 {
							t.Error(err1, err2, err3, err4, d)
						}
						_, _ = s.Close(), w.Close()
					}
					_ = mine.Close()
				})
			}
			wg.Go(func() { _ = a.Close() })
			wg.Wait()
			if n := released.Load(); n != 1 || a.UseCount() != 0 {
				t.Fatalf("released %d times", n)
			}
		}
	})
}

// TestRacingClose closes one handle from eight goroutines that also use it: each use works or is ErrClosed.
func TestRacingClose(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 50 {
			a, err := ndarray.FromSlice(dev, count(4))
			check(t, err)
			keep, err := a.Share()
			check(t, err)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if i%4 == 3 {
						_ = a.Close()
						return
					}
					s, err := a.Share()
					if err == nil {
						err = s.Close()
					}
					if err != nil {
						is(t, "share", err, gpu.ErrClosed)
					}
					if err := a.Fill(t.Context(), float64(i)); err != nil {
						is(t, "fill", err, gpu.ErrClosed)
					}
				})
			}
			wg.Wait()
			if keep.UseCount() != 1 {
				t.Fatalf("count %d", keep.UseCount())
			}
			closed(t, dev, keep)
		}
	})
}
