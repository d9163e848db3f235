// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"cmp"
	"strings"
)

// FirstCode is the code of the first element-wise operation. Package fuse and the encoded programs of a page use these codes;
// each has smaller ones for instructions of its own.
const FirstCode = 32

// Class says what an operation is called with.
type Class uint8

// The classes. a, b and c are matrices, s, lo and hi are numbers. The element-wise ones have a code.
const (
	Unary        Class = 1 + iota // f(a)
	Binary                        // f(a, b)
	Ternary                       // f(a, b, c)
	Limits                        // f(a, lo, hi); in JavaScript, lo and hi may be matrices
	ScalarLast                    // f(a, s): the operation Code with a number as its second operand
	ScalarFirst                   // f(s, a): the same with a number as its first
	MatrixLimits                  // f(a, low, high): the operation Code with matrices as its limits
	Product                       // the matrix product of a and b
	Transpose                     // f(a); of a matrix in JavaScript it is a view
	Reduction                     // f(a) of all elements, of each row and of each column
	Order                         // f(a) of each row and of each column, sorted
	RowMap                        // f(a) of each row, of each column and of all elements, a matrix
	Shaping                       // f of Params: a matrix made of numbers, or elements in another shape
)

// Operation is a row of the table. Fields that are not set get the value that their comments name.
type Operation struct {
	Name  string // of the function in Go. Without one the operation is for package fuse alone
	Code  string // after "Op" in package fuse, and of JavaScript's Op. Name
	Class Class
	Group string // in FEATURES.md
	// Args are the names of the operands, for documentation. a and b, or cond, a and b.
	Args string

	Real     bool     // float32 and float16 only; otherwise all element types
	Whole    bool     // int32 and uint32 only
	WGSL     string   // of vectors X, Y and Z; V is the vector type, T the scalar type. Helpers are in package fuse
	Ints     string   // for int32. WGSL
	Uints    string   // for uint32. WGSL
	Go       string   // the reference, of elements x, y and z. What uses package math computes in float64
	Both     string   // in place of both, where they are alike but for the case of X, Y and Z
	True     string   // in place of both, of an operation that yields 1 and 0: when it is 1, of X and Y
	Call     string   // of Go's function, where the class alone does not say it
	Gradient string   // the derivatives by the operands, separated by "; ", as texts of matrix.Eval: of a, b, c and the result y
	Store    bool     // whether a *Dense has a method that stores the result
	Doc      string   // follows the name: "is a + b". Of a reduction, the noun
	Note     string   // further sentences
	Ulp      int      // the largest error on any device, in units in the last place. Without one the result is exact or the nearest float
	JS       string   // Name with a small first letter; "-" for none. Operations with a scalar have none
	JSCall   string   // the function that makes it in JavaScript, where the class alone does not say it
	NumPy    string   // where it is another name than in JavaScript
	Text     []string // in matrix.Eval. Every in small letters; operations with a scalar have none
	Takes    string   // of a reduction, what number it takes: Ddof or Power
	Makes    string   // the element type of its results, where it is not that of the operands
	Alone    bool     // of a reduction: there is only the one of all elements
	Every    string   // of a reduction: Go's name of the one of all elements. Name
	Params   string   // of a shaping: the parameters in Go
	Least    int      // of a shaping: how many of the numbers must be given in a text and in JavaScript
	Shape    string   // of a shaping: rows and columns of the result in JavaScript, of the operands and numbers
}

// Group is a row of the table of operations in FEATURES.md. In Names, * stands for the names of its operations.
type Group struct{ Title, Names, Tests string }

// Arity returns how many operands the operation has.
func (o *Operation) Arity() int {
	switch o.Class {
	case Binary, Product, ScalarLast, ScalarFirst:
		return 2
	case Ternary, Limits, MatrixLimits:
		return 3
	}
	return 1
}

// section gives rows their class and group, and what else they leave out.
func section(class Class, group string, rows []Operation) []Operation {
	for i := range rows {
		r := &rows[i]
		r.Class, r.Group = class, group
		r.Code, r.Every = cmp.Or(r.Code, r.Name), cmp.Or(r.Every, r.Name)
		r.Real = r.Real || group == "gradients"
		if r.Both != "" {
			r.WGSL, r.Go = r.Both, strings.ToLower(r.Both)
		}
		if r.True != "" {
			r.WGSL, r.Go = "select(V(), V(T(1)), "+r.True+")", "truth[N]("+strings.ToLower(r.True)+")"
		}
		scripted := r.Name != "" && class != ScalarLast && class != ScalarFirst && class != MatrixLimits
		if scripted && r.JS == "" {
			r.JS = strings.ToLower(r.Name[:1]) + r.Name[1:]
		}
		if scripted && r.Text == nil {
			r.Text = []string{strings.ToLower(r.Every)}
		}
		r.JS = strings.TrimPrefix(r.JS, "-")
	}
	return rows
}
