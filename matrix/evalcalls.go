// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// constantNamed returns a number that has a name. Matrices may have it instead.
func constantNamed(name string) (v float64, ok bool) {
	switch name {
	case "pi":
		return math.Pi, true
	case "e":
		return math.E, true
	case "inf", "Inf":
		return math.Inf(1), true
	case "nan", "NaN":
		return math.NaN(), true
	}
	return 0, false
}

// call reads the arguments of a function and applies it.
func (e *evaluator) call(start int, name string, depth int) *node {
	var args []*node
	for !e.accept(')') {
		args = append(args, e.binary(0, depth+1))
		if !e.accept(',') && e.scan.Char(e.next) != ')' {
			return e.malformed()
		}
	}
	if strings.EqualFold(name, "mul") {
		return e.fail(start, ErrName, strconv.Quote(name), ": matmul(A, B) is the matrix product, multiply(A, B) the element-wise one")
	}
	return e.apply(start, name, args...)
}

// apply calls a function.
func (e *evaluator) apply(at int, name string, args ...*node) *node {
	lower := strings.ToLower(name)
	if number := textShaping(lower); number >= 0 {
		return e.shaped(at, name, number, args)
	}
	if form, ok := textForms[lower]; ok {
		return e.form(at, name, form, args)
	}
	arity, operation := textFunction(lower)
	switch {
	case arity == 0:
		return firstFailed(args, e.fail(at, ErrName, strconv.Quote(name), e.meantFunction(lower)))
	case arity < 0 && len(args) != 1 && len(args) != -arity: // the last one may be left out
		return firstFailed(args, e.fail(at, ErrSyntax, name, " takes 1 or ", fault.Count(-arity, "argument"), alongAxes(lower)))
	case arity > 0 && len(args) != arity:
		return firstFailed(args, e.fail(at, ErrSyntax, name, " takes ", fault.Count(arity, "argument"), alongAxes(lower)))
	}
	typed := args
	if lower == "where" && (!isNumber(args[1]) || !isNumber(args[2])) {
		typed = args[1:]
		args[0] = condition(args[0], e.beside(typed))
	}
	if failed := e.numbersTyped(at, typed); failed != nil {
		return failed
	}
	n := operation(args)
	switch {
	case n == nil:
		return e.fail(at, ErrSyntax, name, " does not take such arguments")
	case n.Err != nil:
		return expr.Failed(e.placed(at, n.Err))
	}
	return n
}

// alongAxes names the functions that reduce rows and columns as another one reduces everything: NumPy has an argument for that.
func alongAxes(name string) string {
	if arity, _ := textFunction(name + "rows"); arity == 0 {
		return ""
	}
	return ": " + name + "rows(A) makes a column, " + name + "cols(A) a row"
}

// condition gives the condition of where the type of the values that it chooses from.
func condition(n *node, t fuse.Type) *node {
	if t == fuse.C64 {
		t = fuse.F32
	}
	switch {
	case n.Err != nil || n.Type == t || n.Kind == expr.Complex:
		return n
	case n.Type != fuse.Bool:
		n = expr.NewConversion("Where", fuse.Bool, n.Typed(fuse.F32))
	}
	return expr.NewConversion("Where", t, n)
}

// firstFailed is the first operand that failed, or what failed later.
func firstFailed(args []*node, later *node) *node {
	for _, a := range args {
		if a.Err != nil {
			return a
		}
	}
	return later
}

// numbersTyped gives numbers the type of the operand that they stand beside. It returns what failed.
func (e *evaluator) numbersTyped(at int, args []*node) *node {
	t := e.beside(args)
	for i, a := range args {
		switch {
		case a.Err != nil:
			return a
		case isNumber(a) && !representable(t, a.Value):
			return e.fail(at, gpu.ErrInvalid, text(a.Value), " in a computation of ", t.String())
		case isNumber(a):
			args[i] = numberNode(t, a.Value)
		}
	}
	return nil
}

// beside is the type that numbers beside operands have.
func (e *evaluator) beside(args []*node) fuse.Type {
	for _, a := range args {
		if a.Err == nil && a.Type != expr.Untyped {
			return a.Type
		}
	}
	return e.t
}

// representable refuses fractions in integer arithmetic and numbers out of range.
func representable(t fuse.Type, v float64) bool {
	t = t.Compute()
	return t == fuse.F32 || t == fuse.C64 || t.Load(t.Store(v)) == v
}
