// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestFromArray computes with matrices of arrays of every layout that a matrix can have, and in place.
func TestFromArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		data := make([]float32, 60)
		for i := range data {
			data[i] = float32(i)
		}
		cube := must(ndarray.FromSlice(dev, data, 3, 4, 5))
		part := func(a *ndarray.Array, starts, ends, steps []int) *ndarray.Array {
			return must(a.Slice(ndarray.Region{Starts: starts, Ends: ends, Steps: steps}))
		}
		face := must(cube.Index(1))
		for name, a := range map[string]*ndarray.Array{
			"by rows":            face,
			"by columns":         must(face.Transpose()),
			"a part":             part(face, []int{1, 1}, []int{4, 4}, nil),
			"every second row":   part(face, []int{0, 0}, []int{4, 5}, []int{2, 1}),
			"every second, turn": must(part(face, []int{0, 0}, []int{4, 5}, []int{2, 1}).Transpose()),
			"through the cube":   must(must(cube.Transpose(1, 0, 2)).Index(2)),
			"a row":              must(cube.Index(2, 3)),
			"a column":           must(must(face.Transpose()).Index(2)),
			"one row of columns": part(must(face.Transpose()), []int{1, 0}, []int{2, 4}, nil),
			"one column":         part(face, []int{0, 3}, []int{4, 4}, nil),
			"one element":        part(face, []int{2, 3}, []int{3, 4}, nil),
			"nothing":            part(face, []int{2, 3}, []int{2, 5}, nil),
		} {
			want, err := ndarray.Data[float32](t.Context(), a)
			check(t, err)
			m, err := matrix.FromArray[float32](a)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			rows, cols := m.Dims()
			if s := a.Shape(); len(s) == 2 && (s[0] != rows || s[1] != cols) || len(s) == 1 && (rows != 1 || cols != s[0]) {
				t.Errorf("%s: %v is %dx%d", name, s, rows, cols)
			}
			got, err := m.Read(t.Context())
			check(t, err)
			same(t, name, got, want)
			check(t, m.Assign(matrix.AddScalar(m, 100)))
			now, err := ndarray.Data[float32](t.Context(), a)
			check(t, err)
			for i := range want {
				want[i] += 100
			}
			same(t, name+", written", now, want)
			check(t, m.Assign(matrix.AddScalar(m, -100)))
			check(t, m.Close())
		}
		all, err := ndarray.Data[float32](t.Context(), cube)
		check(t, err)
		same(t, "the cube", all, data)
	})
}

// TestFromArrayShares moves nothing, keeps the memory alive on both sides and leaves clones alone.
func TestFromArrayShares(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		released := 0
		mine := []float32{1, 2, 3, 4, 5, 6}
		a, err := ndarray.Wrap(dev, mine, []int{2, 3}, ndarray.Placement{Release: func() { released++ }})
		check(t, err)
		m, err := matrix.FromArray[float32](a)
		check(t, err)
		if !m.External() || m.Buffer().Mode() != buffer.External || dev.Stats().BytesUp != 0 {
			t.Errorf("external: %v, %v", m.External(), m.Buffer().Mode())
		}
		check(t, a.Close())
		check(t, m.Assign(matrix.Scale(2, m)))
		check(t, m.Sync(t.Context()))
		same(t, "the caller's slice", mine, []float32{2, 4, 6, 8, 10, 12})
		if err := m.Assign(matrix.Sum(m)); err == nil {
			t.Error("wrapped memory was resized")
		}
		check(t, m.Close())
		if released != 1 {
			t.Errorf("released %d times", released)
		}
		b, err := ndarray.FromSlice(dev, mine, 6)
		check(t, err)
		c, err := b.Clone()
		check(t, err)
		m, err = matrix.FromArray[float32](b)
		check(t, err)
		check(t, m.Assign(matrix.Scale(0, m)))
		got, err := ndarray.Data[float32](t.Context(), c)
		check(t, err)
		same(t, "a clone", got, mine)
		check(t, b.Close())
		check(t, c.Close())
		check(t, m.Close())
		if s := dev.Stats(); s.LiveBytes != 0 {
			t.Errorf("%d bytes live", s.LiveBytes)
		}
	})
}

// TestFromArrayTypes makes matrices of all their types, and refuses what they cannot be.
func TestFromArrayTypes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		half := must(ndarray.FromBytes(dev, dtype.Float16, []byte{0, 0x3c, 0, 0x40, 0, 0x42}, 3))
		h, err := matrix.FromArray[matrix.Half](half)
		check(t, err)
		check(t, h.Assign(matrix.Scale(matrix.ToHalf(2), h)))
		v, err := h.Read(t.Context())
		check(t, err)
		same(t, "half", v, []matrix.Half{matrix.ToHalf(2), matrix.ToHalf(4), matrix.ToHalf(6)})
		ints := must(ndarray.FromSlice(dev, []int32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2))
		u := must(ndarray.FromSlice(dev, []uint32{7}))
		n, err := matrix.FromArray[uint32](u)
		check(t, err)
		w, err := n.Read(t.Context())
		check(t, err)
		same(t, "uint32", w, []uint32{7})
		bytes := must(ndarray.Alloc(dev, dtype.Uint8, 17))
		odd := must(bytes.View(dtype.Int32, 1, 2, 2))
		row := must(ints.Index(0))
		backwards := must(row.Slice(ndarray.Region{Starts: []int{1, 0}, Ends: []int{-1, 2}, Steps: []int{-1, 1}}))
		gaps := must(must(ndarray.FromSlice(dev, make([]int32, 16), 4, 4)).Slice(ndarray.Region{Starts: []int{0, 0}, Ends: []int{4, 4}, Steps: []int{2, 2}}))
		again := must(ndarray.Wrap(dev, make([]int32, 4), []int{3, 4}, ndarray.Placement{Strides: []int{0, 1}}))
		closed := must(ndarray.Alloc(dev, dtype.Int32, 1))
		check(t, closed.Close())
		for name, c := range map[string]struct {
			a    *ndarray.Array
			want error
		}{
			"three dimensions": {ints, buffer.ErrShape}, "none": {must(row.Index(0, 0)), buffer.ErrShape},
			"another type": {u, gpu.ErrInvalid}, "unaligned": {odd, matrix.ErrAlignment}, "backwards": {backwards, buffer.ErrStride},
			"gaps in rows": {gaps, buffer.ErrStride}, "repeated rows": {again, buffer.ErrStride},
			"closed": {closed, gpu.ErrClosed}, "nil": {nil, buffer.ErrNil},
		} {
			_, err := matrix.FromArray[int32](c.a)
			wantErr(t, name, err, c.want)
		}
		var zero matrix.Dense[float32]
		_, err = zero.Array()
		wantErr(t, "no memory", err, buffer.ErrNil)
	})
}

// TestArray shows matrices of every layout as arrays.
func TestArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		data := random(newRand(3), 20)
		base := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 4, 5, matrix.Options{Padded: true}))
		check(t, base.SetSlice(data))
		cols := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 4, 5, data, matrix.Options{ColMajor: true}))
		for name, m := range map[string]*matrix.Dense[float32]{
			"by rows": base, "transposed": base.T(), "a part": base.Slice(1, 3, 2, 5), "by columns": cols, "a part by columns": cols.Slice(1, 4, 1, 3),
			"a row": base.Row(2), "a column": base.Col(1), "a row by columns": cols.Row(1), "nothing": base.Slice(1, 1, 0, 3),
		} {
			want, err := m.Read(t.Context())
			check(t, err)
			a, err := m.Array()
			check(t, err)
			got, err := ndarray.Data[float32](t.Context(), a)
			check(t, err)
			same(t, name, got, want)
			check(t, a.Fill(t.Context(), 3))
			got, err = m.Read(t.Context())
			check(t, err)
			for i := range want {
				want[i] = 3
			}
			same(t, name+", written", got, want)
			back, err := matrix.FromArray[float32](a)
			check(t, err)
			if r, c := m.Dims(); !sameDims(back, r, c) {
				t.Errorf("%s: dimensions changed", name)
			}
			check(t, a.Close())
			check(t, back.Close())
		}
		a, err := base.Array()
		check(t, err)
		check(t, base.Close())
		if _, err := a.Bytes(t.Context()); err != nil {
			t.Errorf("after the matrix was closed: %v", err)
		}
		_, err = base.Array()
		wantErr(t, "closed", err, gpu.ErrClosed)
		check(t, a.Close())
	})
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func sameDims(m *matrix.Dense[float32], rows, cols int) bool {
	r, c := m.Dims()
	return r == rows && c == cols
}

func ExampleFromArray() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := ndarray.FromSlice(dev, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := a.Index(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := matrix.FromArray[float32](page)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Mul(m, m)) // in place
	v, err := ndarray.Data[float32](ctx, a)
	fmt.Println(v, err)
	// Output:
	// <nil>
	// [1 2 3 4 67 78 91 106] <nil>
}

// TestSameErrors: an array's error is the matrix's of the same name.
func TestSameErrors(t *testing.T) {
	for name, pair := range map[string][2]error{
		"ErrShape": {buffer.ErrShape, buffer.ErrShape}, "ErrIndex": {buffer.ErrIndex, buffer.ErrIndex},
		"ErrStride": {buffer.ErrStride, buffer.ErrStride}, "ErrShort": {buffer.ErrShort, buffer.ErrShort},
	} {
		if !errors.Is(pair[0], pair[1]) || fault.Code(pair[0]) != name {
			t.Errorf("%s: %v and %v", name, pair[0], pair[1])
		}
	}
}
