// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// shaped calls a function that makes or shapes matrices: operands come first, then numbers.
func (e *evaluator) shaped(at int, name string, number int, args []*node) *node {
	c := &shapingCounts[number]
	operands := c.operands
	if operands < 0 {
		operands = max(len(args), 1)
	}
	given := len(args) - operands
	if c.operands < 0 && len(args) == 0 {
		return e.fail(at, ErrSyntax, name, " takes 1 matrix or more")
	}
	if given < c.least || given > c.most {
		return e.fail(at, ErrSyntax, name, " takes ", fault.Count(operands, "operand"), " and ", numbersOf(c.least, c.most))
	}
	var numbers []float64
	for i, a := range args {
		switch {
		case a.Err != nil:
			return a
		case i >= operands && !isNumber(a):
			return e.fail(at, ErrSyntax, name, " takes a number as its argument ", itoa(i+1))
		case i >= operands:
			numbers = append(numbers, a.Value)
		case isNumber(a):
			args[i] = numberNode(e.beside(args[:operands]), a.Value)
		}
	}
	t := e.beside(args[:operands])
	if e.free && c.name == "RandomBits" { // float32 has not that many bits
		t = fuse.U32
	}
	n := shapingNode(c.name, number, t, args[:operands], numbers...)
	if n.Err != nil {
		return expr.Failed(e.placed(at, n.Err))
	}
	return n
}

func numbersOf(least, most int) string {
	if least == most {
		return fault.Count(most, "number")
	}
	return itoa(least) + " to " + fault.Count(most, "number")
}
