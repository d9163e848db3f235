// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math/cmplx"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// withoutUnit cuts off an i or j that is part of the token of a number.
func withoutUnit(text string) (number string, imaginary bool) {
	if number, imaginary = strings.CutSuffix(text, "i"); imaginary {
		return number, true
	}
	return strings.CutSuffix(text, "j")
}

// imaginaryUnit passes over an i or j that follows a number without a space.
func (e *evaluator) imaginaryUnit() bool {
	unit := e.scan.At(e.next)
	if unit != "i" && unit != "j" || e.scan.Pos(e.next) != int(e.scan.Tokens[e.next-1].End) {
		return false
	}
	e.next++
	return true
}

func imaginaryNode(v float64) *node { return constantNode(complex(0, v)) }

// constantNode is a complex number of the text.
func constantNode(v complex128) *node {
	return expr.NewComplex("Eval", numberNode(fuse.F32, real(v)), numberNode(fuse.F32, imag(v)))
}

// constantOf returns a number of the text, which may be complex.
func constantOf(n *node) (v complex128, ok bool) {
	if isNumber(n) {
		return complex(n.Value, 0), true
	}
	if n.Err != nil || n.Kind != expr.Complex || n.Rows != 1 || n.Cols != 1 {
		return 0, false
	}
	re, im := n.Args[0], n.Args[1]
	return complex(re.Value, im.Value), re.Kind == expr.Scalar && im.Kind == expr.Scalar
}

// complexNumber computes with numbers of the text, in float64, if the operator is one of arithmetic.
func complexNumber(operator string, v, w complex128) (n *node, ok bool) {
	switch operator {
	case "+":
		v += w
	case "-":
		v -= w
	case "*", "@", "%":
		a, b, c, d := real(v), imag(v), real(w), imag(w)
		v = complex(float64(a*c)-float64(b*d), float64(a*d)+float64(b*c)) // not v * w, which Go fuses on some machines
	case "/":
		v /= w
	case "**":
		v = cmplx.Pow(v, w)
	default:
		return nil, false
	}
	return constantNode(v), true
}
