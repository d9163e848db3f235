// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// task is an expression over files.
type task struct {
	expr   string // "" is the product of the two inputs
	inputs []input
	output string // "" prints the result
	cast   bool
}

type input struct{ name, path string }

// result is what --json prints for an evaluation.
type result struct {
	Rows       int     `json:"rows"`
	Cols       int     `json:"cols"`
	DType      string  `json:"dtype"`
	Adapter    string  `json:"adapter"`
	Driver     string  `json:"driver"`
	Dispatches uint64  `json:"dispatches"`
	BytesUp    uint64  `json:"bytes_up"`
	BytesDown  uint64  `json:"bytes_down"`
	Seconds    float64 `json:"seconds"` // from data in host memory to the result in host memory
	// Change is there with --cast: the largest relative change of an operand's element.
	Change *float64 `json:"largest_relative_change,omitempty"`
	Values [][]any  `json:"values,omitzero"` // the rows, where no file gets them and there are not too many
}

// evaluate runs a task and reports on it.
func (a *app) evaluate(ctx context.Context, t task) error {
	a.claim(t.output)
	p := newProgress(a.err)
	defer p.stop()
	p.enter("reading", 0)
	var operands []*operand
	defer func() { closeAll(operands) }()
	for _, in := range t.inputs {
		o, err := openOperand(in.name, in.path, p)
		if err != nil {
			return err
		}
		operands = append(operands, o)
	}
	typ, err := elementType(operands, t.cast)
	if err != nil {
		return err
	}
	w := &work{app: a, task: t, operands: operands, typ: typ, progress: p}
	switch {
	case t.cast:
		w.change = new(float64)
		return perform(ctx, w, func(r *npy.Reader) ([]float32, error) { return readCast(r, w.change) })
	case typ == dtype.Float16:
		return perform(ctx, w, npy.Read[matrix.Half])
	case typ == dtype.Int32:
		return perform(ctx, w, npy.Read[int32])
	case typ == dtype.Uint32:
		return perform(ctx, w, npy.Read[uint32])
	default:
		return perform(ctx, w, npy.Read[float32])
	}
}

// work is a task whose files are open.
type work struct {
	app      *app
	task     task
	operands []*operand
	typ      dtype.Type
	progress *progress
	change   *float64 // by --cast; else nil
}

// perform does the work with elements of one type.
func perform[T matrix.Elem](ctx context.Context, w *work, read func(*npy.Reader) ([]T, error)) error {
	var out *output
	if w.task.output != "" {
		var err error
		if out, err = w.app.createOutput(w.task.output); err != nil {
			return err
		}
		defer out.discard()
	}
	dev, err := w.app.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = dev.Close() }() // the result is on the host by then
	for _, o := range w.operands {
		if err := o.checkSize(w.typ, dev.Info().Limits); err != nil {
			return err
		}
	}
	vars := map[string]*matrix.Dense[T]{}
	for _, o := range w.operands {
		if vars[o.name], err = load(dev, o, read); err != nil {
			return err
		}
	}
	w.progress.enter("computing", -1)
	values, res, err := compute(ctx, dev, expression(w.task, vars))
	if err != nil {
		return err
	}
	if out != nil {
		h := npy.Header{Type: w.typ, Shape: []int64{int64(res.Rows), int64(res.Cols)}}
		w.progress.enter("writing", int64(len(values)*w.typ.Size()))
		if err := npy.Write(w.progress.writer(out), h, values); err != nil {
			return err
		}
		if err := out.commit(); err != nil {
			return err
		}
	}
	w.progress.stop()
	res.Change = w.change
	return report(w.app, w.task, res, values)
}

func expression[T matrix.Elem](t task, vars map[string]*matrix.Dense[T]) *matrix.Expr[T] {
	if t.expr == "" {
		return matrix.Mul(vars[t.inputs[0].name], vars[t.inputs[1].name])
	}
	return matrix.Eval(t.expr, vars)
}

// compute evaluates the expression and brings the values back, row by row.
func compute[T matrix.Elem](ctx context.Context, dev *gpu.Device, expr *matrix.Expr[T]) ([]T, *result, error) {
	start := time.Now()
	rows, cols := expr.Dims()
	values, err := expr.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	seconds := time.Since(start).Seconds()
	s, info := dev.Stats(), dev.Info()
	return values, &result{
		Rows: rows, Cols: cols, DType: elemName[T](), Adapter: info.Name, Driver: info.Driver,
		Dispatches: s.Dispatches, BytesUp: s.BytesUp, BytesDown: s.BytesDown, Seconds: seconds,
	}, nil
}

func elemName[T matrix.Elem]() string {
	var d *matrix.Dense[T]
	return d.DType().String()
}

func report[T matrix.Elem](a *app, t task, r *result, values []T) error {
	if a.json {
		if t.output == "" {
			r.Values = nested(r.Rows, r.Cols, values)
		}
		return writeJSON(a.out, r)
	}
	if t.output == "" {
		if err := printMatrix(a.out, r.Rows, r.Cols, values); err != nil {
			return err
		}
	}
	cast := ""
	if r.Change != nil {
		cast = fmt.Sprintf(", largest relative change by --cast: %.3g", *r.Change)
	}
	_, err := fmt.Fprintf(a.out, "%dx%d %s in %.3f s on %s (%s); dispatches: %d, bytes up: %d, bytes down: %d%s\n",
		r.Rows, r.Cols, r.DType, r.Seconds, r.Adapter, r.Driver, r.Dispatches, r.BytesUp, r.BytesDown, cast)
	return err
}
