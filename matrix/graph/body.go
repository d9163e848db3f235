// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Body is what a task does: [Func], [Host], [Expr], [Kernel] or [Cruncher].
type Body struct {
	sort  string
	host  bool // needs no device
	needs gpu.Features
	run   func(*Dispatch) error
	check func(*Task) []error
}

// Func is a Go function that has a device of the graph's. It queues work there and returns; what is queued on one device runs
// in order, and whoever needs results elsewhere waits for them. An error of its, or a panic, goes to the outputs.
func Func(f func(d *Dispatch) error) Body {
	return Body{sort: "func", run: f}
}

// Host is a Go function that needs no device.
func Host(f func(d *Dispatch) error) Body {
	return Body{sort: "host", host: true, run: f}
}

// Operands finds the matrix of an input, as an operand of an expression.
type Operands func(port string) matrix.AnyExpr

// Expr computes matrix expressions: the first one for the task's first output, and so on. An output in place of an input has
// that input's block for its result; with nil for its expression it passes the block on as it is.
func Expr(exprs ...func(in Operands) matrix.AnyExpr) Body {
	return Body{
		sort: "expr",
		run:  func(d *Dispatch) error { return assignAll(d, exprs) },
		check: func(t *Task) []error {
			outputs, whole := 0, true
			for _, p := range t.ports {
				if p.kind == outputPort {
					whole = whole && (outputs >= len(exprs) || exprs[outputs] != nil || p.inPlace != "")
					outputs++
				}
			}
			if outputs != len(exprs) || !whole {
				return []error{fail("Task "+t.name, gpu.ErrInvalid, itoa(len(exprs)), " expressions for the outputs")}
			}
			return nil
		},
	}
}

func assignAll(d *Dispatch, exprs []func(Operands) matrix.AnyExpr) error {
	next := 0
	for _, p := range d.t.ports {
		if p.kind != outputPort {
			continue
		}
		f := exprs[next]
		next++
		if f == nil {
			continue
		}
		if err := assign(d, p, f); err != nil {
			return err
		}
	}
	return nil
}

func assign(d *Dispatch, p *Port, f func(Operands) matrix.AnyExpr) error {
	var failed error
	x := f(func(port string) matrix.AnyExpr {
		m, err := d.Matrix(port)
		if err != nil {
			failed = err
			return matrix.AnyExpr{}
		}
		return m.Expr()
	})
	if failed != nil {
		return failed
	}
	if err := x.Err(); err != nil {
		return err
	}
	b := d.blocks[p.index]
	rows, cols := x.Dims()
	if t := p.tmpl; t.records && p.inPlacePort == nil && rows != t.planes*b.rows && t.planes > 0 && rows%t.planes == 0 {
		if err := d.Resize(p.name, rows/t.planes); err != nil {
			return err
		}
		b = d.blocks[p.index]
	}
	if x.DType() != p.tmpl.dtype || rows != p.tmpl.planes*b.rows || cols != p.tmpl.cols {
		return &gpu.OpError{
			Op: "graph: " + d.t.name, Err: ErrTemplate, Detail: "the expression for " + p.name,
			Shapes: []gpu.Shape{{rows, cols}, {p.tmpl.planes * b.rows, p.tmpl.cols}},
		}
	}
	whole := Write // the kernel writes all that matters
	if p.tmpl.pitch != p.tmpl.cols {
		whole = ReadWrite
	}
	m, err := d.shell(p, b, whole)
	if err != nil {
		return err
	}
	return m.Expr().Matrix().Assign(x)
}

// Cruncher runs kernels of a cruncher, which has devices of its own, over the range that items gives: on the host's side of the
// blocks, under the names of their ports. Sticky and described inputs of one element are scalars. setup, which may be nil, sets
// the flags of each array before the call: inputs are read-only, new outputs are not read.
func Cruncher(cr *cruncher.Cruncher, id int, kernels string, items func(d *Dispatch) cruncher.Range, setup func(a *cruncher.Any)) Body {
	return Body{
		sort: "cruncher", host: true,
		run: func(d *Dispatch) error { return crunch(d, cr, id, kernels, items(d), setup) },
		check: func(t *Task) []error {
			if cr == nil || items == nil {
				return []error{fail("Task "+t.name, gpu.ErrInvalid, "no cruncher or no range")}
			}
			return nil
		},
	}
}

func crunch(d *Dispatch, cr *cruncher.Cruncher, id int, kernels string, r cruncher.Range, setup func(*cruncher.Any)) (err error) {
	var params []cruncher.Param
	for _, p := range d.t.ports {
		if p.effect != noEffect || p.kind == outputPort && p.inPlacePort != nil {
			continue
		}
		b := d.blocks[p.index]
		if p.scalar() {
			n, err := d.words(p, 1)
			if err != nil {
				return err
			}
			params = append(params, scalarParam(p, uint32(n[0])))
			continue
		}
		writes := p.kind == outputPort || p.written
		access := Read
		if writes {
			access = ReadWrite
		}
		if err := b.s.acquire(d.ctx, hostPlace, access); err != nil {
			return err
		}
		a, err := cruncher.WrapHost(p.name, crunchType(p.tmpl), gpu.HostBytes(b.s.host[:b.s.n:b.s.n]), nil)
		if err != nil {
			return err
		}
		defer func() { _ = a.Close() }() // nothing of it is left to fail
		f := cruncher.DefaultFlags()
		f.ReadOnly, f.Read = !writes, !writes || p.written
		if err := a.SetFlags(f); err != nil {
			return err
		}
		if setup != nil {
			setup(a)
		}
		params = append(params, a)
	}
	return cr.Compute(d.ctx, id, kernels, r, params...)
}

func crunchType(t *Template) cruncher.Type {
	switch {
	case t.raw:
		return cruncher.Uint8
	case t.dtype == matrix.Int32:
		return cruncher.Int32
	case t.dtype == matrix.Uint32:
		return cruncher.Uint32
	case t.dtype == matrix.Float16:
		return cruncher.Uint16
	}
	return cruncher.Float32
}
