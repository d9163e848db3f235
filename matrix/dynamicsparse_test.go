// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestSparseOfAny: what the types of Go rule out elsewhere are errors here, and so is what nobody made.
func TestSparseOfAny(t *testing.T) { onDevices(t, sparseOfAny) }

func sparseOfAny(t *testing.T, dev *gpu.Device) {
	ctx := t.Context()
	type (
		number = matrix.Any
		anyOne = matrix.Dense[number]
	)
	none := func(typ matrix.DType, rows, cols int) *anyOne {
		m := must[*anyOne](t)(matrix.New[number](dev, rows, cols, matrix.Options{Type: typ}))
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	index, ptr := []int32{0, 1}, []int32{0, 1, 2, 2}
	values := []int32{5, 6}
	s := must[*matrix.Sparse[number]](t)(
		matrix.SparseFrom[number](dev, matrix.CSC, 2, 3, matrix.Host(values), index, ptr, 0, matrix.Options{Type: matrix.Int32}))
	defer s.Close()
	index[0], values[0] = 7, 7 // they were copied
	x := must[*anyOne](t)(matrix.FromSlice(dev, 3, 1, []number{1, 2, 3}, matrix.Options{Type: matrix.Int32}))
	defer x.Close()
	y := new(anyOne)
	check(t, y.Mul(s, x))
	defer y.Close()
	if got, err := y.Read(ctx); err != nil || got[0] != 5 || got[1] != 12 {
		t.Errorf("product %v, %v", got, err)
	}
	var nobody matrix.Sparse[number]
	var nothing *matrix.Sparse[number]
	f32, dst := none(matrix.Float32, 3, 1), none(matrix.Int32, 2, 1)
	wrap := func(dev *gpu.Device, rows, cols int, values gpu.Host, index, ptr []int32, flags buffer.Flags, t matrix.DType) error {
		return second(matrix.SparseFrom[number](dev, matrix.CSC, rows, cols, values, index, ptr, flags, matrix.Options{Type: t}))
	}
	for name, c := range map[string]struct {
		got  error
		want error
	}{
		"type":           {wrap(dev, 0, 0, gpu.Host{}, nil, []int32{0}, 0, 200), gpu.ErrInvalid},
		"flags":          {wrap(dev, 0, 0, gpu.Host{}, nil, []int32{0}, buffer.SetValueOnDevice, matrix.Int32), gpu.ErrInvalid},
		"float16":        {wrap(dev, 0, 0, gpu.Host{}, nil, []int32{0}, 0, matrix.Float16), gpu.ErrUnsupported},
		"device":         {wrap(nil, 0, 0, gpu.Host{}, nil, []int32{0}, buffer.DontOwnBuffer, matrix.Int32), gpu.ErrInvalid},
		"values":         {wrap(dev, 2, 3, gpu.Host{}, []int32{0}, []int32{0, 1, 1, 1}, buffer.DontOwnBuffer, matrix.Int32), buffer.ErrNil},
		"numbers":        {second(matrix.WrapSparse(dev, matrix.CSC, 0, 0, []number{}, nil, []int32{0})), gpu.ErrUnsupported},
		"factor type":    {new(anyOne).Mul(s, f32), gpu.ErrInvalid},
		"no factor":      {new(anyOne).Mul(s, nil), buffer.ErrNil},
		"no destination": {(*anyOne)(nil).Mul(s, x), buffer.ErrNil},
		"size":           {dst.Slice(0, 1, 0, 1).Assign(s), matrix.ErrView},
		"result type":    {none(matrix.Float32, 2, 3).Assign(s), gpu.ErrInvalid},
		"no dense":       {(*anyOne)(nil).Assign(s), buffer.ErrNil},
		"nil":            {second(nothing.ToDense()), buffer.ErrNil},
		"nil product":    {new(anyOne).Mul(nothing, f32), buffer.ErrNil},
		"nil transpose":  {nothing.T().Err(), buffer.ErrNil},
		"nil format":     {second(nothing.ToFormat(matrix.CSR)), buffer.ErrNil},
		"no format":      {second(s.ToFormat(7)), gpu.ErrInvalid},
		"nil append":     {nothing.Append(0, 0, 0), buffer.ErrNil},
		"nil slice":      {nothing.ColumnSlice(0, 0).Err(), buffer.ErrNil},
		"nil values":     {nothing.Values().Err(), buffer.ErrNil},
		"nil touch":      {nothing.Touch(), buffer.ErrNil},
		"nil sync":       {nothing.Sync(ctx), buffer.ErrNil},
		"nobody":         {second(nobody.ToDense()), gpu.ErrInvalid},
		"nobody, dst":    {dst.Assign(&nobody), gpu.ErrInvalid},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: error %v, want %v", name, c.got, c.want)
		}
	}
	if _, _, err := nothing.Structure(); !errors.Is(err, buffer.ErrNil) {
		t.Errorf("nil structure: %v", err)
	}
	if err := nothing.Close(); err != nil || nothing.DType() != matrix.Float32 || s.DType() != matrix.Int32 {
		t.Errorf("nil: %v, %v", nothing.DType(), err)
	}
	if err := (*anyOne)(nil).SetValue(f32); !errors.Is(err, buffer.ErrNil) {
		t.Errorf("nil matrix: %v", err)
	}
	if err, ok := errors.AsType[*gpu.OpError]((*anyOne)(nil).Err()); !ok || !errors.Is(err, buffer.ErrNil) {
		t.Errorf("the error of a nil matrix: %v", err)
	}
	if err := x.SetValue(nil); !errors.Is(err, buffer.ErrNil) {
		t.Errorf("nil value: %v", err)
	}
	if err := x.SetValue(f32); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("another element type: %v", err)
	}
}
