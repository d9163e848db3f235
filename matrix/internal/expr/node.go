// SPDX-License-Identifier: Apache-2.0

// Package expr has the tree of an expression of matrices, without element types of Go's: what is computed, of which size and
// type, on which device. Functions that build nodes check shapes, types and devices; a node that could not be built carries its
// error. Who evaluates the tree knows what its leaves are.
package expr

import (
	"cmp"
	"math"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Kind tells what a node is.
type Kind uint8

// The kinds.
const (
	Leaf          Kind = iota // a matrix
	Scalar                    // a number
	Map                       // an element-wise operation on Args
	Call                      // a function of the user's on Args
	Transpose                 // the transpose of Args[0]
	Product                   // Args[0] times Args[1]
	Reduce                    // Args[0] reduced along fuse.Axis
	Sort                      // the rows of Args[0], sorted: all columns or the first ones
	Scan                      // the running sums or products of the rows of Args[0], by Red
	Softmax                   // Args[0] normalised along its rows; with Hard along Axis
	Index                     // the numbers of rows (AxisRows) or columns (AxisCols), Value more of each
	Gather                    // elements of Args[0] at the rows Args[1] and columns Args[2]; 0 where there is none
	Concat                    // Args below each other (AxisRows) or beside each other (AxisCols)
	Random                    // random bits: of the numbers of rows and columns, the columns of the whole, seed and stream in two words each
	Factor                    // Args by a decomposition: Routine
	Reshape                   // the elements of Args[0] row by row
	Sparse                    // a matrix of which Args[0] are the values; the other two are their rows and columns. Source: Entries
	SparseProduct             // a sparse matrix times Args[0]: the values, and the words of its rows
	Words                     // as many int32 as there are when they are looked at
	StackProduct              // the products of the matrices of two stacks: Stack
	Complex                   // the real parts Args[0] and the imaginary parts Args[1]; see complex.go. Source: the matrix, if it is one
)

// Node is an operation of an expression. Nodes do not change once built and may be shared.
type Node struct {
	Kind       Kind
	Op         fuse.Op // Map
	Red        fuse.Reduction
	Axis       fuse.Axis
	Log, Hard  bool    // Softmax: the logarithm; 1 at the largest element and 0 elsewhere
	Down       bool    // Sort: the largest elements first
	Index      bool    // Sort: the indices of the elements
	Routine    Routine // Factor
	Form       Form    // Factor: of the triangle that is solved with
	Type       fuse.Type
	Rows, Cols int
	Dev        *gpu.Device // nil: any
	Args       []*Node
	argv       [3]*Node   // backs Args of most nodes
	Solves     bool       // a system is solved in it, which may have no solution
	Source     any        // Leaf: the matrix
	Value      float64    // Scalar; Reduce: the number that results are finished with; Index: what is added
	Call       *fuse.Call // Call
	Stack      *Stack     // StackProduct; Gather: the matrices that it is of, nil if it is none
	Passing    bool       // nobody but the caller has it, until a plan is made of it
	Err        error
}

// Shape returns the dimensions of the result, for errors.
func (n *Node) Shape() fault.Shape { return fault.Shape{n.Rows, n.Cols} }

// Failed is a node that could not be built.
func Failed(err error) *Node { return &Node{Err: err} }

// Number is a matrix of one number.
func Number(t fuse.Type, rows, cols int, v float64) *Node {
	if t == fuse.C64 { // it has no imaginary part
		t = fuse.F32
	}
	return &Node{Kind: Scalar, Type: t, Rows: rows, Cols: cols, Value: v}
}

// Bits returns those of a Scalar in the type that is computed in.
func (n *Node) Bits() uint32 { return n.Type.Compute().Store(n.Value) }

// Resolve strips transposes. It returns whether what is left is to be read transposed; transposed says that n is.
func Resolve(n *Node, transposed bool) (*Node, bool) {
	for n.Kind == Transpose {
		n, transposed = n.Args[0], !transposed
	}
	return n, transposed
}

// Untyped is the type of a Scalar that takes the type of the operands it stands beside.
const Untyped = fuse.Type(0xff)

// Typed returns the node of an untyped number in a type, and any other node as it is.
func (n *Node) Typed(t fuse.Type) *Node {
	if n.Type != Untyped || n.Err != nil {
		return n
	}
	typed := *n
	if typed.Type = t; t == fuse.C64 { // it has no imaginary part
		typed.Type = fuse.F32
	}
	return &typed
}

// Join starts a node of several operands: the first error wins, devices and element types must agree. Numbers without a type
// take that of the others.
func Join(op string, args ...*Node) *Node { return new(Node).join(op, args) }

func (n *Node) join(op string, args []*Node) *Node {
	n.Type = Untyped
	n.Args = append(n.argv[:0], args...)
	for _, a := range args {
		switch {
		case a.Err != nil:
			return Failed(a.Err)
		case a.Kind == Complex: // operations that take complex numbers have seen them before
			return n.undefined(op, fuse.C64)
		case n.Dev == nil:
			n.Dev = a.Dev
		case a.Dev != nil && a.Dev != n.Dev:
			return Failed(Fail(op, gpu.ErrForeign, "operands on two devices"))
		}
		n.Solves = n.Solves || a.Solves
		switch {
		case n.Type == Untyped:
			n.Type = a.Type
		case a.Type != Untyped && a.Type != n.Type:
			return Mixed(op, n.Type, a.Type)
		}
	}
	if n.Type == Untyped {
		n.Type = fuse.F32
	}
	for i, a := range n.Args {
		n.Args[i] = a.Typed(n.Type)
	}
	return n
}

// build completes a node, whose kind and parameters are set: it joins the operands and finds the size.
func (n *Node) build(op string, args ...*Node) *Node {
	if isComplex(args) {
		return n.ofParts(op, args)
	}
	if n = n.join(op, args); n.Err != nil {
		return n
	}
	a := n.Args[0]
	n.Rows, n.Cols = a.Rows, a.Cols
	var err error
	switch n.Kind {
	case Map, Call:
		err = n.broadcast(op)
	case Product:
		b := n.Args[1]
		if n.Cols = b.Cols; a.Cols != b.Rows {
			return Misfit(op, FitsFactor(a), a, b)
		}
		if !n.sparse() {
			err = CheckDims(op, n.Rows, n.Cols)
		}
	case Transpose:
		n.Rows, n.Cols = a.Cols, a.Rows
	case Reduce:
		if n.Axis != fuse.AxisCols {
			n.Cols = 1
		}
		if n.Axis != fuse.AxisRows {
			n.Rows = 1
		}
		err = n.reduction(op)
	}
	if err == nil && (n.Kind == Map || n.Kind == Softmax) && !n.Op.Takes(n.Type) {
		err = Undefined(op, n.Type, n.takes)
	}
	if err != nil {
		return Failed(err)
	}
	if n.sparse() {
		return cmp.Or(n.ofStored(op), n)
	}
	return n
}

// broadcast gives n the common size of its operands: dimensions of 1 stretch, as in NumPy.
func (n *Node) broadcast(op string) error {
	for _, a := range n.Args[1:] {
		rows, ok := stretch(n.Rows, a.Rows)
		cols, fits := stretch(n.Cols, a.Cols)
		if !ok || !fits {
			return ShapeError(op, FitsSpread, n.Shape(), a.Shape())
		}
		n.Rows, n.Cols = rows, cols
	}
	return CheckVirtual(op, n.Rows, n.Cols, n.Args...)
}

func stretch(a, b int) (int, bool) {
	switch {
	case a == b || b == 1:
		return a, true
	case a == 1:
		return b, true
	}
	return 0, false
}

// NewMap builds an element-wise node. name is that of the function for errors.
func NewMap(name string, op fuse.Op, args ...*Node) *Node {
	n := blank()
	n.Kind, n.Op = Map, op
	return n.build(name, args...)
}

// spare has nodes that were released, so that recording an operation takes no memory. Pages, where bytes of the program count, do without.
var spare = sync.Pool{New: func() any { return new(Node) }}

func blank() *Node {
	if gpu.RunsNative {
		return spare.Get().(*Node) //nolint:forcetypeassert // of spare
	}
	return new(Node)
}

// Release gives back an element-wise node that was Passing until the end.
func (n *Node) Release() {
	if gpu.RunsNative && n.Kind == Map && n.Passing {
		*n = Node{}
		spare.Put(n)
	}
}

// NewConversion builds a node that converts to another element type.
func NewConversion(op string, t fuse.Type, a *Node) *Node {
	switch {
	case a.Err != nil:
		return a
	case t == fuse.C64 || a.Kind == Complex:
		return convertComplex(op, t, a)
	case a.Type == Untyped:
		return a.Typed(t)
	}
	if a.Kind == Sparse && a.Err == nil && !t.Packed() {
		return a.with(NewConversion(op, t, a.Args[0]))
	}
	n := (&Node{Kind: Map, Op: fuse.OpConvert}).build(op, a)
	n.Type = t
	return n
}

// NewCall builds the node of a function of the user's.
func NewCall(op string, call *fuse.Call, args ...*Node) *Node {
	return (&Node{Kind: Call, Op: fuse.OpCall, Call: call}).build(op, args...)
}

// NewProduct builds a matrix product.
func NewProduct(op string, a, b *Node) *Node { return (&Node{Kind: Product}).build(op, a, b) }

// NewTranspose builds a transpose; that of a transpose is what it was of.
func NewTranspose(op string, a *Node) *Node {
	switch {
	case a.Err == nil && a.Kind == Transpose:
		return a.Args[0]
	case a.Err == nil && a.Kind == Scalar:
		n := *a
		n.Rows, n.Cols = a.Cols, a.Rows
		return &n
	}
	return (&Node{Kind: Transpose}).build(op, a)
}

// NewReduction builds a sum or the like. number is what its results are finished with, if they are.
func NewReduction(op string, red fuse.Reduction, axis fuse.Axis, number float64, a *Node) *Node {
	n := (&Node{Kind: Reduce, Red: red, Axis: axis, Value: number}).build(op, a)
	if n.Err != nil || a.Rows*a.Cols > 0 || !n.Type.Packed() || n.Type.Compute() != fuse.I32 {
		return n
	}
	extreme := float64(int(1) << (8*n.Type.Size() - 1))
	switch red { // of nothing: kernels would begin with that of int32
	case fuse.ReduceMax:
		extreme = -extreme
	case fuse.ReduceMin:
		extreme--
	default:
		return n
	}
	none := Number(n.Type, n.Rows, n.Cols, extreme)
	none.Dev = n.Dev
	return none
}

// reduction checks a reduction and gives it the type of its results.
func (n *Node) reduction(op string) error {
	a := n.Args[0]
	index := n.Red == fuse.ReduceArgMax || n.Red == fuse.ReduceArgMin
	count := a.Rows * a.Cols / max(n.Rows*n.Cols, 1) // of elements for each result
	switch {
	case !n.Red.Takes(n.Type):
		return Undefined(op, n.Type, n.takes)
	case n.Red == fuse.ReduceTrace && n.Axis != fuse.AxisAll:
		return Fail(op, gpu.ErrInvalid, "a trace is one of the whole matrix")
	case index && count == 0 && n.Rows*n.Cols > 0:
		return Fail(op, gpu.ErrInvalid, "of no elements: ", a.Shape().String())
	case n.Red.Result(n.Type) != n.Type && count > math.MaxInt32:
		return Fail(op, gpu.ErrLimit, a.Shape().String(), " has more elements than int32 counts")
	}
	n.Type = n.Red.Result(n.Type)
	return nil
}

// NewSoftmax builds a softmax of rows, or with log set its logarithm.
func NewSoftmax(op string, log bool, a *Node) *Node {
	return (&Node{Kind: Softmax, Op: fuse.OpExp, Log: log, Axis: fuse.AxisRows}).build(op, a)
}

// NewSort builds the rows of a sorted, or the indices of their elements in that order: the first keep of them, all if keep is
// negative. There are as many.
func NewSort(op string, down, index bool, keep int, a *Node) *Node {
	n := (&Node{Kind: Sort, Down: down, Index: index}).build(op, a)
	if n.Err != nil {
		return n
	}
	if keep >= 0 {
		n.Cols = keep
	}
	if index {
		n.Type = fuse.I32
	}
	return n
}

// NewScan builds the running sums or products of rows.
func NewScan(op string, red fuse.Reduction, a *Node) *Node {
	return (&Node{Kind: Scan, Red: red}).build(op, a)
}

// NewHardmax builds a matrix of 1 where a, or each row of it, is largest, the first one of several, and 0 elsewhere.
func NewHardmax(op string, axis fuse.Axis, a *Node) *Node {
	return (&Node{Kind: Softmax, Hard: true, Axis: axis}).build(op, a)
}

// NewIndex builds a matrix of int32, the numbers of its rows (AxisRows) or of its columns (AxisCols).
func NewIndex(op string, rows, cols int, axis fuse.Axis) *Node {
	if err := CheckVirtual(op, rows, cols); err != nil {
		return Failed(err)
	}
	if max(rows, cols) > math.MaxInt32 {
		return Failed(Fail(op, fault.ErrLimit, fault.Shape{rows, cols}.String(), " has more rows or columns than int32 counts"))
	}
	return &Node{Kind: Index, Type: fuse.I32, Axis: axis, Rows: rows, Cols: cols}
}

// NewRandom builds a matrix of random bits. They depend on the row, the column and the number of columns, and not on how they are
// computed.
func NewRandom(op string, rows, cols int, seed, stream uint64) *Node {
	i, j := NewIndex(op, rows, 1, fuse.AxisRows), NewIndex(op, 1, cols, fuse.AxisCols)
	for _, n := range []*Node{i, j, NewIndex(op, rows, cols, fuse.AxisCols)} {
		if n.Err != nil {
			return n
		}
	}
	word := func(v uint64) *Node { return Number(fuse.U32, 1, 1, float64(uint32(v))) }
	args := []*Node{i, j, word(uint64(cols)), word(seed), word(seed >> 32), word(stream), word(stream >> 32)}
	return &Node{Kind: Random, Type: fuse.U32, Rows: rows, Cols: cols, Args: args}
}

// NewGather builds a matrix of the elements of a in the given rows and columns, matrices of int32 that stretch to one size. Where a
// has no such row or column the result is 0.
func NewGather(op string, a, rows, cols *Node) *Node {
	if isComplex([]*Node{a}) {
		return a.onParts(op, func(part *Node) *Node { return NewGather(op, part, rows, cols) })
	}
	rows, cols = rows.Typed(fuse.I32), cols.Typed(fuse.I32)
	at := Join(op, rows, cols)
	whole := Join(op, a)
	for _, n := range []*Node{whole, at} {
		if n.Err != nil {
			return n
		}
	}
	a = whole.Args[0]
	switch {
	case at.Type != fuse.I32:
		return Failed(Fail(op, fault.ErrInvalid, "indices are int32, not ", at.Type.String()))
	case a.Dev != nil && at.Dev != nil && a.Dev != at.Dev:
		return Failed(Fail(op, gpu.ErrForeign, "operands on two devices"))
	}
	at.Rows, at.Cols = rows.Rows, rows.Cols
	if err := at.broadcast(op); err != nil {
		return Failed(err)
	}
	n := &Node{
		Kind: Gather, Type: a.Type, Rows: at.Rows, Cols: at.Cols, Dev: cmp.Or(a.Dev, at.Dev), Solves: a.Solves || at.Solves,
		Args: []*Node{a, at.Args[0], at.Args[1]},
	}
	if a.Rows == 0 || a.Cols == 0 {
		none := Number(n.Type, n.Rows, n.Cols, 0)
		none.Dev = n.Dev
		return none
	}
	return n
}

// NewReshape builds a matrix of as many elements as a has, row by row.
func NewReshape(op string, rows, cols int, a *Node) *Node {
	if isComplex([]*Node{a}) {
		return a.onParts(op, func(part *Node) *Node { return NewReshape(op, rows, cols, part) })
	}
	n := (&Node{Kind: Reshape}).build(op, a)
	if n.Err == nil {
		n.Rows, n.Cols = rows, cols
	}
	return n
}

// NewConcat builds a matrix of others, at least one: below each other (AxisRows), of as many columns, or beside each other (AxisCols).
func NewConcat(op string, axis fuse.Axis, args ...*Node) *Node {
	if isComplex(args) {
		return concatComplex(op, axis, args)
	}
	n := (&Node{Kind: Concat, Axis: axis}).join(op, args)
	if n.Err != nil {
		return n
	}
	for i, a := range n.Args {
		rows, cols := n.Rows+a.Rows, a.Cols
		length, unit, fits := n.Cols, "column", a.Cols == n.Cols
		if axis == fuse.AxisCols {
			rows, cols = a.Rows, n.Cols+a.Cols
			length, unit, fits = n.Rows, "row", a.Rows == n.Rows
		}
		if i > 0 && !fits {
			return Misfit(op, fault.Needs("each", length, unit), n.Args[0], a)
		}
		n.Rows, n.Cols = rows, cols
		if err := CheckDims(op, rows, cols); err != nil {
			return Failed(err)
		}
	}
	return n
}
