// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

var (
	onDevices = devtest.Each
	open      = devtest.Open
	check     = devtest.Check
)

func must[V any](t testing.TB) func(V, error) V { return devtest.Must[V](t) }

func second[V any](_ V, err error) error { return err }

func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// holds fails unless the array has the elements, in C order.
func holds[T ndarray.Elem](t testing.TB, what string, a *ndarray.Array, want ...T) {
	t.Helper()
	got, err := ndarray.Data[T](t.Context(), a)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// fillPart fills a part of an array.
func fillPart(t testing.TB, a *ndarray.Array, part ndarray.Region, value float64) error {
	t.Helper()
	v, err := a.Slice(part)
	if err != nil {
		return err
	}
	return errors.Join(v.Fill(t.Context(), value), v.Close())
}

// assignPart assigns to a part of an array.
func assignPart(t testing.TB, a *ndarray.Array, part ndarray.Region, src *ndarray.Array) error {
	t.Helper()
	v, err := a.Slice(part)
	if err != nil {
		return err
	}
	return errors.Join(v.Assign(t.Context(), src), v.Close())
}

// closed closes arrays and fails unless nothing of the device's is in use then.
func closed(t testing.TB, dev *gpu.Device, arrays ...*ndarray.Array) {
	t.Helper()
	for _, a := range arrays {
		check(t, a.Close())
	}
	if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
		t.Errorf("%d bytes in %d buffers are in use after everything was closed", s.LiveBytes, s.Buffers)
	}
}

// from makes an array in a memory of each kind: the library's, a Go slice, a slice whose bits are on the device, a GPU
// buffer, and mapped memory.
func from[T ndarray.Elem](t testing.TB, dev *gpu.Device, data []T, shape ...int) map[string]*ndarray.Array {
	t.Helper()
	must := must[*ndarray.Array](t)
	made := map[string]*ndarray.Array{"owned": must(ndarray.FromSlice(dev, data, shape...))}
	made["wrapped"] = must(ndarray.Wrap(dev, slices.Clone(data), shape, ndarray.Placement{}))
	made["wrapped, on the device"] = must(ndarray.Wrap(dev, make([]T, len(data)), shape, ndarray.Placement{}))
	raw := must(ndarray.FromSlice(dev, data, shape...))
	bytes, err := raw.Bytes(t.Context())
	check(t, err)
	b, err := made["wrapped, on the device"].Buffer()
	check(t, err)
	check(t, errors.Join(b.Write(0, gpu.HostBytes(bytes)), b.Close()))
	theirs, err := raw.Buffer()
	check(t, err)
	mem, err := theirs.Memory(buffer.Reads)
	check(t, err)
	wrapped, err := buffer.WrapDevice(dev, mem.Handle(), func() {
		if err := errors.Join(theirs.Close(), raw.Close()); err != nil {
			t.Error(err)
		}
	})
	check(t, err)
	made["GPU buffer"] = must(ndarray.New(wrapped, ndarray.TypeOf[T](), shape, nil, 0))
	check(t, wrapped.Close())
	mapped, err := buffer.Map(dev, len(bytes))
	check(t, err)
	check(t, mapped.Access(t.Context(), buffer.Range(0, mapped.Size()), buffer.Writes, func(m []byte) error { copy(m, bytes); return nil }))
	made["mapped"] = must(ndarray.New(mapped, ndarray.TypeOf[T](), shape, nil, 0))
	check(t, mapped.Close())
	return made
}

func count(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

var i32 = dtype.Int32
