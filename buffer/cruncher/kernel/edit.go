// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"sort"
	"strings"
)

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
// out the functions that the kernel does not need.
func (b *builder) rewrite() error {
	for _, f := range b.reach {
		for _, r := range f.refs {
			if i, ok := b.p.entries[r.name]; ok {
				if err := b.rewriteArray(&b.p.Arrays[i], r.token); err != nil {
					return err
				}
			}
		}
	}
	s := b.source.scan
	for _, d := range b.source.decls {
		if d.fn != nil && !b.inReach[d.fn] {
			b.replace(s.Pos(d.fn.start), int(s.Tokens[d.fn.end-1].End), "")
		}
	}
	e := b.p.edits // by sort.Slice: of slices.SortFunc each type has a copy, together 16 KB of a page's program
	sort.Slice(e, func(i, j int) bool { return cmp.Or(e[i].pos-e[j].pos, e[i].end-e[j].end) < 0 })
	return nil
}

// replace adds an edit.
func (b *builder) replace(pos, end int, text string) {
	text += strings.Repeat("\n", strings.Count(b.source.scan.Text[pos:end], "\n"))
	b.p.edits = append(b.p.edits, edit{pos, end, text})
}

// rewriteArray changes one use of an array.
func (b *builder) rewriteArray(a *Array, token int) error {
	s := b.source.scan
	if from, to := b.lengthCall(token); to > 0 {
		name := nameLength + a.Name
		b.lengths[name] = true
		b.replace(s.Pos(from), int(s.Tokens[to].End), name)
		return nil
	}
	if !a.Window {
		return nil
	}
	open := token + 1
	if s.Char(open) != '[' {
		return b.failAt(token, quote(a.Name), " has a window, so that it can only be used with an index and in arrayLength")
	}
	b.replace(int(s.Tokens[open].End), int(s.Tokens[open].End), "u32(")
	shut := s.Pos(int(s.Match[open]))
	b.replace(shut, shut, ") - "+nameOffset+a.Name)
	return nil
}

// lengthCall finds the arrayLength(&name) around a name: its first and its last token, or zeros.
func (b *builder) lengthCall(token int) (from, to int) {
	s := b.source.scan
	l, r := token-1, token+1
	around := func() bool { return s.Char(l) == '(' && int(s.Match[l]) == r }
	for around() && !s.IsWord(l-1) {
		l, r = l-1, r+1
	}
	if s.Char(l) != '&' {
		return 0, 0
	}
	l--
	for around() && !s.IsWord(l-1) {
		l, r = l-1, r+1
	}
	if around() && s.At(l-1) == "arrayLength" {
		return l - 1, r
	}
	return 0, 0
}
