// SPDX-License-Identifier: Apache-2.0

package kernel

import "strings"

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
			return p.fail(i, "names that begin with ", prefix, " are the library's: ", quote(pending))
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

// reach returns the names that a kernel uses, its own included, and those that the functions use that it calls.
func (s *Source) reach(kernel *decl) map[string]bool {
	uses := map[string]bool{s.scan.At(kernel.name): true}
	for todo := []*decl{kernel}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, token := range last.refs {
			name := s.scan.At(token)
			if uses[name] {
				continue
			}
			uses[name] = true
			if d := s.names[name]; d != nil && d.sort == aFunction {
				todo = append(todo, d)
			}
		}
	}
	return uses
}
