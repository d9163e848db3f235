// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// references notes the tokens of a function that name something outside of it. A local name hides others from the semicolon
// of its declaration to the end of its block, so that let x = x + 1; reads an outer x. In a source of functions, local names
// that begin with sublet_ are refused.
func (p *parser) references(d *decl) error {
	until := map[string]int{} // where local names go out of scope: the last place, as blocks nest
	blocks := []int{d.to}     // the ends of those that are open
	shut := int(p.Match[d.from])
	pending := ""
	declare := func(i int) error {
		if pending = p.At(i); !p.complete && strings.HasPrefix(pending, prefix) {
			return p.failAt(i, "names that begin with ", prefix, " are the library's: ", quote(pending))
		}
		return nil
	}
	for i := d.from; i < d.to; i++ {
		for blocks[len(blocks)-1] <= i {
			blocks = blocks[:len(blocks)-1]
		}
		var err error
		switch text := p.At(i); text {
		case "@":
			p.next = i
			p.attributes()
			i = p.next - 1
		case "{":
			blocks = append(blocks, int(p.Match[i]))
		case ";":
			until[pending] = max(until[pending], blocks[len(blocks)-1])
			pending = ""
		case "for":
			if p.Char(i+1) == '(' { // what is declared here belongs to the block behind
				p.next = int(p.Match[i+1]) + 1
				p.attributes()
				if p.Char(p.next) == '{' {
					blocks = append(blocks, int(p.Match[p.next]))
				}
			}
		case "let", "var", "const":
			name := i + 1
			if p.Char(name) == '<' {
				name = p.find('>', name, min(name+5, d.to)) + 1
			}
			if p.IsWord(name) {
				err = declare(name)
				i = name
			}
		default:
			if !p.IsWord(i) || p.Char(i-1) == '.' || until[text] > i {
				break
			}
			if i < shut && p.Char(i+1) == ':' {
				err = declare(i)
				until[text] = d.to
				break
			}
			d.refs = append(d.refs, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reach returns the names that a kernel uses, its own included, and those that the functions use that it calls, and all tokens
// that do.
func (p *parser) reach(kernel *decl) (uses map[string]bool, refs []int) {
	uses = map[string]bool{p.At(kernel.name): true}
	for todo := []*decl{kernel}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		refs = append(refs, last.refs...)
		for _, token := range last.refs {
			name := p.At(token)
			if uses[name] {
				continue
			}
			uses[name] = true
			if d := p.names[name]; d != nil && d.sort == aFunction {
				todo = append(todo, d)
			}
		}
	}
	return uses, refs
}

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
