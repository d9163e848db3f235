// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

func TestCopies(t *testing.T) {
	for _, c := range []struct {
		k        int
		to, from []uint16 // what copying does to ten elements of 100 and more
		want     error
	}{
		{0, []uint16{0, 1, 2, 3, 104, 105, 106, 107, 108, 109}, []uint16{100, 101, 102, 103}, nil},
		{3, []uint16{100, 101, 102, 0, 1, 2, 3, 107, 108, 109}, []uint16{103, 104, 105, 106}, nil},
		{8, []uint16{100, 101, 102, 103, 104, 105, 106, 107, 0, 1}, []uint16{108, 109, 2, 3}, nil},
		{10, count(10, uint16(100)), count(4, uint16(0)), cruncher.ErrRange},
		{-1, count(10, uint16(100)), count(4, uint16(0)), cruncher.ErrRange},
	} {
		small, large := wrap(t, "small", count(4, uint16(0))), wrap(t, "large", count(10, uint16(100)))
		if err := small.CopyTo(large, c.k); c.want != nil || err != nil {
			refused(t, "CopyTo", err, c.want)
		}
		same(t, "CopyTo", large.Data(), c.to)
		large = wrap(t, "large", count(10, uint16(100)))
		if err := small.CopyFrom(large, c.k); c.want != nil || err != nil {
			refused(t, "CopyFrom", err, c.want)
		}
		same(t, "CopyFrom", small.Data(), c.from)
	}
}

func TestElements(t *testing.T) {
	a := newArray[int8](t, "a", 3)
	check(t, a.Set(2, -5))
	if v, err := a.At(2); err != nil || v != -5 {
		t.Error(v, err)
	}
	copied := must[[]int8](t)(a.ToArray())
	copied[0] = 9
	same(t, "ToArray is a copy", a.Data(), []int8{0, 0, -5})
	refused(t, "Set", a.Set(3, 0), cruncher.ErrRange)
	_, err := a.At(-1)
	refused(t, "At", err, cruncher.ErrRange)
	refused(t, "CopyTo nothing", a.CopyTo(nil, 0), gpu.ErrInvalid)
	refused(t, "CopyFrom nothing", a.CopyFrom(nil, 0), gpu.ErrInvalid)
	empty := newArray[int8](t, "b", 0)
	refused(t, "CopyTo an empty array", a.CopyTo(empty, 0), cruncher.ErrRange)
	check(t, a.Close())
	check(t, a.Close())
	_, err = a.At(0)
	refused(t, "closed", err, gpu.ErrClosed)
	refused(t, "closed", a.Set(0, 0), gpu.ErrClosed)
	if a.Data() != nil {
		t.Error("a closed array has elements")
	}
	_, err = a.ToArray()
	refused(t, "closed", err, gpu.ErrClosed)
	_, err = (*cruncher.Array[int8])(nil).ToArray()
	refused(t, "ToArray of nothing", err, gpu.ErrInvalid)
}
