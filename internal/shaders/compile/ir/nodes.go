// SPDX-License-Identifier: Apache-2.0

package ir

// Expr computes a value.
type Expr interface{ Type() *Type }

// Const is a constant: the bits of its scalars in order, a bool as 0 or 1.
type Const struct {
	T     *Type
	Words []uint32
}

// Use is the value of a let or of a parameter.
type Use struct{ Value *Value }

// Ref is a variable or a part of one. It is no Expr; what reads it is a [Load].
type Ref struct {
	Var  *Var
	Path []Step
	T    *Type // of the part
}

// Step goes from a reference or a value to a part: a field of a struct, or element, column or component number Index.
type Step struct {
	Index Expr // I32 or U32; nil for a field. An index that is out of range is clamped; a negative one is, as unsigned, too large
	Field int
}

// Load reads a variable or a part of one.
type Load struct{ Ref *Ref }

// Part is a part of a value.
type Part struct {
	X    Expr
	Step Step
	T    *Type
}

// Swizzle is a vector of so many components of a vector, or one component as a scalar.
type Swizzle struct {
	X     Expr
	Lanes []uint8
	T     *Type
}

// Unary is -X, !X or ~X.
type Unary struct {
	Op Op
	X  Expr
}

// Binary has operands of one type, but for shifts, whose Y is U32 or a vector of U32, and for products with a matrix.
type Binary struct {
	Op   Op
	X, Y Expr
	T    *Type
}

// Construct makes a composite of its parts in order: a vector of scalars and vectors, or of one scalar that all components get; a
// matrix of columns or of scalars; an array of elements; a struct of fields.
type Construct struct {
	T    *Type
	Args []Expr
}

// Convert changes scalars, or vectors by component, as WGSL's constructors do: floats are cut toward zero and saturate.
type Convert struct {
	T *Type
	X Expr
}

// Bitcast keeps the bits.
type Bitcast struct {
	T *Type
	X Expr
}

// Call calls a function of the program. Args and Refs have an entry for each parameter, nil in one of them.
type Call struct {
	Func *Func
	Args []Expr
	Refs []*Ref
}

// Builtin calls a built-in function. Ref is the operand of atomics and of arrayLength. Select has its operands in WGSL's
// order: false, true, condition. Results of frexp, modf and compareExchange are structs of the fields that WGSL says.
type Builtin struct {
	Fn   Fn
	Ref  *Ref
	Args []Expr
	T    *Type // nil for none
}

// Lanes accesses a scalar in memory for each of four invocations. Step At of the path has an index that differs between them: a vector of
// four indices or, if it is a scalar, the index of the first invocation, to which each further one adds Stride. If X is nil the four
// scalars are loaded; otherwise X, a vector, is stored by the invocations of Mask, or by all if Mask is nil.
type Lanes struct {
	Ref     *Ref // its T is the type of the scalar
	At      int
	Stride  uint32
	X, Mask Expr
	T       *Type // a vector of four, nil for a store
}

// Type implements [Expr].
func (e *Const) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Use) Type() *Type { return e.Value.Type }

// Type implements [Expr]: an atomic is only read by built-in functions.
func (e *Load) Type() *Type { return e.Ref.T }

// Type implements [Expr].
func (e *Part) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Swizzle) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Unary) Type() *Type { return e.X.Type() }

// Type implements [Expr].
func (e *Binary) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Construct) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Convert) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Bitcast) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Call) Type() *Type { return e.Func.Result }

// Type implements [Expr].
func (e *Builtin) Type() *Type { return e.T }

// Type implements [Expr].
func (e *Lanes) Type() *Type { return e.T }

// Op is an operator.
type Op uint8

// The operators. Comparisons yield bool or a vector of bool. AndAlso and OrElse compute Y only where X does not decide. Integers
// wrap; what is divided by zero stays as it is, and its remainder is 0.
const (
	Neg Op = iota
	Not
	Complement
	Add
	Sub
	Mul // of numbers by component; with a matrix the product of linear algebra
	Div
	Mod
	And
	Or
	Xor
	ShiftLeft
	ShiftRight
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	AndAlso
	OrElse
)

// Stmt is a statement.
type Stmt interface{ stmt() }

// Declare begins the lifetime of a variable of the function, with a value or, where Init is nil, zeros.
type Declare struct {
	Var  *Var
	Init Expr
}

// Let computes a value.
type Let struct {
	Value *Value
	X     Expr
}

// Store writes a variable or a part of one.
type Store struct {
	Ref *Ref
	X   Expr
}

// Eval computes something for its effects.
type Eval struct{ X Expr }

// If chooses.
type If struct {
	Cond       Expr
	Then, Else []Stmt
}

// Loop repeats Body and then Continuing until a Break. Continue goes on with Continuing, after which BreakIf, unless it is nil, may end the loop.
type Loop struct {
	Body, Continuing []Stmt
	BreakIf          Expr
}

// Switch runs the case of a value, or the default one: there is one.
type Switch struct {
	X     Expr // I32 or U32
	Cases []Case
}

// Case is a case of a Switch. A Break in it ends the Switch.
type Case struct {
	Values  []uint32 // bits
	Default bool
	Body    []Stmt
}

// Block is statements of a scope of their own.
type Block struct{ Body []Stmt }

// Break ends the innermost Loop or Switch.
type Break struct{}

// Continue ends the turn of the innermost Loop.
type Continue struct{}

// Return ends the function.
type Return struct{ X Expr } // nil for none

// Barrier waits for all invocations of the workgroup, and makes what they wrote seen. A workgroupUniformLoad is a Let between two.
type Barrier struct{}

func (*Declare) stmt()  {}
func (*Let) stmt()      {}
func (*Store) stmt()    {}
func (*Eval) stmt()     {}
func (*If) stmt()       {}
func (*Loop) stmt()     {}
func (*Switch) stmt()   {}
func (*Block) stmt()    {}
func (*Break) stmt()    {}
func (*Continue) stmt() {}
func (*Return) stmt()   {}
func (*Barrier) stmt()  {}
