// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

// Op is an operation of a Func: an instruction that is listed here, or an element-wise operation of the table in
// internal/ops. Comparisons and logic yield 1 or 0 in the type of the computation; any value but 0 is true.
type Op uint8

// The instructions.
const (
	OpAcc     Op = iota // the kernel's own value: a product, a loaded element, a sum
	OpLoad              // operand X
	OpScalar            // scalar X
	OpCall              // user's function X of values Y, Y+1, ...
	OpRow               // the number of the element's row, int32
	OpCol               // the number of its column, int32
	OpAt                // the element of operand X in row Y and column Z, both int32; 0 where there is none
	OpConvert           // value X as an element of type Y
	OpRandom            // random bits of values X to X+6: row and column, columns of the whole, seed and stream in two words each
)

// opInfo describes an operation. In its texts $0, $1 and $2 stand for the operands, T for the scalar type and V for the vector
// type.
type opInfo struct {
	name   string
	arity  int
	calls  int   // of helpers, with those that they make
	loops  uint8 // 1 if one of them loops where floats are computed, and 2 where integers are
	floats bool  // only for floating point
	whole  bool  // only for integers
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
	if o <= OpRandom {
		return [...]string{"acc", "load", "scalar", "call", "row", "col", "at", "convert", "random"}[o]
	}
	return o.info().name
}

// Arity returns how many values the operation takes, -1 for one that is not in the table.
func (o Op) Arity() int { return o.info().arity }

// Calls returns how many calls of functions the operation's text makes, with those that they make: compilers put each into its place.
func (o Op) Calls() int { return o.info().calls }

// Loops reports whether the operation takes turns of a loop for a type, up to 32; see [shaders.LoopLimit].
func (o Op) Loops(t Type) bool { return o.info().loops>>shaders.Bit(t.Compute() != F32)&1 != 0 }

// Takes reports whether the operation is defined for a type.
func (o Op) Takes(t Type) bool {
	i := o.info()
	if t.Compute() == F32 {
		return o < opEnd && !i.whole
	}
	return o < opEnd && !i.floats
}

// Text returns the operation's expression for a type and operands.
func (o Op) Text(t Type, operands ...string) string {
	i := o.info()
	pattern := i.wgsl
	switch {
	case t == I32 && i.ints != "":
		pattern = i.ints
	case t == U32 && i.uints != "":
		pattern = i.uints
	}
	return shaders.Fill(pattern, operands...)
}

//go:embed usual.wgsl
var usualHelpers string

//go:embed helpers.wgsl
var realHelpers string

//go:embed whole.wgsl
var wholeHelpers string

//go:embed random.wgsl
var randomHelpers string

// usual are the functions of the first file, without the lines before the first one.
var usual = functionsOf(usualHelpers)

// all returns those of all files. It is a function, since a variable would be filled when a program starts, and then the texts would be in
// the first part of a page's program.
func all() []string {
	return slices.Concat(functionsOf(realHelpers), functionsOf(wholeHelpers), functionsOf(randomHelpers), usual)
}

func functionsOf(file string) []string { return strings.Split(file, "\n\n")[1:] }

// Helpers returns the helpers that a text calls, and those that they call.
func Helpers(text string) string {
	c := callees{open: map[string]bool{}}
	c.read(text)
	c.list(usual)
	if c.missing() {
		c.list(all())
	}
	return c.text.String()
}

// callees are functions that texts call.
type callees struct {
	open map[string]bool // true for a function that was called and whose declaration was not seen, false for one that is declared
	text strings.Builder // the helpers among them
}

// read notes which functions a text declares and calls.
func (c *callees) read(text string) {
	for at, name := range shaders.Identifiers(text) {
		_, known := c.open[name]
		switch {
		case strings.HasSuffix(text[:at], "fn "):
			c.open[name] = false
		case !known && strings.HasPrefix(text[at+len(name):], "("):
			c.open[name] = true
		}
	}
}

// list adds those helpers that are called and not there, and then those that they call.
func (c *callees) list(helpers []string) {
	for before := -1; c.text.Len() > before; {
		before = c.text.Len()
		for _, helper := range helpers {
			_, function, _ := strings.Cut(helper, "fn ")
			name, _, _ := strings.Cut(function, "(")
			if c.open[name] {
				function = "fn " + strings.TrimSpace(function) + "\n"
				c.text.WriteString(function)
				c.read(function)
			}
		}
	}
}

// missing reports whether a helper of another file may be called. Their names end in 4 or have an underscore, but for those that only others
// call; WGSL's own functions are not called so, and its constructors, such as vec4, are followed by a type.
func (c *callees) missing() bool {
	for name, open := range c.open {
		if open && (strings.HasSuffix(name, "4") || strings.Contains(name, "_")) {
			return true
		}
	}
	return false
}

// Reduction names what a reduction computes: those of the table in internal/ops.
type Reduction uint8

// Valid reports whether there is such a reduction.
func (r Reduction) Valid() bool { return r < reduceEnd }

// Takes reports whether the reduction is defined for a type.
func (r Reduction) Takes(t Type) bool {
	switch r {
	case ReduceMean, ReduceVar, ReduceStd, ReduceNorm2, ReduceNormP, ReduceLogSumExp:
		return t.Compute() == F32
	}
	return true
}

// Result is the type of the reduction's results: counts and indices are int32.
func (r Reduction) Result(t Type) Type {
	switch r {
	case ReduceCountNonzero, ReduceArgMax, ReduceArgMin:
		return I32
	}
	return t
}

// Axis tells what a reduction leaves.
type Axis uint8

// The axes.
const (
	AxisAll  Axis = iota // 1 x 1
	AxisRows             // one value per row: rows x 1
	AxisCols             // one value per column: 1 x cols
)
