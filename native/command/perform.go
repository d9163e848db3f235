// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// results are what a text gives, of types that are known when it ran.
type results []matrix.Named[matrix.Any]

func (r results) close() {
	for _, one := range r {
		_ = one.Close() // it was read
	}
}

// perform does a task whose files were read: it writes the results to outs, or prints the last one where there are none.
func (t *task) perform(ctx context.Context, outs []io.Writer) error {
	vars, r, err := t.matrices()
	if err != nil {
		return err
	}
	if t.explain != "" {
		return t.explained(ctx, vars)
	}
	t.progress.enter("computing", 0)
	start := time.Now()
	all, err := t.evaluate(ctx, vars)
	if err != nil {
		return t.advised(err)
	}
	defer all.close()
	last := all[len(all)-1]
	if err := resultOf(last).Sync(ctx); err != nil {
		return err
	}
	spent := time.Since(start)
	r.Rows, r.Cols = resultOf(last).Dims()
	r.DType = resultOf(last).DType().String()
	if last.Sparse != nil {
		entries := last.Sparse.NNZ()
		r.Entries = &entries
	}
	var show func(io.Writer) error
	for i, o := range t.outputs {
		m := last
		if o.name != "" {
			at := slices.IndexFunc(all, func(n matrix.Named[matrix.Any]) bool { return n.Name == o.name })
			if at < 0 {
				return fault.Fail("-o "+o.name, matrix.ErrName, "no statement gives a result of that name")
			}
			m = all[at]
			rows, cols := resultOf(m).Dims()
			r.Written = append(r.Written, namedResult{o.name, rows, cols, resultOf(m).DType().String(), o.value})
		}
		if err := t.save(ctx, outs[i], o.value, m, &spent); err != nil {
			return err
		}
	}
	if len(outs) == 0 {
		if show, err = t.shown(ctx, last, &r, &spent); err != nil {
			return err
		}
	}
	info := t.dev.Info()
	r.Adapter, r.Driver, r.Seconds = info.Name, info.Driver, spent.Seconds()
	for _, d := range t.opened {
		stats := d.Stats()
		r.Dispatches, r.BytesUp, r.BytesDown = r.Dispatches+stats.Dispatches, r.BytesUp+stats.BytesUp, r.BytesDown+stats.BytesDown
	}
	if t.group != nil {
		r.Devices, r.Shares = deviceReports(t.opened), t.group.Last()
	}
	return t.report(r, func(w io.Writer) error { return r.print(w, show) })
}

// advised adds to an error of operands of two types what the command can do about those of files.
func (t *task) advised(err error) error {
	op, ok := errors.AsType[*gpu.OpError](err)
	mixed := slices.ContainsFunc(t.operands, func(x *array) bool { return x.Type != t.operands[0].Type })
	if !ok || !mixed || t.cast || !strings.HasSuffix(op.Detail, "convert one, as in float32(A)") {
		return err
	}
	more := *op
	more.Detail += ", or use --cast"
	return &more
}

// matrices makes those of the files.
func (t *task) matrices() (vars map[string]matrix.Operand[matrix.Any], r result, err error) {
	vars = map[string]matrix.Operand[matrix.Any]{}
	if t.cast {
		r.Change = new(float64)
	}
	for i, x := range t.operands {
		if vars[t.inputs[i].name], err = t.operandOf(x); err != nil {
			return nil, r, inFile(x.path, err)
		}
		if t.cast {
			*r.Change = max(*r.Change, x.change)
		}
	}
	return vars, r, nil
}

// denseOf is a matrix of all elements, in the file's memory.
func (t *task) denseOf(x *array, rows, cols int) (*matrix.Dense[matrix.Any], error) {
	options := matrix.Options{ColMajor: x.Fortran, Type: elementTypes[x.Type]}
	return matrix.FromBuffer[matrix.Any](t.dev, rows, cols, gpu.HostBytes(x.data), buffer.DontOwnBuffer, options)
}

// resultOf is a result, dense or sparse.
func resultOf(n matrix.Named[matrix.Any]) interface {
	Sync(ctx context.Context) error
	Dims() (rows, cols int)
	DType() matrix.DType
} {
	if n.Sparse != nil {
		return n.Sparse
	}
	return n.Matrix
}

// dense calls f with a result, of which a sparse one is made dense for that.
func dense(n matrix.Named[matrix.Any], f func(*matrix.Dense[matrix.Any]) error) error {
	if n.Sparse == nil {
		return f(n.Matrix)
	}
	m, err := n.Sparse.ToDense()
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // it was read
	return f(m)
}

// shown reads what is printed of a result: the entries of a sparse one that is large.
func (t *task) shown(ctx context.Context, n matrix.Named[matrix.Any], r *result, spent *time.Duration) (show func(io.Writer) error, err error) {
	if n.Sparse != nil && (r.Rows > 0 && r.Cols > maxNested/r.Rows) {
		return printedEntries(ctx, n.Sparse)
	}
	err = dense(n, func(m *matrix.Dense[matrix.Any]) error {
		show, err = printed(ctx, m, r, spent)
		return err
	})
	return show, err
}

// save writes a result to a file of its kind.
func (t *task) save(ctx context.Context, out io.Writer, path string, n matrix.Named[matrix.Any], spent *time.Duration) error {
	if n.Sparse != nil {
		if done, err := t.writeSparse(ctx, out, path, n.Sparse); done {
			return err
		}
	}
	return dense(n, func(m *matrix.Dense[matrix.Any]) error { return t.write(ctx, out, path, m, spent) })
}

// print writes the report as text, behind what show prints.
func (r *result) print(w io.Writer, show func(io.Writer) error) error {
	if show != nil {
		if err := show(w); err != nil {
			return err
		}
	}
	if r.Shares != nil {
		if err := r.printShares(w); err != nil {
			return err
		}
	}
	for _, one := range r.Written {
		if _, err := fmt.Fprintf(w, "%s: %dx%d %s in %s\n", one.Name, one.Rows, one.Cols, one.DType, one.File); err != nil {
			return err
		}
	}
	cast := ""
	if r.Change != nil {
		cast = fmt.Sprintf(", largest relative change by --cast: %.3g", *r.Change)
	}
	entries := ""
	if r.Entries != nil {
		entries = fmt.Sprintf(", entries: %d", *r.Entries)
	}
	_, err := fmt.Fprintf(w, "%dx%d %s in %.3f s on %s (%s); dispatches: %d, bytes up: %d, bytes down: %d%s%s\n",
		r.Rows, r.Cols, r.DType, r.Seconds, r.Adapter, r.Driver, r.Dispatches, r.BytesUp, r.BytesDown, entries, cast)
	return err
}
