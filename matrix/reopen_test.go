// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestReopen loses the device and brings it back: what the host has comes back by itself, what it has not says so.
func TestReopen(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	check(t, dev.Reopen(background)) // which it need not
	data, results := []float32{1, 2, 3, 4}, make([]float32, 4)
	a, w := must[*dense](t)(matrix.Wrap(dev, 2, 2, data)), must[*dense](t)(matrix.Wrap(dev, 2, 2, results))
	synced, own := must[*dense](t)(matrix.Wrap(dev, 1, 2, make([]float32, 2))), must[*dense](t)(matrix.FromSlice(dev, 1, 2, data[:2]))
	s := must[*matrix.Sparse[float32]](t)(matrix.WrapSparse(dev, matrix.CSR, 2, 2, []float32{5, 6}, []int32{0, 1}, []int32{0, 1, 2}))
	product := must[*dense](t)(matrix.New[float32](dev, 2, 2))
	check(t, errors.Join(w.Add(a, a), synced.Fill(9), synced.Sync(background), product.Mul(s, a)))
	lose(t, dev)
	isError(t, w.Add(a, a), gpu.ErrDeviceLost)
	check(t, dev.Reopen(background))

	check(t, a.Assign(matrix.Scale(10, a))) // up again, and a kernel compiled again
	check(t, a.Sync(background))
	if !slices.Equal(data, []float32{10, 20, 30, 40}) {
		t.Errorf("wrapped memory came back as %v", data)
	}
	if v := must[[]float32](t)(matrix.AddScalar(synced, 1).Read(background)); !slices.Equal(v, []float32{10, 10}) {
		t.Errorf("synced results came back as %v", v)
	}
	check(t, product.Mul(s, a)) // an owned result, and lists made anew
	if v := must[[]float32](t)(product.Read(background)); !slices.Equal(v, []float32{50, 100, 180, 240}) {
		t.Errorf("the product is %v", v)
	}

	_, err := own.Read(background)
	isError(t, err, gpu.ErrDeviceLost)
	isError(t, own.Assign(matrix.Neg(own)), gpu.ErrDeviceLost)
	check(t, own.Fill(3)) // all of it is new
	if v := must[[]float32](t)(own.Read(background)); !slices.Equal(v, []float32{3, 3}) {
		t.Errorf("replaced memory holds %v", v)
	}
	isError(t, w.Sync(background), gpu.ErrDeviceLost) // results that nobody had fetched
	check(t, w.Touch())
	if v := must[float32](t)(matrix.Sum(w).Value(background)); v != 0 {
		t.Errorf("the sum is %v", v)
	}
	check(t, errors.Join(a.Close(), w.Close(), synced.Close(), own.Close(), product.Close(), s.Close()))
	if st := dev.Stats(); st.Buffers != 0 || st.LiveBytes != 0 {
		t.Errorf("%d buffers, %d bytes are live", st.Buffers, st.LiveBytes)
	}
	check(t, dev.Close())
	isError(t, dev.Reopen(background), gpu.ErrClosed)
}

// TestReopenParts brings back memory that the device holds in parts.
func TestReopenParts(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu"), gpu.WithMaxBuffer(4096)))
	data := make([]float32, 5000)
	for i := range data {
		data[i] = 1
	}
	m := must[*dense](t)(matrix.Wrap(dev, 50, 100, data))
	top := m.RowSlice(0, 5)
	check(t, top.Fill(2))
	lose(t, dev)
	check(t, dev.Reopen(background))
	_, err := matrix.Sum(m).Value(background)
	isError(t, err, gpu.ErrDeviceLost)
	check(t, m.Touch())
	if v := must[float32](t)(matrix.Sum(m).Value(background)); v != 5000 {
		t.Errorf("the sum is %v", v)
	}
	if m.Buffer().Location() != buffer.Host {
		t.Errorf("the bits are on %v", m.Buffer().Location())
	}
	check(t, errors.Join(top.Close(), m.Close(), dev.Close()))
}

// TestReopenMapped replaces what was lost of memory that the CPU can map. It can be mapped as before.
func TestReopenMapped(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	m := must[*dense](t)(matrix.Map[float32](dev, 1, 2))
	check(t, m.Fill(1))
	lose(t, dev)
	check(t, dev.Reopen(background))
	_, err := m.Read(background)
	isError(t, err, gpu.ErrDeviceLost)
	check(t, m.SetSlice([]float32{2, 3}))
	check(t, m.Access(background, buffer.Writes, func(data []float32) error {
		if !slices.Equal(data, []float32{2, 3}) {
			t.Errorf("replaced memory is mapped as %v", data)
		}
		data[0] = 4
		return nil
	}))
	if v := must[[]float32](t)(m.Read(background)); !slices.Equal(v, []float32{4, 3}) {
		t.Errorf("written memory is %v", v)
	}
	check(t, errors.Join(m.Close(), dev.Close()))
}

// TestReopenTouchParts says of the parts of wrapped memory, one after the other, that the caller wrote them after results were lost.
func TestReopenTouchParts(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	data := []float32{1, 2, 3, 4, 5, 6}
	m := must[*dense](t)(matrix.Wrap(dev, 2, 3, data))
	left, right := m.ColumnSlice(0, 2), m.ColumnSlice(2, 1)
	check(t, m.Fill(9))
	lose(t, dev)
	check(t, dev.Reopen(background))
	check(t, left.Touch())
	_, err := m.Read(background)
	isError(t, err, gpu.ErrDeviceLost)
	check(t, right.Touch())
	if v := must[[]float32](t)(matrix.Scale(2, m).Read(background)); !slices.Equal(v, []float32{2, 4, 6, 8, 10, 12}) {
		t.Errorf("the elements are %v", v)
	}
	check(t, errors.Join(left.Close(), right.Close(), m.Close(), dev.Close()))
}

// TestReopenShrunk replaces what was lost of matrices that have less elements than memory.
func TestReopenShrunk(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	a, b := owned(t, dev, 2, 2, 1, 2, 3, 4), owned(t, dev, 2, 2, 1, 2, 3, 4)
	mapped := must[*dense](t)(matrix.Map[float32](dev, 2, 2))
	check(t, errors.Join(a.Resize(1, 2), b.Resize(1, 2), mapped.Fill(1), mapped.Resize(1, 2)))
	view := b.Row(0)
	lose(t, dev)
	isError(t, a.SetSlice([]float32{5, 6}), gpu.ErrDeviceLost)
	check(t, dev.Reopen(background))
	isError(t, a.Assign(matrix.Neg(a)), gpu.ErrDeviceLost)
	isError(t, b.Fill(1), gpu.ErrDeviceLost) // its view is one of memory that is lost
	check(t, errors.Join(view.Close(), b.Fill(7), a.SetSlice([]float32{5, 6}), mapped.Fill(8)))
	if mapped.Buffer().Mode() != buffer.Mapped {
		t.Error("it is not mapped any more")
	}
	if v := must[[]float32](t)(matrix.Add(a, b).Read(background)); !slices.Equal(v, []float32{12, 13}) {
		t.Errorf("the sum is %v", v)
	}
	check(t, errors.Join(a.Close(), b.Close(), mapped.Close(), dev.Close()))
}
