// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The most copies of functions, and bytes of them.
const (
	maxCopies    = 256
	maxCopyBytes = 1 << 20
)

// Whole is a text in which functions get pointers to whole variables only.
type Whole struct {
	Text   string
	lines  int // of the text it was made of
	copies []copied
}

// copied is where a copy of a function begins.
type copied struct{ line, original int }

// Pointers returns a text that means the same and hands no function a pointer to a part of a variable, nor to a buffer: naga, the compiler
// inside wgpu-native, ends the process over the one and refuses the other. Each function that gets such a pointer has a copy behind the
// text, in which a let takes the parameter's place: of a part of a variable of the module, or of what a pointer to a whole variable
// and the indices point to, which the copy gets in its stead. The result is nil for a text that has no such calls. why says what is
// wrong with a pointer, or not understood.
func (s *Scan) Pointers() (whole *Whole, why string) {
	p := s.resolve()
	if p.why != "" || !p.hasCopies() {
		return nil, p.why
	}
	if p.decls["u32"] != nil || p.decls["ptr"] != nil {
		return nil, "a text that declares u32 or ptr hands on a pointer to a part of a variable"
	}
	w := &wholeWriter{pointers: p, made: map[string]string{}}
	return w.write()
}

func (p *pointers) hasCopies() bool {
	for _, c := range p.calls {
		for _, to := range c.paths {
			if to != nil && to.needsCopy() {
				return true
			}
		}
	}
	return false
}

// wholeWriter writes the text and the copies.
type wholeWriter struct {
	*pointers
	made map[string]string // the names of copies, by what they are copies for
	list []*functionCopy
	size int
}

// functionCopy is a function with parameters that are gone.
type functionCopy struct {
	of    *function
	name  string
	bound map[*variable]*path  // what those point to
	names map[*variable]string // other names of the others
}

// write writes functions as long as there are such that are called.
func (w *wholeWriter) write() (*Whole, string) {
	called := map[*function]bool{}
	for _, c := range w.calls {
		called[c.to] = true
	}
	texts := map[*function]string{}
	var copies []string
	for again := true; again; {
		again = false
		for _, f := range w.order {
			if _, done := texts[f]; done || f.bound && f.plain == 0 && called[f] {
				continue
			}
			again = true
			texts[f] = w.text(nil, f.name, f.end+1)
			for len(copies) < len(w.list) && w.why == "" {
				copies = append(copies, w.copy(w.list[len(copies)]))
			}
		}
	}
	if w.why != "" {
		return nil, w.why
	}
	return w.join(texts, copies), ""
}

// join writes the text, without functions that only copies of are called, and then the copies.
func (w *wholeWriter) join(texts map[*function]string, copies []string) *Whole {
	var b strings.Builder
	at := 0
	for _, f := range w.order {
		from, end := w.Pos(f.name), int(w.Tokens[f.end].End)
		text, is := texts[f]
		if !is {
			from = w.Pos(w.attributes(f.name - 1))
			text = strings.Repeat("\n", strings.Count(w.Text[from:end], "\n"))
		}
		b.WriteString(w.Text[at:from] + text)
		at = end
	}
	b.WriteString(w.Text[at:] + "\n")
	whole := &Whole{lines: 1 + strings.Count(w.Text, "\n")}
	line := whole.lines + 1
	for i, text := range copies {
		whole.copies = append(whole.copies, copied{line, w.Line(w.list[i].of.name - 1)})
		b.WriteString(text + "\n")
		line += 1 + strings.Count(text, "\n")
	}
	whole.Text = b.String()
	return whole
}

// text writes tokens as they are but for what changes; c is nil for the text's own functions.
func (w *wholeWriter) text(c *functionCopy, from, to int) string {
	if from >= to {
		return ""
	}
	var b strings.Builder
	at := w.Pos(from)
	put := func(i int, text string, end int) { // text in place of what is between tokens
		b.WriteString(w.Text[at:w.Pos(i)] + text)
		at = end
	}
	for i := from; i < to; i++ {
		v, st := w.refs[i], w.held[i]
		switch {
		case st != nil && st.name != "" && i != from:
			put(i, st.name, int(w.Tokens[st.to-1].End))
			i = st.to - 1
		case w.calls[i] != nil:
			close := int(w.Match[i+1])
			put(i, w.call(c, i, w.calls[i]), int(w.Tokens[close].End))
			i = close
		case w.hoists[i] != nil:
			put(i, w.hoist(c, i), w.Pos(i))
		case v != nil && c.nameOf(v) != v.name:
			put(i, c.nameOf(v), int(w.Tokens[i].End))
		}
	}
	b.WriteString(w.Text[at:w.Tokens[to-1].End])
	return b.String()
}

func (c *functionCopy) nameOf(v *variable) string {
	if c != nil && c.names[v] != "" {
		return c.names[v]
	}
	if v.rename != "" {
		return v.rename
	}
	return v.name
}

// hoist writes the indices of a let before it.
func (w *wholeWriter) hoist(c *functionCopy, let int) string {
	var b strings.Builder
	for _, st := range w.hoists[let] {
		if st.name != "" {
			b.WriteString("let " + st.name + " = " + w.index(c, st) + "; ")
		}
	}
	return b.String()
}

// index writes the value of an index, signed or not, as an u32. Only whole numbers have the complement of a complement.
func (w *wholeWriter) index(c *functionCopy, st *step) string {
	return "u32(~(~(" + w.text(c, st.from, st.to) + ")))"
}

// target follows the parameters that are gone.
func (c *functionCopy) target(to *path) *path {
	if c == nil || c.bound[to.root] == nil {
		return to
	}
	b := c.bound[to.root]
	return &path{b.root, append(append([]*step(nil), b.steps...), to.steps...), to.typ}
}

// call writes a call anew, on as many lines as it had.
func (w *wholeWriter) call(c *functionCopy, at int, to *call) string {
	targets := make([]*path, len(to.paths))
	name := w.At(at)
	for n, given := range to.paths {
		if given == nil {
			continue
		}
		if target := c.target(given); target.needsCopy() {
			targets[n] = target
		}
	}
	if key := w.key(to.to, targets); key != "" {
		name = w.copyFor(key, to.to, targets)
	} else {
		to.to.plain++
	}
	var list []string
	for n, arg := range to.args {
		if n >= len(targets) || targets[n] == nil {
			list = append(list, w.text(c, arg[0], arg[1]))
			continue
		}
		if r := targets[n].root; r.pointer {
			list = append(list, c.nameOf(r))
		} else if !r.module {
			list = append(list, "&"+c.nameOf(r))
		}
		for _, st := range targets[n].steps {
			if st.name != "" {
				list = append(list, st.name)
			} else if st.text == "" {
				list = append(list, w.index(c, st))
			}
		}
	}
	text := name + "(" + strings.Join(list, ", ") + ")"
	was := w.Text[w.Pos(at):w.Tokens[w.Match[at+1]].End]
	return text + strings.Repeat("\n", max(0, strings.Count(was, "\n")-strings.Count(text, "\n")))
}

// key says what a copy is for; it is "" where none is needed.
func (w *wholeWriter) key(f *function, targets []*path) string {
	var key strings.Builder
	key.WriteString(w.At(f.name))
	need := false
	for _, to := range targets {
		key.WriteByte(';')
		if to == nil {
			continue
		}
		need = true
		if to.root.module {
			key.WriteString(to.root.name)
		} else {
			key.WriteString("*" + to.root.space + " " + to.root.typ)
		}
		for _, st := range to.steps {
			if st.text == "" {
				key.WriteString("[]")
			}
			key.WriteString(st.text)
		}
	}
	if !need {
		return ""
	}
	return key.String()
}

// copyFor returns the name of a copy.
func (w *wholeWriter) copyFor(key string, f *function, targets []*path) string {
	if name := w.made[key]; name != "" {
		return name
	}
	c := &functionCopy{of: f, name: w.newName(w.At(f.name)), bound: map[*variable]*path{}, names: map[*variable]string{}}
	w.made[key] = c.name
	if w.list = append(w.list, c); len(w.list) > maxCopies {
		w.refuse(f.name, "more than "+strconv.Itoa(maxCopies)+" functions are made of this one and others, one for each kind of pointer")
	}
	for n, to := range targets {
		if to == nil {
			continue
		}
		root := to.root
		if !root.module {
			root = &variable{name: w.newName("pointer"), pointer: true, space: root.space, access: root.access, typ: root.typ}
		} else {
			for _, v := range f.params { // none hides the variable
				if v.name == root.name {
					c.names[v] = w.newName(v.name)
				}
			}
		}
		b := &path{root: root}
		for _, st := range to.steps {
			if st.text == "" {
				st = &step{name: w.newName("index")}
			}
			b.steps = append(b.steps, st)
		}
		c.bound[f.params[n]] = b
	}
	return c.name
}

// copy writes a copy.
func (w *wholeWriter) copy(c *functionCopy) string {
	f := c.of
	close := int(w.Match[f.name+1])
	var params []string
	var lets strings.Builder
	for n, v := range f.params {
		b := c.bound[v]
		if b == nil {
			params = append(params, w.text(c, f.parts[n][0], f.parts[n][1]))
			continue
		}
		base := b.root.name
		if b.root.pointer {
			params = append(params, base+": ptr<"+b.root.space+", "+b.root.typ+">")
			base = "(*" + base + ")"
		}
		for _, st := range b.steps {
			if st.name != "" {
				params = append(params, st.name+": u32")
			}
		}
		lets.WriteString(" let " + c.nameOf(v) + " = &" + base + joinSteps(b.steps) + ";")
	}
	head := "fn " + c.name + "(" + strings.Join(params, ", ") + ")"
	was := w.Text[w.Pos(f.name-1):w.Tokens[close].End]
	head += strings.Repeat("\n", max(0, strings.Count(was, "\n")-strings.Count(head, "\n")))
	result := w.Text[w.Tokens[close].End:w.Tokens[f.body].End]
	text := head + result + lets.String() + w.Text[w.Tokens[f.body].End:w.Pos(f.body+1)] + w.text(c, f.body+1, f.end+1)
	if w.size += len(text); w.size > maxCopyBytes {
		w.refuse(f.name, "the functions made of this one and others, one for each kind of pointer, take more than 1 MiB")
	}
	return text
}

// Original returns the line of the user's text that a line stems from.
func (w *Whole) Original(line int) int {
	from := line
	for _, c := range w.copies {
		if c.line <= line {
			from = c.original + line - c.line
		}
	}
	return from
}

// Explain has a compiler's error speak of lines of the user's text. There may be no other text.
func (w *Whole) Explain(err error) error {
	if o, ok := errors.AsType[*fault.OpError](err); ok && w != nil {
		o.Detail = w.Report(o.Detail)
	}
	return err
}

// Report writes the lines of the user's text into what a compiler reports of this one: after a word that stands before numbers of lines,
// and before the bar that text of them follows.
func (w *Whole) Report(report string) string {
	for _, mark := range []string{"wgsl:", "line "} {
		parts := strings.Split(report, mark)
		for i := 1; i < len(parts); i++ {
			digits := len(parts[i]) - len(strings.TrimLeft(parts[i], "0123456789"))
			if n, err := strconv.Atoi(parts[i][:digits]); err == nil {
				parts[i] = strconv.Itoa(w.Original(n)) + parts[i][digits:]
			}
		}
		report = strings.Join(parts, mark)
	}
	lines := strings.Split(report, "\n")
	for i, line := range lines {
		number, text, is := strings.Cut(line, " │")
		if n, err := strconv.Atoi(strings.TrimSpace(number)); is && err == nil && w.Original(n) != n {
			original := strconv.Itoa(w.Original(n))
			lines[i] = strings.Repeat(" ", max(0, len(number)-len(original))) + original + " │" + text
		}
	}
	return strings.Join(lines, "\n")
}
