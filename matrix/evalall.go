// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// EvalAll evaluates statements as [Eval] reads them, and returns the matrices that are the values of names, in their order; the name ""
// is the value of the last statement. Statements after one that is returned use its matrix, so that nothing is computed twice.
// A text without matrices needs the device; where there are some it may be nil. Everything is queued, and closed again where
// something fails. Values of another element type are converted to T. A name that no statement has is [ErrName].
func EvalAll[T Elem](dev *gpu.Device, text string, vars map[string]*Dense[T], names ...string) ([]*Dense[T], error) {
	const op = "EvalAll"
	dry := evaluatorOf(vars)
	if x := dry.run(text); x.Err != nil {
		return nil, x.Err
	}
	for _, name := range names {
		switch x := dry.names[name]; {
		case name == "":
		case x == nil:
			return nil, fail(op, ErrName, "no statement of the name ", name)
		case x.Err != nil:
			return nil, x.Err
		}
	}
	r := results[T]{op: op, dev: dev, made: map[string]*Dense[T]{}}
	e := evaluatorOf(vars)
	e.define = func(name string, x *node) *node {
		if slices.Contains(names, name) {
			return r.evaluate(name, x)
		}
		return x
	}
	x := e.run(text)
	if slices.Contains(names, "") && r.err == nil {
		x = r.evaluate("", x)
	}
	if err := firstError(r.err, x.Err); err != nil {
		for _, m := range r.made {
			_ = m.Close() // the failure is told
		}
		return nil, err
	}
	list := make([]*Dense[T], len(names))
	for i, name := range names {
		list[i] = r.made[name]
	}
	return list, nil
}

// results are those of EvalAll.
type results[T Elem] struct {
	op   string
	dev  *gpu.Device
	made map[string]*Dense[T]
	err  error // the first one
}

// evaluate queues the computation of a statement's value. It returns the matrix as an operand.
func (r *results[T]) evaluate(name string, x *node) *node {
	if isNumber(x) {
		x = numberNode(typeOf[T](), x.Value)
	}
	x = x.Typed(fuse.F32)
	if t := typeOf[T](); t != expr.Untyped && x.Err == nil && x.Type != t {
		x = expr.NewConversion(r.op, t, x)
	}
	if r.dev != nil && x.Dev == nil && x.Err == nil {
		on := *x
		on.Dev = r.dev
		x = &on
	}
	m := &Dense[T]{}
	if err := m.queue(r.op, &Expr[T]{x}); err != nil {
		r.err = firstError(r.err, err)
		return expr.Failed(err)
	}
	if old := r.made[name]; old != nil { // of a statement before with the same name
		r.err = firstError(r.err, old.Close())
	}
	r.made[name] = m
	return m.core().operand("Eval")
}
