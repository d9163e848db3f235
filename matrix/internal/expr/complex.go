// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Kernels know no complex numbers. A node of complex64 is a pair of real ones, the real and the imaginary parts, and an operation on
// such nodes is made of operations on the parts as soon as it is built: see complexops.go. In memory the two parts of an element are
// neighbours: a matrix of r x c is woven of its parts into one of float32, r x 2c.

// NewComplex builds a matrix of its real and its imaginary parts, both float32. Parts stretch to a common size.
func NewComplex(op string, re, im *Node) *Node {
	if isComplex([]*Node{re, im}) {
		return Failed(Fail(op, gpu.ErrUnsupported, "not defined for ", fuse.C64.String(), ", but for ", fuse.F32.String()))
	}
	n := Join(op, re, im)
	if n.Err != nil {
		return n
	}
	re, im = n.Args[0], n.Args[1]
	if re.Type != fuse.F32 {
		return Failed(Fail(op, gpu.ErrInvalid, "the parts of complex numbers are float32, not ", re.Type.String()))
	}
	n.Rows, n.Cols = re.Rows, re.Cols
	if err := n.broadcast(op); err != nil {
		return Failed(err)
	}
	n.Kind, n.Type = Complex, fuse.C64
	n.Args[0], n.Args[1] = Stretch(op, re, n.Rows, n.Cols), Stretch(op, im, n.Rows, n.Cols)
	for _, part := range n.Args {
		if part.Err != nil {
			return part
		}
	}
	return n
}

// NewUnwoven builds the complex matrix that a real one is woven of. Its parts are read there.
func NewUnwoven(op string, woven *Node) *Node {
	if woven.Err != nil {
		return woven
	}
	i, j := indices(op, woven.Rows, woven.Cols/2)
	twice := numbers{op}.double(j)
	one := Number(fuse.I32, 1, 1, 1)
	n := NewComplex(op, NewGather(op, woven, i, twice), NewGather(op, woven, i, NewMap(op, fuse.OpAdd, twice, one)))
	if n.Err == nil {
		n.Args = append(n.Args, woven)
	}
	return n
}

// Stretch is a node in another size: dimensions of 1 become what they are to be.
func Stretch(op string, x *Node, rows, cols int) *Node {
	switch {
	case x.Err != nil || x.Rows == rows && x.Cols == cols:
		return x
	case x.Kind == Scalar:
		n := *x
		n.Rows, n.Cols = rows, cols
		return &n
	}
	i, j := indices(op, rows, cols)
	if x.Rows == 1 {
		i = Number(fuse.I32, rows, 1, 0)
	}
	if x.Cols == 1 {
		j = Number(fuse.I32, 1, cols, 0)
	}
	return NewGather(op, x, i, j)
}

// indices are the numbers of the rows, a column, and of the columns, a row.
func indices(op string, rows, cols int) (i, j *Node) {
	return NewIndex(op, rows, 1, fuse.AxisRows), NewIndex(op, 1, cols, fuse.AxisCols)
}

// Parts returns the real and the imaginary parts of a complex or a real matrix. im is nil where it is 0 everywhere.
func (n *Node) Parts() (re, im *Node) {
	switch {
	case n.Kind != Complex:
		return n, nil
	case n.Args[1].Kind == Scalar && n.Args[1].Value == 0:
		return n.Args[0], nil
	}
	return n.Args[0], n.Args[1]
}

// isComplex reports whether one of the nodes is, and all could be built.
func isComplex(args []*Node) (is bool) {
	for _, a := range args {
		if a.Err != nil {
			return false
		}
		is = is || a.Kind == Complex
	}
	return is
}

// Woven is the matrix of float32 that a matrix of complex64 is in memory, row by row: real and imaginary parts next to each other.
// Both parts are computed by one kernel where they are element-wise.
func (n *Node) Woven(op string) *Node {
	if n.Err != nil {
		return n
	}
	re, im := n.Parts()
	if n.Kind == Complex && len(n.Args) > 2 {
		return n.Args[2]
	}
	if im == nil {
		im = Number(fuse.F32, 1, 1, 0)
	}
	j := NewIndex(op, n.Rows, 2*n.Cols, fuse.AxisCols)
	i, k := indices(op, n.Rows, 2*n.Cols)
	c := numbers{op}
	at := &numbersAt{c, i, c.halve(k), map[readAt]*Node{}}
	w := NewMap(op, fuse.OpWhere, c.odd(j), at.read(im, false), at.read(re, false))
	if w.Err == nil && w.Dev == nil {
		w.Dev = n.Dev
	}
	return w
}

// numbers makes nodes of the numbers of rows and columns.
type numbers struct{ op string }

func (c numbers) whole(v int) *Node { return Number(fuse.I32, 1, 1, float64(v)) }

func (c numbers) double(x *Node) *Node { return NewMap(c.op, fuse.OpMul, x, c.whole(2)) }
func (c numbers) halve(x *Node) *Node  { return NewMap(c.op, fuse.OpDiv, x, c.whole(2)) }

// odd is 1 of float32 where x is odd, and 0 elsewhere.
func (c numbers) odd(x *Node) *Node {
	return NewConversion(c.op, fuse.F32, NewMap(c.op, fuse.OpMod, x, c.whole(2)))
}

// numbersAt reads nodes at the rows i and columns j. What is element-wise is computed there: its operands are read in its place.
type numbersAt struct {
	numbers
	i, j *Node
	done map[readAt]*Node
}

// readAt is a node, read transposed or not.
type readAt struct {
	n          *Node
	transposed bool
}

// read is a node where i and j say, or, transposed, where j and i do.
func (at *numbersAt) read(n *Node, transposed bool) *Node {
	n, transposed = Resolve(n, transposed)
	key := readAt{n, transposed}
	if at.done[key] == nil {
		at.done[key] = at.readAnew(n, transposed)
	}
	return at.done[key]
}

func (at *numbersAt) readAnew(n *Node, transposed bool) *Node {
	i, j := at.i, at.j
	if transposed {
		i, j = j, i
	}
	if n.Rows == 1 {
		i = at.whole(0)
	}
	if n.Cols == 1 {
		j = at.whole(0)
	}
	switch n.Kind {
	case Scalar:
		return Stretch(at.op, n, 1, 1)
	case Index:
		if n.Axis == fuse.AxisRows {
			j = i
		}
		return NewMap(at.op, fuse.OpAdd, j, Number(fuse.I32, 1, 1, n.Value))
	case Map, Call, Gather:
		return at.below(n, transposed)
	}
	return NewGather(at.op, n, i, j)
}

// below is an element-wise node of operands that are read. Of a gather those are the rows and columns at which it reads.
func (at *numbersAt) below(n *Node, transposed bool) *Node {
	args := slices.Clone(n.Args)
	first := 0
	if n.Kind == Gather {
		first = 1
	}
	for k := first; k < len(args); k++ {
		if args[k] = at.read(args[k], transposed); args[k].Err != nil {
			return args[k]
		}
	}
	if n.Kind == Gather {
		return NewGather(at.op, args[0], args[1], args[2])
	}
	m := *n
	m.Args, m.Rows, m.Cols = args, args[0].Rows, args[0].Cols
	if err := m.broadcast(at.op); err != nil {
		return Failed(err)
	}
	return &m
}

// convertComplex converts from or to complex numbers. Those have no one number that they become.
func convertComplex(op string, t fuse.Type, a *Node) *Node {
	switch {
	case t == a.Type:
		return a
	case a.Kind == Complex:
		return Failed(Fail(op, fault.ErrInvalid, "complex64 to ", t.String(), ": the real part, the imaginary part or the absolute value?"))
	}
	re := NewConversion(op, fuse.F32, a)
	return NewComplex(op, re, Number(fuse.F32, re.Rows, re.Cols, 0))
}

// concatComplex puts the parts of matrices together, of which one is complex.
func concatComplex(op string, axis fuse.Axis, args []*Node) *Node {
	re, im := make([]*Node, len(args)), make([]*Node, len(args))
	for i, a := range args {
		if re[i], im[i] = a.Parts(); im[i] == nil {
			im[i] = Number(fuse.F32, a.Rows, a.Cols, 0)
		}
	}
	return NewComplex(op, NewConcat(op, axis, re...), NewConcat(op, axis, im...))
}

// multiplier is the real matrix of 2k x 2c by which a woven matrix is multiplied where its complex one is multiplied by b of k x c:
// in place of each element it has the rows (re, im) and (-im, re).
func multiplier(op string, b *Node) *Node {
	c := numbers{op}
	rows, cols := 2*b.Rows, 2*b.Cols
	if err := CheckVirtual(op, rows, cols); err != nil {
		return Failed(err)
	}
	i, j := NewIndex(op, rows, cols, fuse.AxisRows), NewIndex(op, rows, cols, fuse.AxisCols)
	at := &numbersAt{c, c.halve(i), c.halve(j), map[readAt]*Node{}}
	re, im := b.Parts()
	if im == nil {
		im = Number(fuse.F32, 1, 1, 0)
	}
	x, y := at.read(re, false), at.read(im, false)
	odd := c.odd(i)
	same := NewMap(op, fuse.OpEq, odd, c.odd(j))
	return NewMap(op, fuse.OpWhere, same, x, NewMap(op, fuse.OpWhere, odd, NewMap(op, fuse.OpNeg, y), y))
}

// complexProduct is one real product: of the woven a and the multiplier of b.
func complexProduct(op string, a, b *Node) *Node {
	switch {
	case a.Cols != b.Rows:
		return Misfit(op, FitsFactor(a), a, b)
	case a.Kind != Complex:
		return NewUnwoven(op, NewProduct(op, a, b.Woven(op)))
	}
	return NewUnwoven(op, NewProduct(op, a.Woven(op), multiplier(op, b)))
}

// Solver is the real matrix of 2n x 2m with which a complex system of a of n x m is solved, and [Node.Stacked] its right sides.
func (n *Node) Solver(op string) *Node { return NewTranspose(op, multiplier(op, NewTranspose(op, n))) }

// Stacked is a matrix of complex64 with the imaginary parts of each row below the real ones.
func (n *Node) Stacked(op string) *Node {
	return NewTranspose(op, NewTranspose(op, n).Woven(op))
}

// NewUnstacked is the inverse of [Node.Stacked].
func NewUnstacked(op string, n *Node) *Node {
	return NewTranspose(op, NewUnwoven(op, NewTranspose(op, n)))
}
