// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Param sets the right-hand side of one "// @param" line, a const of type u32 or, with 0 and 1, bool.
type Param struct {
	Name  string
	Value int
}

// Expand specialises a kernel file. Parameters that are not given keep the file's value. fused replaces the region between
// "// @fuse" and "// @end". Each loop
//
//	for (var q = 0u; q < 4u; q++) { // @unroll
//	  ... q ...
//	} // @unroll
//
// is replaced by its body once for every value of q, written as a literal, each a block of its own. The limit may be a parameter
// of the file. Software adapters keep arrays with computed indices in memory; with literals they stay in registers. Loops may be
// nested.
func Expand(source, fused string, params ...Param) string {
	e := expander{values: map[string]string{}}
	skip := false
	for line := range strings.Lines(source) {
		switch mark := strings.TrimSpace(line); {
		case mark == "// @fuse":
			skip = true
			e.lines = append(e.lines, fused)
		case mark == "// @end":
			skip = false
		case skip:
		case strings.HasSuffix(mark, "// @param"):
			e.lines = append(e.lines, e.param(line, params))
		default:
			e.lines = append(e.lines, line)
		}
	}
	return e.block()
}

type expander struct {
	lines  []string          // whose loops are still to do
	values map[string]string // of parameters
}

// param rewrites "const NAME: type = value; // @param" if the parameter is given. It notes the value.
func (e *expander) param(line string, params []Param) string {
	left, right, _ := strings.Cut(line, " = ")
	name, kind, _ := strings.Cut(strings.TrimPrefix(left, "const "), ": ")
	e.values[name], _, _ = strings.Cut(right, ";")
	for _, p := range params {
		if p.Name != name {
			continue
		}
		value := strconv.Itoa(p.Value) + "u"
		if kind == "bool" {
			value = strconv.FormatBool(p.Value != 0)
		}
		e.values[name] = value
		return left + " = " + value + ";\n"
	}
	return line
}

// block unrolls the loops of the lines up to the end of the loop that they are in, or of all.
func (e *expander) block() string {
	var b strings.Builder
	for len(e.lines) > 0 {
		line := e.lines[0]
		e.lines = e.lines[1:]
		mark := strings.TrimSpace(line)
		switch {
		case !strings.HasSuffix(mark, "// @unroll"):
			b.WriteString(line)
		case strings.HasPrefix(mark, "}"):
			return b.String()
		default:
			name, turns := e.head(mark)
			parts := splitWord(e.block(), name)
			for i := range turns {
				b.WriteString("{\n" + strings.Join(parts, strconv.Itoa(i)+"u") + "}\n")
			}
		}
	}
	return b.String()
}

// head reads "for (var q = 0u; q < LIMIT; q++) {".
func (e *expander) head(line string) (name string, turns int) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "for (var "), " = 0u; ")
	limit, _, _ := strings.Cut(strings.TrimPrefix(rest, name+" < "), ";")
	turns, _ = strconv.Atoi(strings.TrimSuffix(cmp.Or(e.values[limit], limit), "u"))
	return name, turns
}

// splitWord cuts a text at the places where an identifier stands.
func splitWord(text, word string) (parts []string) {
	from := 0
	if scan, _ := wgsl.Tokenize(text); scan != nil { // the compiler complains of a text that is no WGSL
		for i, t := range scan.Tokens {
			if scan.IsWord(i) && scan.At(i) == word {
				parts = append(parts, text[from:t.Pos])
				from = int(t.End)
			}
		}
	}
	return append(parts, text[from:])
}

// Fill replaces $0 to $9 in a pattern by the arguments.
func Fill(pattern string, args ...string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(pattern, "$")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(args[rest[0]-'0'])
		pattern = rest[1:]
	}
}
