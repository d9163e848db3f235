// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Body is what a task does: [Func], [Host], [Expr], [Eval], [Kernel] or [Cruncher].
type Body struct {
	kind  string
	host  bool // needs no device
	wgsl  bool // needs a device that compiles it
	run   func(*Dispatch) error
	check func(*Task) []error // of a task whose ports are right
}

// Func is a Go function that queues work on a device of the graph and returns. Work queued on one device runs in order, and tasks that
// need the results elsewhere wait for them. The outputs carry its error or panic.
func Func(f func(d *Dispatch) error) Body { return Body{kind: "func", run: f} }

// Host is a Go function that needs no device.
func Host(f func(d *Dispatch) error) Body { return Body{kind: "host", host: true, run: f} }

// Operands returns the block at an input as an expression on the task's device.
type Operands[T matrix.Elem] func(port string) *matrix.Expr[T]

// expression builds the operand that is assigned to an output. nil means that the task passes the block on as it is.
type expression[T matrix.Elem] func(d *Dispatch) (matrix.Operand[T], error)

// Expr computes expressions of package matrix: the first function's for the task's first output, and so on. All of them read the inputs
// as they came. The result of an output in place of an input goes into the input's block; if its function is nil the task passes the
// block on unchanged.
//
//	graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] {
//		return in("x").Mul(in("w")).Add(in("b")).Relu()
//	})
func Expr[T matrix.Elem](exprs ...func(in Operands[T]) matrix.Operand[T]) Body {
	list := make([]expression[T], len(exprs))
	for i, f := range exprs {
		if f != nil {
			list[i] = func(d *Dispatch) (x matrix.Operand[T], err error) {
				x = f(func(port string) *matrix.Expr[T] {
					m, merr := Matrix[T](d, port)
					err = cmp.Or(err, merr)
					return matrix.Transpose(matrix.Transpose(m)) // the matrix itself, as an expression
				})
				return x, err
			}
		}
	}
	return exprBody(list, nil)
}

// Eval is [Expr] for expressions as text for [matrix.Eval]: graph.Eval[float32]("relu(x*w + b)"). Variables are the task's inputs of type
// T. For an empty text the task passes a block on unchanged.
func Eval[T matrix.Elem](texts ...string) Body {
	list := make([]expression[T], len(texts))
	var faults []error
	for i, text := range texts {
		if text == "" {
			continue
		}
		if err := matrix.Eval[T](text, nil).Err(); errors.Is(err, matrix.ErrSyntax) {
			faults = append(faults, err)
		}
		list[i] = func(d *Dispatch) (matrix.Operand[T], error) {
			vars := map[string]matrix.Operand[T]{}
			for _, p := range d.t.ports {
				if p.kind == outputPort || !strings.Contains(text, p.name) || has[T](p.tmpl, "Eval") != nil {
					continue
				}
				m, err := Matrix[T](d, p.name)
				if err != nil {
					return nil, err
				}
				vars[p.name] = m
			}
			return matrix.Eval(text, vars), nil
		}
	}
	return exprBody(list, faults)
}

func exprBody[T matrix.Elem](list []expression[T], faults []error) Body {
	run := func(d *Dispatch) error {
		rest := func() error { return nil }
		for i, p := range d.t.outs {
			if f := list[i]; f != nil {
				m, x, err := place(d, p, f)
				if err == nil && p.inPlacePort != nil && i+1 < len(list) { // other expressions may read the input yet
					target, kept, before := m, &matrix.Dense[T]{}, rest
					defer func() { _ = kept.Close() }()
					m, rest = kept, func() error { return errors.Join(before(), target.AssignContext(d.ctx, kept)) }
				}
				if err == nil {
					err = m.AssignContext(d.ctx, x)
				}
				if err != nil {
					return err
				}
			}
		}
		return rest()
	}
	check := func(t *Task) []error {
		if !slices.EqualFunc(t.outs, list, func(p *Port, f expression[T]) bool { return f != nil || p.InPlace != "" }) {
			return append(faults, fail("Task "+t.name, gpu.ErrInvalid, itoa(len(list)), " expressions for ", itoa(len(t.outs)), " outputs"))
		}
		return faults
	}
	return Body{kind: "expr", run: run, check: check}
}

// place returns the matrix of an output and what is to be assigned to it.
func place[T matrix.Elem](d *Dispatch, p *Port, f expression[T]) (*matrix.Dense[T], matrix.Operand[T], error) {
	x, err := f(d)
	if err != nil {
		return nil, nil, err
	}
	result, ok := x.(interface {
		Err() error
		Dims() (rows, cols int)
	})
	if !ok {
		return nil, nil, fail(d.t.name, gpu.ErrInvalid, "no expression for ", p.name)
	}
	if err := result.Err(); err != nil {
		return nil, nil, err
	}
	rows, cols := result.Dims()
	b, t, in := d.blocks[p.index], p.tmpl, buffer.Writes
	if p.inPlacePort == nil {
		if t.Pitch == t.cols {
			in = buffer.Replaces // the kernel writes all that matters
		}
		if n := rows / max(t.Planes, 1); t.Records && n != b.rows && fits(t.sizeOf(1), n) {
			b.resize(n)
		}
	}
	if rows != t.Planes*b.rows || cols != t.cols {
		shapes := []fault.Shape{{rows, cols}, {t.Planes * b.rows, t.cols}}
		return nil, nil, &gpu.OpError{Op: "graph: " + d.t.name, Err: ErrTemplate, Detail: "the expression for " + p.name, Shapes: shapes}
	}
	m, err := matrixAt[T](d, b, in)
	return m, x, err
}

// Cruncher runs kernels of a cruncher, on the cruncher's own devices, over the range that items returns. The kernels' arrays are the
// host's copies of the blocks, named like their ports. Sticky and described inputs of one element are scalars. Before the call setup,
// which may be nil, can change the flags of each array: by default inputs are read-only, and new outputs are not read.
func Cruncher(cr *cruncher.Cruncher, id int, kernels string, items func(d *Dispatch) cruncher.Range, setup func(a *cruncher.Any)) Body {
	return Body{
		kind: "cruncher", host: true,
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
		if !p.operand() {
			continue
		}
		if p.scalar() {
			n, err := d.word(p)
			if err != nil {
				return err
			}
			params = append(params, scalarParam(p, uint32(n)))
			continue
		}
		b, typ := d.blocks[p.index], p.tmpl.dtype
		if typ == dtype.Float16 {
			typ = dtype.Uint16
		}
		if _, err := b.s.acquire(d.ctx, hostPlace, p.intent()); err != nil {
			return err
		}
		a, err := cruncher.WrapHost(p.name, typ, gpu.HostBytes(b.s.bytes()), nil)
		if err != nil {
			return err
		}
		defer func() { _ = a.Close() }() // nothing of it is left to fail
		f := cruncher.DefaultFlags()
		f.ReadOnly, f.Read = !p.writable(), p.kind != outputPort
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

func scalarParam(p *Port, bits uint32) cruncher.Param {
	switch p.tmpl.dtype {
	case dtype.Int32:
		return cruncher.NewScalar(p.name, int32(bits))
	case dtype.Uint32:
		return cruncher.NewScalar(p.name, bits)
	}
	return cruncher.NewScalar(p.name, math.Float32frombits(bits))
}

// Kernel runs a kernel of WGSL source on blocks where they are on the task's device. The source is that of
// [cruncher.New]: a function fn name(i: u32) that uses arrays named like the ports, or a complete module. Sticky and described
// inputs of one element are scalars; an output in place of an input has the input's name. items says how many
// work items there are in each dimension, the others 0 or 1; without it there is one for each element of the first output.
//
// A task with a kernel needs a device that compiles WGSL. Mistakes that are found without compiling are faults of the graph; the outputs
// carry the error of the compiler.
func Kernel(wgsl, name string, items func(d *Dispatch) [3]int) Body {
	source, err := kernel.Parse(wgsl)
	return Body{
		kind: "kernel", wgsl: true,
		run: func(d *Dispatch) error { return d.launch(items) },
		check: func(t *Task) []error {
			err := err
			if t.program == nil && err == nil {
				t.program, err = t.build(source, name)
			}
			if err != nil {
				return []error{err}
			}
			return nil
		},
	}
}

// dropKernels releases a task's kernels at a Teardown. If the task has not returned, it may be about to launch them, so they are released
// at the end of the dispatch.
func (g *Graph) dropKernels(t *Task) {
	if !t.running && t.program != nil {
		g.dropped = append(g.dropped, t.program.Close)
	}
}

// operand reports whether kernels see a port's block.
func (p *Port) operand() bool { return !p.meta() && p.inPlacePort == nil }

// scalar reports whether kernels see a port as a number.
func (p *Port) scalar() bool {
	t := p.tmpl
	return (p.kind == stickyPort || p.kind == describedPort) && !t.Records && t.dtype.Size() == 4 && t.Planes*t.rows*t.cols == 1
}

// build parses the source with the ports as its declarations.
func (t *Task) build(source *kernel.Source, name string) (*kernel.Program, error) {
	var decls []kernel.Decl
	for _, p := range t.ports {
		switch {
		case !p.operand():
		case p.scalar():
			decls = append(decls, kernel.Decl{Name: p.name, Type: p.tmpl.dtype, Scalar: true})
		default:
			d := kernel.Decl{Name: p.name, Type: p.tmpl.dtype, ReadOnly: !p.writable()}
			if d.Type.Size() < 4 {
				d.Mode = kernel.Packed
			}
			decls = append(decls, d)
		}
	}
	return source.Build(name, decls, [3]int{localSize(t.g.devices)})
}

// localSize is a workgroup that all devices allow.
func localSize(devices []*gpu.Device) int {
	n := 256
	for _, d := range devices {
		l := d.Info().Limits
		n = min(n, int(l.MaxInvocations), int(l.MaxGroupSize[0]))
	}
	return max(n, 1)
}

// launch runs the task's kernel.
func (d *Dispatch) launch(items func(d *Dispatch) [3]int) error {
	p := d.t.program
	if _, err := p.Compile(d.ctx, d.Device()); err != nil {
		return err
	}
	count := [3]int{}
	if items != nil {
		count = items(d)
	} else if outs := d.t.outs; len(outs) > 0 {
		t := outs[0].tmpl
		count = [3]int{t.sizeOf(d.blocks[outs[0].index].rows) / t.dtype.Size(), 1, 1}
	}
	if slices.Contains(count[:max(p.Dims, 1)], 0) {
		return nil
	}
	var args []kernel.Argument
	for _, s := range p.Scalars {
		n, err := d.word(d.t.Port(s.Name))
		if err != nil {
			return err
		}
		args = append(args, kernel.Argument{Name: s.Name, Type: s.Type, Bits: []uint32{uint32(n)}})
	}
	var results []*buffer.Buffer
	for _, a := range p.Arrays {
		port := d.t.Port(a.Name)
		s, in := d.blocks[port.index].s, port.intent()
		b, err := s.acquire(d.ctx, d.worker, in)
		if err != nil {
			return err
		}
		mem, err := use(d.ctx, b, in)
		if err != nil {
			return err
		}
		if in != buffer.Reads {
			results = append(results, b)
		}
		args = append(args, kernel.Argument{Name: a.Name, Type: a.Type, Buffer: mem, Length: s.size / a.Type.Size()})
	}
	if err := p.Launch(d.ctx, d.Device(), kernel.Range{Count: count, Total: count}, args...); err != nil {
		return err
	}
	for _, b := range results {
		wrote(b)
	}
	return nil
}
