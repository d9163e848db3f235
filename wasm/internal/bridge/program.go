// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
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
func (p *program) run(words []uint32) anyExpr {
	for len(words) > 0 {
		n, t, op := int(words[0]>>16), matrix.DType(words[0]>>8&0xff), Op(words[0])
		if n < 2 || n > len(words) || t > matrix.Float16 || len(p.values) >= maxValues {
			page.Invalid("instruction " + itoa(len(p.values)) + " of an expression")
		}
		p.add(op, t, words[1:n])
		words = words[n:]
	}
	return p.value(uint32(len(p.values) - 1))
}

// maxDepth is how deep an expression may be. Package matrix works through expressions by recursion, which WebAssembly
// does on JavaScript's stack. A deeper one is evaluated in parts; no kernel holds that many operations anyway.
const maxDepth = 256

// add appends the value of an instruction.
func (p *program) add(op Op, t matrix.DType, w []uint32) {
	all, operands := op.words()
	first := 0
	if op == OpCall { // the function comes first
		all, operands, first = len(w), len(w)-1, 1
	}
	if len(w) != all {
		page.Invalid("operation " + itoa(int(op)) + " with " + itoa(len(w)) + " words")
	}
	p.args = p.args[:0]
	depth := 0
	for _, i := range w[first : first+operands] {
		p.args = append(p.args, p.value(i))
		depth = max(depth, p.depths[i]+1)
	}
	v := p.apply(op, t, p.args, w)
	page.Check(v.Err())
	if depth >= maxDepth {
		v, depth = p.evaluate(v).Expr(), 0
	}
	p.values, p.depths = append(p.values, v), append(p.depths, depth)
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

func (p *program) value(i uint32) anyExpr {
	if uint64(i) >= uint64(len(p.values)) {
		page.Invalid("no value " + itoa(int(i)) + " in an expression")
	}
	return p.values[i]
}

// apply builds a value. w are all words of the instruction.
func (p *program) apply(op Op, t matrix.DType, x []anyArg, w []uint32) anyExpr {
	switch op {
	case OpLeaf:
		return p.leaf(w[0])
	case OpScalar:
		return constant(t, w[0], 1, 1)
	case OpFill:
		return constant(t, w[0], int(w[1]), int(w[2]))
	case OpTranspose:
		return matrix.Transpose(x[0])
	case OpSlice:
		return p.view(p.part(p.values[w[0]]).Slice(int(w[1]), int(w[2]), int(w[3]), int(w[4])))
	case OpReshape: // reads the elements row by row, as NumPy does: a view where they lie in memory like that, a copy elsewhere
		return p.view(p.rows(p.values[w[0]]).Reshape(int(w[1]), int(w[2])))
	case OpCast:
		return p.values[w[0]].ConvertTo(t)
	case OpMatMul:
		return matrix.Mul(x[0], x[1])
	case OpCall:
		return p.call(w[0], x)
	case OpReduce:
		return matrix.Reduce(fuse.Reduction(min(w[1], 255)), fuse.Axis(min(w[2], 255)), x[0])
	case OpSoftmax:
		return matrix.Softmax(x[0])
	case OpLogSoftmax:
		return matrix.LogSoftmax(x[0])
	}
	return matrix.Elementwise(fuse.Op(op), x...)
}

// leaf is a matrix. One that is to be written may be what it was before an assignment that failed.
func (p *program) leaf(handle uint32) anyExpr {
	if p.target == len(p.values)+1 {
		return p.bridge.matrix(handle).Expr()
	}
	return p.bridge.current(handle).dense().Expr()
}

// part returns a matrix of which parts can be taken: an expression has none until it is evaluated.
func (p *program) part(x anyExpr) *anyDense {
	if m := x.Matrix(); m != nil {
		return m
	}
	return p.evaluate(x)
}

// view is a view of a matrix as an operand until the command is over.
func (p *program) view(m *anyDense) anyExpr {
	p.temps = append(p.temps, m)
	return m.Expr()
}

// rows returns the value with its elements row by row in memory.
func (p *program) rows(x anyExpr) *anyDense {
	if m := x.Matrix(); m != nil && inRows(m) {
		return m
	}
	return p.evaluate(x)
}

func (p *program) evaluate(x anyExpr) *anyDense {
	m := page.Must(x.Eval())
	p.temps = append(p.temps, m)
	return m
}

func (p *program) call(function uint32, x []anyArg) anyExpr {
	funcs := p.bridge.funcs
	if uint64(function) >= uint64(len(funcs)) || funcs[function] == nil {
		page.Invalid("no function " + itoa(int(function)))
	}
	return matrix.Apply(funcs[function], x...)
}
