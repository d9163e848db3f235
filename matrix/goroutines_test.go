// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestGoroutines has several goroutines use one matrix that none assigns to, as the race detector sees it: one that was made, views of
// it, one of wrapped memory, one whose type is known at run time only, and the zero value, which learns its type from a call.
func TestGoroutines(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, 2, 3, 4, 5, 6}
		made := must[*dense](t)(matrix.FromSlice(dev, 2, 3, x))
		wrapped := must[*dense](t)(matrix.Wrap(dev, 2, 3, x))
		part, turned := made.Slice(0, 2, 1, 3), made.T()
		for m, sum := range map[*dense]float32{made: 21, wrapped: 21, part: 16, turned: 21, new(dense): 0} {
			together(t, dev, m, sum)
		}
		dynamic := must[*matrix.Dense[matrix.Any]](t)(matrix.New[matrix.Any](dev, 2, 3, matrix.Options{Type: matrix.Float32}))
		together(t, dev, dynamic, 0)
		together(t, dev, new(matrix.Dense[matrix.Any]), 0)
		for _, m := range []interface{ Close() error }{part, turned, wrapped, made, dynamic} {
			check(t, m.Close())
		}
	})
}

// together uses a matrix from several goroutines, beginning at once.
func together[T matrix.Elem](t *testing.T, dev *gpu.Device, m *matrix.Dense[T], sum T) {
	t.Helper()
	const n = 4
	start, errs := make(chan struct{}), make(chan error)
	for range n {
		go func() {
			<-start
			errs <- use(t, dev, m, sum)
		}()
	}
	close(start)
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// use asks a matrix everything that does not change it.
func use[T matrix.Elem](t *testing.T, dev *gpu.Device, m *matrix.Dense[T], want T) error {
	_, _, _, _, _, _ = m.DType(), m.Stride(), m.ColMajor(), m.Offset(), m.Device(), m.Capacity()
	_, _, _ = m.IsEmpty(), m.External(), m.Buffer().Size()
	rows, cols := m.Dims()
	if rows*cols == 0 { // there is nothing to read
		return m.Err()
	}
	got, err := m.Expr().Sum().On(dev).Value(t.Context())
	if err != nil {
		return err
	}
	if got != want {
		t.Errorf("the sum is %v, want %v", got, want)
	}
	view := m.RowSlice(0, 1)
	_, atErr := m.At(t.Context(), rows-1, cols-1)
	_, readErr := view.Read(t.Context())
	if err := m.Access(t.Context(), buffer.Reads, func([]T) error { return nil }); err != nil && !errors.Is(err, gpu.ErrUnsupported) {
		return err
	}
	copied, err := m.Clone()
	if err != nil {
		return err
	}
	return firstOf(atErr, readErr, copied.Assign(matrix.Add(m, m)), copied.Close(), view.Close(), m.Sync(t.Context()))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestNilContextMeanwhile has calls without a context refused while another evaluation runs, too.
func TestNilContextMeanwhile(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var none context.Context
		var result dense
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		matrix.During(dev, func() {
			for name, err := range map[string]error{
				"CopyTo": second(a.CopyTo(none, dev)),
				"Assign": result.AssignContext(none, matrix.Mul(a, a)),
				"Read":   second(matrix.Mul(a, a).Read(none)),
			} {
				if !errors.Is(err, gpu.ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
		check(t, a.Close())
	})
}
