// SPDX-License-Identifier: Apache-2.0

// Package ops is the table of operations. A row says everything about an operation: its names, its text in WGSL and in Go,
// its gradient and its documentation. `go generate ./internal/ops` writes from it what package fuse computes with, the
// functions and methods of package matrix, the functions of matrix.Eval, the methods in JavaScript with their declarations,
// and the lists in FEATURES.md and in the help of `sublet eval`. Nothing but the generator and tests imports this package.
package ops

import (
	"cmp"
	"strings"
)

//go:generate go run ./gen

// FirstCode is the code of the first element-wise operation. Package fuse and the encoded programs of a page use these codes;
// each has smaller ones for instructions of its own.
const FirstCode = 32

// Class says what an operation is called with.
type Class uint8

// The classes. a, b and c are matrices, s, lo and hi are numbers. The element-wise ones have a code.
const (
	Unary       Class = 1 + iota // f(a)
	Binary                       // f(a, b)
	Ternary                      // f(a, b, c)
	Limits                       // f(a, lo, hi); in JavaScript, lo and hi may be matrices
	ScalarLast                   // f(a, s): the operation Code with a number as its second operand
	ScalarFirst                  // f(s, a): the same with a number as its first
	Product                      // the matrix product of a and b
	Transpose                    // f(a); of a matrix in JavaScript it is a view
	Reduction                    // f(a) of all elements, of each row and of each column
	RowMap                       // f(a) of each row
)

// Operation is a row of the table. Fields that are not set have the value that their comments name.
type Operation struct {
	Name  string // of the function in Go. Without one the operation is for package fuse alone
	Code  string // after "Op" in package fuse, and of JavaScript's Op. Name
	Class Class
	Group string // in FEATURES.md

	Real     bool     // float32 and float16 only; otherwise all element types
	WGSL     string   // of vectors X, Y and Z; V is the vector type, T the scalar type. Helpers are in package fuse
	Ints     string   // for int32. WGSL
	Uints    string   // for uint32. WGSL
	Go       string   // the reference, of elements x, y and z. What uses package math computes in float64
	True     string   // in place of both, of an operation that yields 1 and 0: when it is 1, of X and Y
	Call     string   // of Go's function, where the class alone does not say it
	Gradient string   // the derivatives by the operands, separated by "; ", as texts of matrix.Eval: of a, b, c and the result y
	Store    bool     // whether a *Dense has a method that stores the result
	Doc      string   // follows the name: "is a + b". Of a reduction, the noun
	Note     string   // further sentences
	JS       string   // Name with a small first letter; "-" for none
	JSCall   string   // the function that makes it in JavaScript, where the class alone does not say it
	NumPy    string   // where it is another name than in JavaScript
	Text     []string // in matrix.Eval. Name in small letters; "-" for none
	Every    string   // of a reduction: Go's name of the one of all elements. Name
}

// Group is a row of the table of operations in FEATURES.md. In Names, * stands for the names of its operations.
type Group struct{ Title, Names, Tests string }

// ElementWise returns the operations that package fuse computes, in the order of their codes.
func ElementWise() []Operation {
	var list []Operation
	for _, o := range Table {
		if o.WGSL != "" {
			list = append(list, o)
		}
	}
	return list
}

// CodeName returns the name of the operation's code.
func (o *Operation) CodeName() string { return cmp.Or(o.Code, o.Name) }

// Arity returns how many operands the operation has.
func (o *Operation) Arity() int {
	switch o.Class {
	case Binary, Product, ScalarLast, ScalarFirst:
		return 2
	case Ternary, Limits:
		return 3
	}
	return 1
}

// JSName returns the name in JavaScript, "" for none.
func (o *Operation) JSName() string {
	switch {
	case o.JS == "-" || o.Name == "" || o.Class == ScalarLast || o.Class == ScalarFirst:
		return ""
	case o.JS != "":
		return o.JS
	}
	return strings.ToLower(o.Name[:1]) + o.Name[1:]
}

// TextNames returns the names in matrix.Eval; of a reduction, those of all elements.
func (o *Operation) TextNames() []string {
	switch {
	case o.Name == "" || o.Class == ScalarLast || o.Class == ScalarFirst:
		return nil
	case len(o.Text) > 0:
		return o.Text
	}
	return []string{strings.ToLower(o.EveryName())}
}

// EveryName returns Go's name; of a reduction, that of all elements.
func (o *Operation) EveryName() string { return cmp.Or(o.Every, o.Name) }
