// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
)

// program decodes expressions.
type program struct {
	bridge *Bridge
	values []anyExpr
	depths []int       // operations on top of each other that each value is
	temps  []*anyDense // to be closed when the command is over
	args   []anyArg
	target int // the value at which a leaf is memory to be written: 1 for the first, 0 for none
}

// words says how many words follow the header of an instruction and how many of them, the first ones, are operands.
func (op Op) words() (all, operands int) {
	switch op {
	case OpLeaf, OpScalar:
		return 1, 0
	case OpFill:
		return 3, 0
	case OpSlice:
		return 5, 1
	case OpReshape, OpReduce:
		return 3, 1
	case OpMatMul:
		return 2, 2
	case OpTranspose, OpCast, OpSoftmax, OpLogSoftmax:
		return 1, 1
	}
	n := fuse.Op(op).Arity()
	return n, n
}

// run decodes an expression and returns its value.
func (p *program) run(words []uint32) (anyExpr, error) {
	for len(words) > 0 {
		n, t, op := int(words[0]>>16), matrix.DType(words[0]>>8&0xff), Op(words[0])
		if n < 2 || n > len(words) || t > matrix.Float16 || len(p.values) >= maxValues {
			return nil, invalid("instruction " + itoa(len(p.values)) + " of an expression")
		}
		if err := p.add(op, t, words[1:n]); err != nil {
			return nil, err
		}
		words = words[n:]
	}
	return p.value(uint32(len(p.values) - 1))
}

// maxDepth is how deep an expression may be. Package matrix works through expressions by recursion, which WebAssembly
// does on JavaScript's stack. A deeper one is evaluated in parts; no kernel holds that many operations anyway.
const maxDepth = 256

// add appends the value of an instruction.
func (p *program) add(op Op, t matrix.DType, w []uint32) error {
	v, depth, err := p.instruction(op, t, w)
	if err == nil {
		err = v.Err()
	}
	if err == nil && depth >= maxDepth {
		var m *anyDense
		if m, err = p.evaluate(v); err == nil {
			v, depth = m.Expr(), 0
		}
	}
	if err != nil {
		return err
	}
	p.values, p.depths = append(p.values, v), append(p.depths, depth)
	return nil
}

// release forgets the values, for the next command.
func (p *program) release() {
	for _, m := range p.temps {
		_ = m.Close() // what is queued still uses them; a broken device is noticed by whoever reads next
	}
	clear(p.temps)
	clear(p.values)
	clear(p.args)
	p.temps, p.values, p.depths, p.args, p.target = p.temps[:0], p.values[:0], p.depths[:0], p.args[:0], 0
}

func (p *program) value(i uint32) (anyExpr, error) {
	if uint64(i) >= uint64(len(p.values)) {
		return nil, invalid("no value " + itoa(int(i)) + " in an expression")
	}
	return p.values[i], nil
}

func (p *program) instruction(op Op, t matrix.DType, w []uint32) (v anyExpr, depth int, err error) {
	all, operands := op.words()
	first := 0
	if op == OpCall { // the function comes first
		all, operands, first = len(w), len(w)-1, 1
	}
	if len(w) != all {
		return v, 0, invalid("operation " + itoa(int(op)) + " with " + itoa(len(w)) + " words")
	}
	p.args = p.args[:0]
	for _, i := range w[first : first+operands] {
		x, err := p.value(i)
		if err != nil {
			return v, 0, err
		}
		p.args = append(p.args, x)
		depth = max(depth, p.depths[i]+1)
	}
	v, err = p.apply(op, t, p.args, w)
	return v, depth, err
}

// apply builds a value. w are all words of the instruction.
func (p *program) apply(op Op, t matrix.DType, x []anyArg, w []uint32) (anyExpr, error) {
	switch op {
	case OpLeaf:
		return p.leaf(w[0])
	case OpScalar:
		return constant(t, w[0], 1, 1), nil
	case OpFill:
		return constant(t, w[0], int(w[1]), int(w[2])), nil
	case OpTranspose:
		return matrix.Transpose(x[0]), nil
	case OpSlice:
		return p.slice(p.values[w[0]], int(w[1]), int(w[2]), int(w[3]), int(w[4]))
	case OpReshape:
		return p.reshape(p.values[w[0]], int(w[1]), int(w[2]))
	case OpCast:
		return p.values[w[0]].ConvertTo(t), nil
	case OpMatMul:
		return matrix.Mul(x[0], x[1]), nil
	case OpCall:
		return p.call(w[0], x)
	case OpReduce:
		return matrix.Reduce(matrix.Reduction(min(w[1], 255)), matrix.Axis(min(w[2], 255)), x[0]), nil
	case OpSoftmax:
		return matrix.Softmax(x[0]), nil
	case OpLogSoftmax:
		return matrix.LogSoftmax(x[0]), nil
	}
	return matrix.Elementwise(fuse.Op(op), x...), nil
}

func (p *program) leaf(handle uint32) (anyExpr, error) {
	get := p.bridge.current
	if p.target == len(p.values)+1 {
		get = p.bridge.entry
	}
	e, err := get(handle)
	if err != nil {
		return nil, err
	}
	m, err := e.dense()
	if err != nil {
		return nil, err
	}
	return m.Expr(), nil
}

// part returns a matrix of which parts can be taken: an expression has none until it is evaluated.
func (p *program) part(x anyExpr) (*anyDense, error) {
	if m := x.Matrix(); m != nil {
		return m, nil
	}
	return p.evaluate(x)
}

func (p *program) evaluate(x anyExpr) (*anyDense, error) {
	m, err := x.Eval()
	if err != nil {
		return nil, err
	}
	p.temps = append(p.temps, m)
	return m, nil
}

// view is a view of a matrix as an operand until the command is over.
func (p *program) view(m *anyDense) anyExpr {
	p.temps = append(p.temps, m)
	return m.Expr()
}

func (p *program) slice(x anyExpr, i, k, j, l int) (anyExpr, error) {
	m, err := p.part(x)
	if err != nil {
		return x, err
	}
	return p.view(m.Slice(i, k, j, l)), nil
}

// reshape reads the elements row by row, as NumPy does: a view where they lie in memory like that, a copy elsewhere.
func (p *program) reshape(x anyExpr, rows, cols int) (anyExpr, error) {
	m, err := p.rows(x)
	if err != nil {
		return x, err
	}
	return p.view(m.Reshape(rows, cols)), nil
}

// rows returns the value with its elements row by row in memory.
func (p *program) rows(x anyExpr) (*anyDense, error) {
	if m := x.Matrix(); m != nil && inRows(m) {
		return m, nil
	}
	return p.evaluate(x)
}

func (p *program) call(function uint32, x []anyArg) (anyExpr, error) {
	funcs := p.bridge.funcs
	if uint64(function) >= uint64(len(funcs)) || funcs[function] == nil {
		return nil, invalid("no function " + itoa(int(function)))
	}
	return matrix.Apply(funcs[function], x...), nil
}

// firstLeaf returns the handle of the matrix that an expression begins with.
func firstLeaf(expr []uint32) (handle uint32, ok bool) {
	if len(expr) < 2 || Op(expr[0]) != OpLeaf || expr[0]>>16 != 2 {
		return 0, false
	}
	return expr[1], true
}
