// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// findWrites notes which arrays the kernel may change.
func (b *builder) findWrites() {
	for _, f := range b.reach {
		for _, r := range f.refs {
			name, stored := strings.CutPrefix(r.name, nameStore)
			if i, ok := b.p.entries[name]; ok && (stored || b.mayWrite(r.token)) {
				a := &b.p.Arrays[i]
				a.Written = b.p.Bindings[a.Binding] == driver.AccessReadWrite
			}
		}
	}
}

// mayWrite reports whether a use of a name changes what it stands for, or takes its address for more than its length.
func (b *builder) mayWrite(token int) bool {
	if _, to := b.lengthCall(token); to > 0 {
		return false
	}
	s := b.source.scan
	l, r := token-1, token+1
	for {
		switch {
		case s.Char(r) == '[':
			r = int(s.Match[r]) + 1
			continue
		case s.Char(r) == '.':
			r += 2
			continue
		case s.Char(l) == '(' && int(s.Match[l]) == r && !s.IsWord(l-1): // around it, not arguments of a function
			l, r = l-1, r+1
			continue
		}
		return s.Char(l) == '&' && b.unary(l) && !b.loads(l) || b.assigns(r)
	}
}

// loads reports whether the address that begins with the token goes to WGSL's atomicLoad, and not to a function of that name.
func (b *builder) loads(token int) bool {
	const name = "atomicLoad"
	s := b.source.scan
	return s.Char(token-1) == '(' && s.At(token-2) == name && b.source.decls[name] == nil
}

// unary reports whether an operator has no operand on its left.
func (b *builder) unary(token int) bool {
	s := b.source.scan
	before := token - 1
	switch s.Char(before) {
	case ')', ']', '&': // the last of && is binary: there are no pointers to pointers
		return false
	case 0: // a name or a number, unless it is a keyword
		return s.At(before) == "return"
	}
	return true
}

// assigns reports whether an assignment, an increment or a decrement begins with the token.
func (b *builder) assigns(token int) bool {
	s := b.source.scan
	c, next := s.Char(token), s.Char(token+1)
	switch c {
	case '=':
		return next != '='
	case '+', '-':
		return next == '=' || next == c
	case '*', '/', '%', '&', '|', '^':
		return next == '='
	case '<', '>':
		return next == c && s.Char(token+2) == '='
	}
	return false
}
