// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestAnySparse: what the types of Go rule out elsewhere are errors here, and so is what nobody made.
func TestAnySparse(t *testing.T) { onDevices(t, anySparse) }

func anySparse(t *testing.T, dev *gpu.Device) {
	ctx := t.Context()
	part := func(typ matrix.DType, rows, cols int) *matrix.AnyPart {
		m, err := matrix.NewAny(dev, typ, rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m.Expr().Matrix()
	}
	index, ptr := []int32{0, 1}, []int32{0, 1, 2, 2}
	s, err := matrix.NewAnySparse(dev, matrix.Int32, matrix.CSC, 2, 3, matrix.Host([]int32{5, 6}), index, ptr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	index[0] = 7 // it was copied
	x, err := matrix.CopyAny(dev, matrix.Int32, 3, 1, matrix.Host([]int32{1, 2, 3}))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := s.Mul(x.Expr().Matrix())
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	got := make([]int32, 2)
	if err := y.ReadHost(ctx, matrix.Host(got)); err != nil || got[0] != 5 || got[1] != 12 {
		t.Errorf("product %v, %v", got, err)
	}
	var none *matrix.AnySparse
	var nobody matrix.AnySparse
	f32, dst := part(matrix.Float32, 3, 1), part(matrix.Int32, 2, 1)
	for name, c := range map[string]struct {
		got  error
		want error
	}{
		"type":           {second(matrix.NewAnySparse(dev, 200, matrix.CSC, 0, 0, gpu.Host{}, nil, []int32{0})), matrix.ErrInvalid},
		"float16":        {second(matrix.NewAnySparse(dev, matrix.Float16, matrix.CSC, 0, 0, gpu.Host{}, nil, []int32{0})), matrix.ErrUnsupported},
		"device":         {second(matrix.WrapAnySparse(nil, matrix.Int32, matrix.CSC, 0, 0, gpu.Host{}, nil, []int32{0}, nil)), matrix.ErrInvalid},
		"values":         {second(matrix.WrapAnySparse(dev, matrix.Int32, matrix.CSC, 2, 3, gpu.Host{}, []int32{0}, []int32{0, 1, 1, 1}, nil)), matrix.ErrNil},
		"factor type":    {second(s.Mul(f32)), matrix.ErrInvalid},
		"no factor":      {second(s.Mul(nil)), matrix.ErrNil},
		"no factor, dst": {s.MulTo(dst, nil), matrix.ErrNil},
		"no destination": {s.MulTo(nil, x.Expr().Matrix()), matrix.ErrNil},
		"size":           {s.AssignTo(dst), matrix.ErrShape},
		"no dense":       {s.AssignTo(nil), matrix.ErrNil},
		"nil":            {second(none.Dense()), matrix.ErrNil},
		"nil product":    {second(none.Mul(f32)), matrix.ErrNil},
		"nil append":     {none.Append(0, 0, 0), matrix.ErrNil},
		"nil slice":      {second(none.ColumnSlice(0, 0)), matrix.ErrNil},
		"nil values":     {second(none.Values()), matrix.ErrNil},
		"nil touch":      {none.Touch(), matrix.ErrNil},
		"nil sync":       {none.Sync(ctx), matrix.ErrNil},
		"nobody":         {second(nobody.Dense()), matrix.ErrInvalid},
		"nobody, dst":    {nobody.AssignTo(dst), matrix.ErrInvalid},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: error %v, want %v", name, c.got, c.want)
		}
	}
	if _, _, err := none.Structure(); !errors.Is(err, matrix.ErrNil) {
		t.Errorf("nil structure: %v", err)
	}
	if err := none.Close(); err != nil || none.DType() != matrix.Float32 {
		t.Errorf("nil: %v, %v", none.DType(), err)
	}
	m := dst.Expr()
	if err := (*matrix.Any)(nil).SetValue(m.Matrix()); !errors.Is(err, matrix.ErrNil) {
		t.Errorf("nil matrix: %v", err)
	}
	if err := x.SetValue(nil); !errors.Is(err, matrix.ErrNil) {
		t.Errorf("nil value: %v", err)
	}
	if err := x.SetValue(f32); !errors.Is(err, matrix.ErrInvalid) {
		t.Errorf("another element type: %v", err)
	}
}
