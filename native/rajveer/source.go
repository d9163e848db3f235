// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package rajveer

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// rewrite writes a kernel for this version's compiler, naga 0.13:
//
//   - Sizes of workgroups have to be numbers, and so have constants: names and what is calculated become theirs. Whole numbers are
//     calculated, others are only converted.
//   - The condition of break if is evaluated once, before the loop: https://github.com/gfx-rs/wgpu/issues/4982. A let before it is not.
//
// What is not understood stays as it is, for the compiler to refuse. Lines keep their numbers.
func rewrite(source string) string {
	s, err := wgsl.Tokenize(source)
	if err != nil {
		return source
	}
	w := writer{Scan: s, types: s.Types(), name: "sublet_break"}
	for n := 0; strings.Contains(source, w.name); n++ {
		w.name = "sublet_break" + strconv.Itoa(n)
	}
	for i := range s.Tokens {
		switch {
		case s.At(i) == "const":
			w.constant(i + 1)
		case s.Char(i) == '@' && s.At(i+1) == "workgroup_size" && s.Char(i+2) == '(':
			for _, size := range s.Split(i+3, int(s.Match[i+2])) {
				w.number(size[0], size[1], "")
			}
		case s.At(i) == "break" && s.At(i+1) == "if":
			w.breakIf(i)
		}
	}
	w.WriteString(source[w.at:])
	return w.String()
}

// writer writes a text anew.
type writer struct {
	strings.Builder
	*wgsl.Scan
	types *wgsl.Types
	name  string // that the text does not have
	at    int    // what is before it has been written
}

// replace writes what is before some tokens, and a text for the tokens.
func (w *writer) replace(from, to int, text string) {
	w.WriteString(w.Text[w.at:w.Pos(from)])
	w.WriteString(text)
	w.at = int(w.Tokens[to-1].End)
}

// constant writes a declaration of a number.
func (w *writer) constant(name int) {
	kind, from := "", name+1
	if w.Char(from) == ':' {
		kind, from = w.At(from+1), from+2
	}
	to := from
	for to < len(w.Tokens) && w.Char(to) != ';' {
		to++
	}
	if from++; from >= to {
		return
	}
	suffix, known := map[string]string{"u32": "u", "i32": "i", "f32": "f"}[w.At(from)]
	if known && to == from+4 && w.Tokens[from+2].Kind == wgsl.Number { // f32(1)
		number := strings.TrimRight(w.At(from+2), "uif")
		if suffix == "f" && !strings.ContainsAny(number, "xX") || !strings.ContainsAny(number, "xX.eE") {
			w.replace(from, to, number+suffix)
			return
		}
	}
	if kind == "u32" || kind == "i32" {
		w.number(from, to, kind[:1])
	}
}

// number writes the number for a constant expression, with spaces so that what follows keeps its column if it can.
func (w *writer) number(from, to int, suffix string) {
	v := w.types.Constant(from, to)
	if v < 0 || to == from+1 && !w.IsWord(from) {
		return
	}
	number, old := strconv.FormatInt(v, 10)+suffix, w.Text[w.Pos(from):w.Tokens[to-1].End]
	w.replace(from, to, number+strings.Repeat("\n", strings.Count(old, "\n"))+strings.Repeat(" ", max(0, len(old)-len(number))))
}

// breakIf writes a statement that begins at a token.
func (w *writer) breakIf(i int) {
	end := i + 2
	for ; end < len(w.Tokens) && w.Char(end) != ';'; end++ {
		switch w.Char(end) {
		case '(', '[', '{':
			end = int(w.Match[end])
		case '}':
			return
		}
	}
	if end == i+2 || end == len(w.Tokens) {
		return
	}
	w.replace(i, i+2, "let "+w.name+" =")
	w.replace(end, end+1, "; break if "+w.name+";")
}
