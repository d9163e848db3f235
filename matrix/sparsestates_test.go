// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// sparseCalls are the methods of Sparse that do something, and the functions that take one.
var sparseCalls = map[string]func(s *sparse) error{
	"Alias":       func(s *sparse) error { return s.Alias().Err() },
	"Append":      func(s *sparse) error { return s.Append(2, 3, 1) },
	"Assign":      func(s *sparse) error { return new(dense).Assign(s) },
	"Clone":       func(s *sparse) error { return second(s.Clone()) },
	"ColumnSlice": func(s *sparse) error { return s.ColumnSlice(0, 1).Err() },
	"Move":        func(s *sparse) error { return second(s.Move()) },
	"Read": func(s *sparse) error {
		_, _, _, err := s.Read(background)
		return err
	},
	"Structure": func(s *sparse) error {
		_, _, err := s.Structure()
		return err
	},
	"Sync":    func(s *sparse) error { return s.Sync(background) },
	"Take":    func(s *sparse) error { return (&sparse{}).Take(s) },
	"ToDense": func(s *sparse) error { return second(s.ToDense()) },
	"Touch":   func(s *sparse) error { return s.Touch() },
	"Values":  func(s *sparse) error { return s.Values().Err() },

	"Expr":     func(s *sparse) error { return s.Expr().Err() },
	"Sparse":   func(s *sparse) error { return second(s.Expr().Sparse()) },
	"T":        func(s *sparse) error { return s.T().Err() },
	"ToFormat": func(s *sparse) error { return second(s.ToFormat(matrix.CSR)) },
	"With":     func(s *sparse) error { return s.Expr().With(matrix.Fill[float32](1, 1, 2)).Err() },

	"Mul":            func(s *sparse) error { return new(dense).Mul(s, &dense{}) },
	"MulBlockColumn": func(s *sparse) error { return second(matrix.MulBlockColumn(matrix.Fill[float32](1, 1, 2), s)) },
}

// sparseQueries are those that answer whatever the state.
var sparseQueries = []string{"Close", "DType", "Device", "Dims", "Err", "External", "Format", "NNZ"}

// TestSparseStates makes every call on a matrix that is nil, that nobody made, that is closed, that is a bad view, and whose
// device is closed or lost: each is a typed error.
func TestSparseStates(t *testing.T) {
	for m := range reflect.TypeFor[*sparse]().Methods() {
		if sparseCalls[m.Name] == nil && !slices.Contains(sparseQueries, m.Name) {
			t.Errorf("%s is in no table", m.Name)
		}
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		closed := must[*sparse](t)(sound(matrix.CSC).make(dev))
		good := closed.Alias()
		check(t, closed.Close())
		refusesAll(t, "nil", nil, buffer.ErrNil)
		refusesAll(t, "zero value", &sparse{}, gpu.ErrInvalid)
		refusesAll(t, "closed", closed, gpu.ErrClosed)
		refusesAll(t, "bad view", good.ColumnSlice(3, 2), buffer.ErrIndex)
		isError(t, (*sparse)(nil).Take(good), buffer.ErrNil)
		isError(t, closed.Take(good), gpu.ErrClosed)
		isError(t, good.ColumnSlice(3, 2).Take(good), buffer.ErrIndex)
		isError(t, good.Take(nil), buffer.ErrNil)
		isError(t, good.Take(closed), gpu.ErrClosed)
		check(t, good.Close())
		nothingLeft(t, dev)
		withoutDevice(t, dev, func() { check(t, dev.Close()) }, gpu.ErrClosed)
	})
	t.Run("lost", func(t *testing.T) {
		dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
		withoutDevice(t, dev, func() { lose(t, dev) }, gpu.ErrDeviceLost)
		check(t, dev.Close())
	})
}

// refusesAll makes all calls but those in fine.
func refusesAll(t *testing.T, state string, s *sparse, want error, fine ...string) {
	t.Helper()
	entries := s.NNZ()
	for call, f := range sparseCalls {
		if slices.Contains(fine, call) {
			continue
		}
		if err := f(s); !errors.Is(err, want) {
			t.Errorf("%s: %s: %v, want %v", state, call, err, want)
		}
	}
	if n := s.NNZ(); n != entries || s.DType() != matrix.Float32 || s.Format() != matrix.CSC {
		t.Errorf("%s: %d entries, had %d; %v, %v", state, n, entries, s.DType(), s.Format())
	}
	if len(fine) == 0 {
		check(t, errors.Join(s.Close(), s.Close()))
	}
}

// withoutDevice ends the device of several matrices. What the host has can be read and moved about, and memory is released.
func withoutDevice(t *testing.T, dev *gpu.Device, end func(), want error) {
	t.Helper()
	p := sound(matrix.CSC)
	released := 0
	release := matrix.Options{Release: func() { released++ }}
	s := must[*sparse](t)(p.make(dev))
	host := must[*sparse](t)(p.wrap(dev, release))
	written := must[*sparse](t)(p.with(slices.Clone(p.values)).wrap(dev, release))
	v := written.Values()
	check(t, v.Scale(2, v))
	check(t, v.Close())
	end()
	refusesAll(t, "owned", s, want, "Move", "Take")
	refusesAll(t, "on the host", host, want, "Move", "Take", "Read", "Sync")
	refusesAll(t, "written", written, want, "Move", "Take")
	check(t, host.Sync(background))
	samePartsOf(t, "on the host", host, p.values, p.indices, p.pointers)
	m := must[*sparse](t)(host.Move())
	check(t, s.Take(m))
	samePartsOf(t, "taken", s, p.values, p.indices, p.pointers)
	if released != 0 {
		t.Error("released early")
	}
	check(t, errors.Join(s.Close(), host.Close(), m.Close(), written.Close(), s.Close()))
	if released != 2 {
		t.Errorf("released %d times, want 2", released)
	}
	for _, f := range formats {
		isError(t, second(sound(f).make(dev)), want)
		isError(t, second(sound(f).wrap(dev, release)), want)
	}
	if released != 2 {
		t.Error("memory that was not taken over was released")
	}
}

// TestSparseTake has the rows of moves. The last share releases, once.
func TestSparseTake(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		y := must[*dense](t)(matrix.New[float32](dev, 4, 2))
		c := &dense{}
		for _, f := range formats {
			p, q := sound(f), sound(matrix.CSC)
			released := 0
			a := must[*sparse](t)(q.make(dev))
			check(t, c.Mul(a, y)) // has a list of rows, which goes with the rest
			b := must[*sparse](t)(p.wrap(dev, matrix.Options{Release: func() { released++ }}))
			al := b.Alias()
			check(t, a.Take(b))
			samePartsOf(t, "taken", a, p.values, p.indices, p.pointers)
			if rows, cols := a.Dims(); rows != p.rows || cols != p.cols || a.Format() != f || !a.External() {
				t.Errorf("%dx%d, %v, external %v", rows, cols, a.Format(), a.External())
			}
			if rows, cols := b.Dims(); rows+cols+b.NNZ() != 0 || b.External() || b.Device() != nil {
				t.Error("the source is something")
			}
			isError(t, b.Sync(background), gpu.ErrInvalid)
			check(t, a.Take(a))
			check(t, b.Take(a)) // as good as new
			isError(t, a.Sync(background), gpu.ErrInvalid)
			samePartsOf(t, "taken back", b, p.values, p.indices, p.pointers)
			check(t, errors.Join(b.Take(al), a.Close(), al.Close()))
			if released != 0 {
				t.Error("released early")
			}
			samePartsOf(t, "taken from an alias", b, p.values, p.indices, p.pointers)
			m := must[*sparse](t)(b.Move())
			check(t, b.Close())
			samePartsOf(t, "moved", m, p.values, p.indices, p.pointers)
			check(t, errors.Join(m.Close(), m.Close()))
			if released != 1 {
				t.Errorf("released %d times", released)
			}
		}
		check(t, errors.Join(y.Close(), c.Close()))
		nothingLeft(t, dev)
	})
}
