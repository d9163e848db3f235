// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// findWrites notes which arrays the kernel may change.
func (b *builder) findWrites() {
	for _, token := range b.refs {
		name, stored := strings.CutPrefix(b.At(token), nameStore)
		if d := lookUp(b.p.Arrays, name); d != nil && (stored || b.mayWrite(token)) {
			d.Written = b.p.Bindings[d.Binding] == driver.AccessReadWrite
		}
	}
}

// mayWrite reports whether a use of a name changes what it stands for, or takes its address for more than its length.
func (b *builder) mayWrite(token int) bool {
	if _, to := b.lengthCall(token); to > 0 {
		return false
	}
	l, r := token-1, token+1
	for {
		switch l, r = b.unwrap(l, r); b.Char(r) {
		case '[':
			r = int(b.Match[r]) + 1
		case '.':
			r += 2
		default:
			return b.Char(l) == '&' && b.unary(l) && !b.loads(l) || b.assigns(r)
		}
	}
}

// loads reports whether the address that begins with the token goes to WGSL's atomicLoad, and not to a function of that name.
func (b *builder) loads(token int) bool {
	const name = "atomicLoad"
	return b.Char(token-1) == '(' && b.At(token-2) == name && b.names[name] == nil
}

// unary reports whether an operator has no operand on its left.
func (b *builder) unary(token int) bool {
	switch before := token - 1; b.Char(before) {
	case ')', ']', '&': // the last of && is binary: there are no pointers to pointers
		return false
	case 0: // a name or a number, unless it is a keyword
		return b.At(before) == "return"
	}
	return true
}

// assigns reports whether an assignment, an increment or a decrement begins with the token.
func (b *builder) assigns(token int) bool {
	c, next := b.Char(token), b.Char(token+1)
	switch c {
	case '=':
		return next != '='
	case '+', '-':
		return next == '=' || next == c
	case '*', '/', '%', '&', '|', '^':
		return next == '='
	case '<', '>':
		return next == c && b.Char(token+2) == '='
	}
	return false
}
