// SPDX-License-Identifier: Apache-2.0

// Package ir describes a WGSL program after its names and types are resolved: what the front end hands to the code generator.
//
// Everything implicit in WGSL is explicit here: constants are folded, conversions of abstract numbers are done, a scalar operand beside
// a vector is a [Construct], loads of references are [Load] nodes, compound assignments are loads and stores, for and while are [Loop],
// pointers are [Ref] values that the functions taking them are given. A program in this form has no errors left; what a code
// generator may still refuse is its size.
package ir

// Kind tells types apart.
type Kind uint8

// The kinds.
const (
	Bool Kind = iota
	I32
	U32
	F32
	Vector // Len components of a scalar type
	Matrix // Len columns, vectors of F32
	Array  // Len elements; 0 for as many as a storage binding holds
	Struct
	Atomic // of I32 or U32
)

// Type is a type. Types are interned by a [Types]: equal types are the same pointer.
type Type struct {
	Kind   Kind
	Elem   *Type // of Vector, Matrix (a column), Array and Atomic
	Len    int
	Name   string // of a Struct
	Fields []Field
	// The layout of WGSL in bytes, which private and workgroup variables have, too. A bool takes 4 bytes. Size of an array without
	// a length is that of one element.
	Size, Align int
	Stride      int // from an element or column to the next
}

// Field is a member of a Struct.
type Field struct {
	Name   string
	Type   *Type
	Offset int
}

// IsScalar reports whether a value of the type is one number or truth value.
func (t *Type) IsScalar() bool { return t.Kind <= F32 }

// Scalar returns the type of a component: of a vector or matrix its elements', of an atomic its content's, otherwise the type itself.
func (t *Type) Scalar() *Type {
	switch t.Kind {
	case Vector, Atomic:
		return t.Elem
	case Matrix:
		return t.Elem.Elem
	}
	return t
}

// Words returns how many scalars a value of the type consists of.
func (t *Type) Words() int {
	switch t.Kind {
	case Vector:
		return t.Len
	case Matrix, Array:
		return t.Len * t.Elem.Words()
	case Struct:
		n := 0
		for _, f := range t.Fields {
			n += f.Type.Words()
		}
		return n
	}
	return 1
}

// Space is where a variable lives.
type Space uint8

// The address spaces.
const (
	Function  Space = iota // one per call
	Private                // one per invocation
	Workgroup              // one per workgroup, zeros at its beginning
	Uniform                // the parameter block
	Storage
)

// Var is a variable.
type Var struct {
	Name    string
	Type    *Type
	Space   Space
	Binding int  // of Uniform and Storage
	Write   bool // of Storage: access is read_write
	Init    Expr // of Private: a constant, or nil for zeros
}

// Value is the value of a let, or of a parameter that is no pointer.
type Value struct {
	Name string
	Type *Type
	Temp bool // only the statement that follows uses the value, or temporary values before it
}

// Input is what an entry point's parameter is given.
type Input uint8

// The inputs: WGSL's built-in values of a compute shader.
const (
	NoInput Input = iota
	LocalInvocationID
	LocalInvocationIndex
	GlobalInvocationID
	WorkgroupID
	NumWorkgroups
)

// Param is a parameter: of an entry point one with an Input, of other functions a Value, or a Var that is what a pointer points to.
type Param struct {
	Value *Value
	Var   *Var // stands for the [Ref] of the call
	Input Input
}

// Func is a function.
type Func struct {
	Name   string
	Params []Param
	Result *Type // nil for none
	Body   []Stmt
	// Barrier: it or a function that it calls has a [Barrier]. Calls of it are the whole of an [Eval] or a [Let], and its only
	// Return, if it has one, ends its body or stands in uniform control flow.
	Barrier bool
}

// Program is what an entry point needs. Functions stand after those that they call, the entry point last.
type Program struct {
	Vars  []*Var // of modules, in the order of their declaration, without those that nothing uses but for bindings
	Funcs []*Func
	Entry *Func
	Size  [3]int // of a workgroup
	Lanes bool   // it runs four invocations along x at a time, and is given the ids of the first of them
}
