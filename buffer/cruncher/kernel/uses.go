// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
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

// edit replaces a part of the source. It keeps the ends of lines that it covers.
type edit struct {
	pos, end int
	text     string
}

// apply makes edits that are in order and do not overlap.
func apply(text string, edits []edit) string {
	var b strings.Builder
	b.Grow(len(text))
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.pos])
		b.WriteString(e.text)
		last = e.end
	}
	b.WriteString(text[last:])
	return b.String()
}

// before returns which position of the source became one of the edited text.
func before(edits []edit, pos int) int {
	shift := 0
	for _, e := range edits {
		if pos < e.pos+shift {
			break
		}
		if pos < e.pos+shift+len(e.text) {
			return e.pos
		}
		shift += len(e.text) - (e.end - e.pos)
	}
	return pos - shift
}

// rewrite makes the user's text count windows from the beginnings of arrays, gives it the true lengths of arrays, and leaves
// out the functions that the kernel does not need. Names of the library's that do not exist are refused, so that its inner ones
// stay inner.
func (b *builder) rewrite() error {
	for _, token := range b.refs {
		name := b.At(token)
		if strings.HasPrefix(name, prefix) && !b.provides(name) {
			return b.failAt(token, "the library has no ", quote(name), " here")
		}
		if d := lookUp(b.p.Arrays, name); d != nil {
			if err := b.rewriteArray(d, token); err != nil {
				return err
			}
		}
	}
	for _, d := range b.Source.decls {
		if d.sort == aFunction && !b.uses[b.At(d.name)] {
			b.replace(b.Pos(d.start), b.end(d.to-1), "")
		}
	}
	e := b.p.edits // by sort.Slice: of slices.SortFunc each type has a copy, together 16 KB of a page's program
	sort.Slice(e, func(i, j int) bool { return cmp.Or(e[i].pos-e[j].pos, e[i].end-e[j].end) < 0 })
	return nil
}

// provides reports whether a kernel of a source of functions can use a name of the library's.
func (b *builder) provides(name string) bool {
	if name == nameBase || name == nameCount || name == nameTotal {
		return true
	}
	array, load := strings.CutPrefix(name, nameLoad)
	array, store := strings.CutPrefix(array, nameStore)
	d := lookUp(b.p.Arrays, array)
	return d != nil && d.loads() && load != store && (load || d.Mode == Atomic)
}

// end returns where a token ends.
func (b *builder) end(token int) int { return int(b.Tokens[token].End) }

// replace adds an edit.
func (b *builder) replace(pos, end int, text string) {
	text += strings.Repeat("\n", strings.Count(b.Text[pos:end], "\n"))
	b.p.edits = append(b.p.edits, edit{pos, end, text})
}

// rewriteArray changes one use of an array.
func (b *builder) rewriteArray(d *Decl, token int) error {
	if from, to := b.lengthCall(token); to > 0 {
		name := nameLength + d.Name
		b.uses[name] = true
		b.replace(b.Pos(from), b.end(to), name)
		return nil
	}
	if !d.Window {
		return nil
	}
	open := token + 1
	if b.Char(open) != '[' {
		return b.failAt(token, quote(d.Name), " has a window, so that it can only be used with an index and in arrayLength")
	}
	b.replace(b.end(open), b.end(open), "u32(")
	shut := b.Pos(int(b.Match[open]))
	b.replace(shut, shut, ") - "+nameOffset+d.Name)
	return nil
}

// unwrap returns the tokens next to a range of them and to the brackets around it, but for those of a call's arguments.
func (b *builder) unwrap(l, r int) (int, int) {
	for b.Char(l) == '(' && int(b.Match[l]) == r && !b.IsWord(l-1) {
		l, r = l-1, r+1
	}
	return l, r
}

// lengthCall finds the arrayLength(&name) around a name: its first and its last token, or zeros.
func (b *builder) lengthCall(token int) (from, to int) {
	l, r := b.unwrap(token-1, token+1)
	if b.Char(l) != '&' {
		return 0, 0
	}
	l, r = b.unwrap(l-1, r)
	if b.Char(l) == '(' && int(b.Match[l]) == r && b.At(l-1) == "arrayLength" {
		return l - 1, r
	}
	return 0, 0
}

// translate makes a compiler's error about the program's text one about the source: it names the source's lines and shows them.
func (p *Program) translate(err error) error { return wgsl.Translate("", err, p.WGSL, p.show) }

// show words a diagnostic about the program's text for the source.
func (p *Program) show(d wgsl.Diagnostic) string {
	text, start := wgsl.LineOf(p.source.scan.Text, d.Line)
	if start < 0 {
		return "what the library adds to kernel " + p.Name + ": " + d.Text
	}
	if made, at := wgsl.LineOf(p.WGSL, d.Line); d.Column > 0 {
		pos := before(p.edits, at+wgsl.OffsetOf(made, d.Column)) - start
		d.Column = 0
		if pos >= 0 {
			d.Column = 1 + utf8.RuneCountInString(text[:min(pos, len(text))])
		}
	}
	return d.Show(text)
}
