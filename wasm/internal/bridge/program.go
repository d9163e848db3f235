// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// Op is an instruction of an expression.
type Op uint8

// The instructions and the words after their header: x and y are numbers of values. The other instructions are the
// element-wise operations by their codes in package fuse, which begin at 32; their operands follow.
const (
	OpLeaf       Op = 1 + iota // handle
	OpScalar                   // bits of the number, in the type that is computed in
	OpFill                     // bits rows cols: a matrix of one number
	OpTranspose                // x
	OpSlice                    // x i k j l: rows i to k-1, columns j to l-1
	OpReshape                  // x rows cols
	OpCast                     // x: to the instruction's element type
	OpMatMul                   // x y
	OpCall                     // function x...
	OpReduce                   // x what axis number: of fuse.Reduction and fuse.Axis; the number is a float32
	OpSoftmax                  // x axis
	OpLogSoftmax               // x axis
	OpHardmax                  // x axis
	OpSort                     // x axis
	OpArgSort                  // x axis
	OpTopK                     // x axis k
	OpArgTopK                  // x axis k
	OpCumSum                   // x axis
	OpCumProd                  // x axis
	OpShape                    // shaping count x... numbers, which are float64: of the table of operations
	OpWith                     // x y: the sparse x with the values y
	OpTensor                   // kind count x... shapes numbers: of package tensor. A shape is the number of dimensions and their sizes
	OpLayer                    // kind count x... numbers, which are float64: of package nn
)

// program decodes expressions.
type program struct {
	page.Reader // of the instruction at hand
	bridge      *Bridge
	values      []anyExpr
	depths      []int       // operations on top of each other that each value is
	depth       int         // of the value at hand
	temps       []*anyDense // to be closed when the command is over
	args        []anyArg
	systems     []systems  // that were evaluated on the way, in parts of an expression
	rec         *recording // that the expression becomes part of, or nil
}

// run decodes an expression and returns its value.
func (p *program) run(words []uint32) anyExpr {
	for len(words) > 0 {
		n, t, op := int(words[0]>>16), matrix.DType(words[0]>>8&0xff), Op(words[0])
		if n < 2 || n > len(words) || t > matrix.Complex64 || len(p.values) >= maxValues {
			page.Invalid("instruction " + itoa(len(p.values)) + " of an expression")
		}
		p.Reader, p.depth = p.bridge.Read(words[1:n]), 0
		v := p.apply(op, t)
		if p.Left() {
			page.Invalid("operation " + itoa(int(op)) + " with " + itoa(n-1) + " words")
		}
		page.Check(v.Err())
		if p.depth >= maxDepth {
			v, p.depth = p.evaluate(v).Expr(), 0
		}
		p.push(v)
		words = words[n:]
	}
	return p.value(uint32(len(p.values) - 1))
}

// push adds a value.
func (p *program) push(v anyExpr) {
	p.values, p.depths = append(p.values, v), append(p.depths, p.depth)
}

// Limits of an expression. Package matrix works through expressions by recursion, which WebAssembly does on JavaScript's stack, so a
// deeper one is evaluated in parts; no kernel holds that many operations anyway.
const (
	maxValues = 1 << 16
	maxDepth  = 256
	composed  = 24 // operations on top of each other that a tensor's or a layer's instruction may be
)

// release forgets the values, for the next command.
func (p *program) release() {
	for _, m := range p.temps {
		_ = m.Close() // what is queued still uses them; a broken device is noticed by whoever reads next
	}
	clear(p.systems)
	clear(p.temps)
	clear(p.values)
	clear(p.args)
	p.temps, p.values, p.depths, p.depth, p.args, p.systems = p.temps[:0], p.values[:0], p.depths[:0], 0, p.args[:0], p.systems[:0]
}

func (p *program) value(i uint32) anyExpr {
	if uint64(i) >= uint64(len(p.values)) {
		page.Invalid("no value " + itoa(int(i)) + " in an expression")
	}
	return p.values[i]
}

// operand reads the number of an earlier value and returns that.
func (p *program) operand() anyExpr {
	i := p.Word()
	x := p.value(i)
	p.depth = max(p.depth, p.depths[i]+1)
	return x
}

// operands reads those that are left.
func (p *program) operands() []anyArg {
	p.args = p.args[:0]
	for p.Left() {
		p.args = append(p.args, p.operand())
	}
	return p.args
}

// some reads so many operands.
func (p *program) some(count int) []anyArg {
	p.args = p.args[:0]
	for ; count > 0 && p.Left(); count-- {
		p.args = append(p.args, p.operand())
	}
	return p.args
}

// doubles reads the numbers of 64 bits that are left.
func (p *program) doubles() (list []float64) {
	for p.Left() {
		low := uint64(p.Word())
		list = append(list, math.Float64frombits(low|uint64(p.Word())<<32))
	}
	return list
}

// index reads a number of 32 bits.
func (p *program) index() int { return int(p.Word()) }

// apply builds the value of an instruction.
func (p *program) apply(op Op, t matrix.DType) anyExpr {
	switch op {
	case OpLeaf:
		e := p.bridge.current(p.Word())
		if p.rec != nil && !slices.Contains(p.rec.operands, e) {
			p.rec.operands = append(p.rec.operands, e)
		}
		return as[interface{ Expr() anyExpr }](e).Expr() // dense or sparse
	case OpScalar:
		return matrix.Fill(1, 1, decoded(t, p.Word())).ConvertTo(t)
	case OpFill:
		v := decoded(t, p.Word())
		return matrix.Fill(p.index(), p.index(), v).ConvertTo(t)
	case OpTranspose:
		return matrix.Transpose(p.operand())
	case OpSlice:
		m := p.part(p.operand())
		return p.view(m.Slice(p.index(), p.index(), p.index(), p.index()))
	case OpReshape: // reads the elements row by row, as NumPy does: a view where they lie in memory like that, a copy elsewhere
		m := p.rows(p.operand())
		return p.view(m.Reshape(p.index(), p.index()))
	case OpCast:
		return p.operand().ConvertTo(t)
	case OpMatMul:
		return matrix.Mul(p.operand(), p.operand())
	case OpCall:
		return matrix.Apply(p.bridge.funcs[p.Word()], p.operands()...)
	case OpReduce:
		x := p.operand()
		what, along := fuse.Reduction(min(p.index(), 255)), fuse.Axis(min(p.index(), 255))
		return matrix.Reduce(what, along, float64(math.Float32frombits(p.Word())), x)
	case OpSort, OpArgSort, OpTopK, OpArgTopK, OpCumSum, OpCumProd:
		x, along, k := p.operand(), fuse.Axis(min(p.index(), 255)), 0
		if op == OpTopK || op == OpArgTopK {
			k = p.index()
		}
		return matrix.Ordered(int(op-OpSort), along, k, x)
	case OpWith:
		return p.operand().With(p.operand())
	case OpShape:
		number, count := p.index(), p.index()
		return matrix.Shaped(number, t, p.some(count), p.doubles())
	case OpTensor:
		v := p.tensor()
		p.depth += composed
		return v
	case OpLayer:
		v := p.layer()
		p.depth += composed
		return v
	case OpSoftmax, OpLogSoftmax, OpHardmax:
		x := p.operand()
		return matrix.Normalise(int(op-OpSoftmax), fuse.Axis(min(p.index(), 255)), x)
	}
	return matrix.Elementwise(fuse.Op(op), p.operands()...)
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
	if p.rec != nil {
		return p.rec.evaluate(p.bridge, x)
	}
	m := p.bridge.evaluated(x)
	p.temps = append(p.temps, m)
	if x.Solves() {
		p.bridge.Vary()
		p.systems = append(p.systems, systems{x, m})
	}
	return m
}

// inRows reports whether the elements of a matrix lie row by row without gaps.
func inRows(m *anyDense) bool {
	rows, cols := m.Dims()
	switch {
	case rows == 0 || cols == 0:
		return true
	case m.ColMajor():
		return cols == 1 || m.Stride() == 1 && rows == 1
	}
	return rows == 1 || m.Stride() == cols
}
