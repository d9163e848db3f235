// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"maps"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Named is a result of [EvalAll]: a new owned matrix, and the name that the text gives it, "" if it gives none. The matrix is sparse
// where the expression is, see [Expr.Sparse]; Matrix is nil then.
type Named[T Elem] struct {
	Name   string
	Matrix *Dense[T]
	Sparse *Sparse[T]
}

// Close closes the matrix.
func (r Named[T]) Close() error {
	if r.Sparse != nil {
		return r.Sparse.Close()
	}
	return r.Matrix.Close()
}

// Operand is the matrix as an operand.
func (r Named[T]) Operand() Operand[T] {
	if r.Sparse != nil {
		return r.Sparse
	}
	return r.Matrix
}

// EvalAll evaluates the statements of a text, NAME = EXPRESSION or the expression alone, and returns their results in that order, which
// the caller closes. Expressions are those of [Eval]; they may use the names of statements before them, each of which is computed
// once. Statements end with a semicolon or with the line, unless brackets are open or the next line begins with an operator. A name
// is given once: another time it is [ErrSyntax], as is a name of vars.
//
// The device is that of the matrices; dev, which may be nil where they have one, is for expressions without any. With several devices
// dev computes what has no matrix. A nil dev that is needed is [gpu.ErrInvalid]. Of an EvalAll[Any] each result has the type of its
// expression; else all must be T. The context ends what compiles, see [Dense.AssignContext]. After an error there are no results.
//
// A statement that solves a system is waited for: one without a solution is [ErrSingular], a Cholesky factor that does not exist
// [ErrNotPosDef], as with [Expr.Read]. Of expressions that are only queued, by [Dense.Assign] and [Expr.Eval], such results are infinite or
// NaN; see [Expr.Solved].
func EvalAll[T Elem](ctx context.Context, dev *gpu.Device, text string, vars map[string]Operand[T]) ([]Named[T], error) {
	all := make(map[string]Operand[T], len(vars))
	maps.Copy(all, vars)
	var results []Named[T]
	fails := func(err error) ([]Named[T], error) {
		for _, r := range results {
			err = firstError(err, r.Close())
		}
		return nil, err
	}
	e := newEvaluator(all)
	e.lines, e.numbers = true, map[string]*node{}
	if err := fault.Ended(ctx, "matrix: ", "EvalAll"); err != nil {
		return nil, err
	}
	if err := e.tokenize(text); err != nil {
		return nil, err
	}
	for e.err == nil {
		start := e.next
		name, x := e.statement()
		if x == nil {
			break
		}
		_, taken := all[name]
		number := x
		if x = e.finished(x); x.Err == nil && name != "" && taken {
			x = e.fail(start, ErrSyntax, strconv.Quote(name), " has a value already")
		}
		m, err := evaluatedOn[T](ctx, dev, x)
		if err != nil {
			return fails(e.placed(start, err))
		}
		m.Name = name
		if results = append(results, m); name != "" {
			all[name] = m.Operand()
		}
		if isNumber(number) { // it stays one where a number is wanted
			e.numbers[name] = number
		}
	}
	if e.err != nil {
		return fails(e.err)
	}
	if len(results) == 0 {
		return nil, e.malformed().Err
	}
	return results, nil
}

// evaluatedOn is a new matrix, on a device if the expression has none.
func evaluatedOn[T Elem](ctx context.Context, dev *gpu.Device, x *node) (r Named[T], err error) {
	if x.Err == nil && x.Dev == nil && dev != nil {
		n := *x
		n.Dev = dev
		x = &n
	}
	e := &Expr[T]{x}
	if x.Err == nil && x.Kind == expr.Sparse {
		r.Sparse, err = e.Sparse()
		return r, err
	}
	r.Matrix = &Dense[T]{}
	if err = r.Matrix.AssignContext(ctx, e); err == nil && x.Solves {
		err = solved(ctx, "EvalAll", x, r.Matrix.core().operand("EvalAll"))
	}
	if err != nil {
		err = firstError(err, r.Matrix.Close())
	}
	return r, err
}

// statement reads the next one, and what ends it. It returns nil at the end of the text.
func (e *evaluator) statement() (name string, x *node) {
	for e.accept(';') {
	}
	if e.next == len(e.scan.Tokens) {
		return "", nil
	}
	if e.scan.IsWord(e.next) && e.scan.Char(e.next+1) == '=' && !e.equals(e.next+1) {
		name = e.scan.At(e.next)
		e.next += 2
	}
	x = e.binary(0, 0)
	if e.err == nil && e.next < len(e.scan.Tokens) && !e.accept(';') && !e.newLine() {
		x = e.malformed()
	}
	if e.err != nil {
		x = expr.Failed(e.err)
	}
	return name, x
}

// equals reports whether a token begins ==.
func (e *evaluator) equals(token int) bool {
	at := e.scan.Pos(token)
	return len(e.scan.Text) > at+1 && e.scan.Text[at+1] == '='
}
