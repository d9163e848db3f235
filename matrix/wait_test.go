// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package matrix_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestContextsBehindWork cancels every call that waits for a device behind work that does not end. What was queued is done afterwards.
func TestContextsBehindWork(t *testing.T) {
	type dense = *matrix.Dense[float32]
	// Each is called with two matrices that have results on the device, one of them of wrapped memory, and with another device.
	calls := map[string]func(ctx context.Context, a, w dense, other *gpu.Device) error{
		"Sync":         func(ctx context.Context, a, _ dense, _ *gpu.Device) error { return a.Sync(ctx) },
		"Sync of wrap": func(ctx context.Context, _, w dense, _ *gpu.Device) error { return w.Sync(ctx) },
		"Read":         func(ctx context.Context, a, _ dense, _ *gpu.Device) error { _, err := a.Read(ctx); return err },
		"Read of T": func(ctx context.Context, a, _ dense, _ *gpu.Device) error {
			v := a.T()
			_, err := v.Read(ctx)
			return errors.Join(err, v.Close())
		},
		"ReadTo": func(ctx context.Context, a, _ dense, _ *gpu.Device) error { return a.ReadTo(ctx, make([]float32, 4)) },
		"At":     func(ctx context.Context, a, _ dense, _ *gpu.Device) error { _, err := a.At(ctx, 1, 1); return err },
		"Access": func(ctx context.Context, a, _ dense, _ *gpu.Device) error {
			return a.Access(ctx, buffer.Reads, func([]float32) error { return nil })
		},
		"CopyTo": func(ctx context.Context, a, _ dense, other *gpu.Device) error {
			_, err := a.CopyTo(ctx, other)
			return err
		},
		"MoveTo": func(ctx context.Context, a, _ dense, other *gpu.Device) error { return a.MoveTo(ctx, other) },
		"Expr.Read": func(ctx context.Context, a, w dense, _ *gpu.Device) error {
			_, err := matrix.Mul(a, w).Read(ctx)
			return err
		},
		"Expr.Value": func(ctx context.Context, a, _ dense, _ *gpu.Device) error {
			_, err := matrix.Sum(a).Value(ctx)
			return err
		},
		"EqualAll": func(ctx context.Context, a, w dense, _ *gpu.Device) error {
			_, err := matrix.EqualAll(ctx, a, w)
			return err
		},
		"EqualApprox": func(ctx context.Context, a, w dense, _ *gpu.Device) error {
			_, err := matrix.EqualApprox(ctx, a, w, 1)
			return err
		},
	}
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		other := devtest.Open(t, "cpu")
		mem := []float32{1, 2, 3, 4}
		a := devtest.Must[dense](t)(matrix.FromSlice(dev, 2, 2, mem))
		w := devtest.Must[dense](t)(matrix.Wrap(dev, 2, 2, mem))
		devtest.Check(t, errors.Join(a.Assign(matrix.Scale(2, a)), w.Assign(matrix.Scale(3, w)), dev.Sync(t.Context())))
		g.Shut(t, dev)
		devtest.Check(t, errors.Join(a.Assign(matrix.Scale(2, a)), w.Assign(matrix.Scale(3, w))))
		for name, call := range calls {
			devtest.CalledOff(t, name, func(ctx context.Context) error { return call(ctx, a, w, other) })
		}
		devtest.Soon(t, "a getter", func() {
			if a.Buffer().Location() != buffer.Device || w.Buffer().Location() != buffer.Device || a.External() || !w.External() {
				t.Error("a getter is wrong")
			}
		})
		devtest.Soon(t, "an assignment", func() { devtest.Check(t, a.AssignContext(t.Context(), matrix.Add(a, w))) })
		g.Open()
		devtest.Check(t, w.Sync(t.Context()))
		got := devtest.Must[[]float32](t)(a.Read(t.Context()))
		if !slices.Equal(got, []float32{13, 26, 39, 52}) || !slices.Equal(mem, []float32{9, 18, 27, 36}) {
			t.Errorf("got %v, wrapped memory %v", got, mem)
		}
	})
}

// TestCompilerThatHangs gives up an assignment whose kernel does not come. It keeps no other one waiting.
func TestCompilerThatHangs(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		a := devtest.Must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 2, []float32{1, 2}))
		devtest.Check(t, a.Assign(matrix.Scale(2, a)))
		came := g.ShutCompiler()
		stuck := make(chan error)
		go func() { stuck <- a.AssignContext(context.Background(), a.Expr().Tanh().Add(a)) }()
		devtest.Soon(t, "the compiler", func() { <-came })
		devtest.CalledOff(t, "behind another assignment", func(ctx context.Context) error {
			return a.AssignContext(ctx, matrix.Scale(2, a))
		})
		devtest.Soon(t, "Read", func() { _ = devtest.Must[[]float32](t)(a.Read(t.Context())) })
		g.Open()
		devtest.Check(t, errors.Join(<-stuck, a.Assign(matrix.Scale(2, a))))
	})
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		a := devtest.Must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 2, []float32{1, 2}))
		devtest.Check(t, a.Assign(matrix.Scale(2, a)))
		g.ShutCompiler()
		devtest.CalledOff(t, "Assign", func(ctx context.Context) error { return a.AssignContext(ctx, a.Expr().Tanh()) })
		devtest.Soon(t, "the next", func() { devtest.Check(t, a.AssignContext(t.Context(), matrix.Scale(2, a))) })
		g.Open()
		if got := devtest.Must[[]float32](t)(a.Read(t.Context())); !slices.Equal(got, []float32{4, 8}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestAssignBehindSync cancels assignments while another call, whose context does not end, brings an operand or the result back.
func TestAssignBehindSync(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		a := devtest.Must[*matrix.Dense[float32]](t)(matrix.Wrap(dev, 1, 2, []float32{1, 2}))
		b := devtest.Must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 1, 2))
		devtest.Check(t, errors.Join(a.Assign(matrix.Scale(2, a)), b.Assign(matrix.Scale(2, a))))
		t.Cleanup(g.Open)
		g.Shut(t, dev)
		stuck := make(chan error, 1)
		go func() { stuck <- a.Sync(context.Background()) }()
		into := func(m, x *matrix.Dense[float32]) func(context.Context) error {
			return func(ctx context.Context) error { return m.AssignContext(ctx, matrix.Scale(2, x)) }
		}
		devtest.Busy(t, into(b, a))
		devtest.CalledOff(t, "an operand", into(b, a))
		devtest.CalledOff(t, "the result", into(a, b))
		devtest.Soon(t, "another matrix", func() { devtest.Check(t, into(b, b)(t.Context())) })
		g.Open()
		devtest.Check(t, <-stuck)
		if got := devtest.Must[[]float32](t)(a.Read(t.Context())); !slices.Equal(got, []float32{2, 4}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestAssignBesideFullBatch cancels assignments while somebody else has filled the batch of a device at work.
func TestAssignBesideFullBatch(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		const half = 32 << 20
		a := devtest.Must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 2, []float32{1, 2}))
		b := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(half))
		devtest.Check(t, errors.Join(a.Assign(matrix.Scale(2, a)), b.Clear(0, half), dev.Sync(t.Context())))
		g.Shut(t, dev)
		wrote := make(chan error)
		before := dev.Stats().BytesUp
		go func() {
			mem := gpu.HostBytes(make([]byte, half))
			wrote <- errors.Join(b.Write(0, mem), b.Write(0, mem))
		}()
		for dev.Stats().BytesUp < before+2*half {
			time.Sleep(time.Millisecond)
		}
		devtest.CalledOff(t, "Assign", func(ctx context.Context) error { return a.AssignContext(ctx, matrix.Scale(2, a)) })
		g.Open()
		devtest.Check(t, errors.Join(<-wrote, b.Close()))
		if got := devtest.Must[[]float32](t)(a.Read(t.Context())); !slices.Equal(got, []float32{2, 4}) {
			t.Errorf("got %v", got)
		}
	})
}
