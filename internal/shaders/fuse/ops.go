// SPDX-License-Identifier: Apache-2.0

package fuse

import "strings"

// Op is an operation of a Func: an instruction that is listed here, or an element-wise operation of the table in
// internal/ops. Comparisons and logic yield 1 or 0 in the type of the computation; any value but 0 is true.
type Op uint8

// The instructions.
const (
	OpAcc    Op = iota // the kernel's own value: a product, a loaded element, a sum
	OpLoad             // operand X
	OpScalar           // scalar X
	OpCall             // user's function X of values Y, Y+1, ...
)

// opInfo describes an operation. In its texts X, Y and Z stand for the operands, T for the scalar type and V for the vector
// type.
type opInfo struct {
	name   string
	arity  int
	floats bool // only for floating point
	wgsl   string
	ints   string // the text for integers where it differs
	uints  string // the text for unsigned integers where it differs
}

// noInfo is the row of what the table does not have.
var noInfo = opInfo{arity: -1}

// info returns the table's row of the operation.
func (o Op) info() *opInfo {
	if o < opFirst || o >= opEnd {
		return &noInfo
	}
	return &opTable[o-opFirst]
}

// String returns the operation's name.
func (o Op) String() string {
	if o <= OpCall {
		return [...]string{"acc", "load", "scalar", "call"}[o]
	}
	return o.info().name
}

// Arity returns how many values the operation takes, -1 for one that is not in the table.
func (o Op) Arity() int { return o.info().arity }

// Takes reports whether the operation is defined for a type.
func (o Op) Takes(t Type) bool { return o < opEnd && (t.Compute() == F32 || !o.info().floats) }

// text returns the expression's pattern for a type.
func (o Op) text(t Type) string {
	i := o.info()
	switch {
	case t == I32 && i.ints != "":
		return i.ints
	case t == U32 && i.uints != "":
		return i.uints
	}
	return i.wgsl
}

// helpersOf returns the helpers that a text calls, each after those that it calls itself, except for those that another text
// calls.
func helpersOf(text, other string) string {
	var list string
	for _, h := range helpers {
		if strings.Contains(text, h.call) && !strings.Contains(other, h.call) {
			list = h.text + list
			text += h.text
		}
	}
	return list
}
