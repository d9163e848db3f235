// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// unroll replaces each loop
//
//	for (var q = 0u; q < 4u; q++) { // @unroll
//	  ... q ...
//	} // @unroll
//
// by its body once for every value of q, written as a literal, each a block of its own. The limit may be a const of the file. Software adapters
// keep arrays with computed indices in memory; with literals they stay in registers. Loops may be nested.
func unroll(source string) (string, error) {
	lines := strings.SplitAfter(source, "\n")
	out, rest, err := unrollBlock(lines, consts(lines), false)
	if err == nil && len(rest) > 0 {
		err = errors.New("shaders: \"} // @unroll\" without a loop")
	}
	return out, err
}

const (
	unrollMark = "// @unroll"
	maxUnroll  = 256
)

// consts collects the values of the file's "const NAME: u32 = 4u;" lines.
func consts(lines []string) map[string]int {
	values := map[string]int{}
	for _, l := range lines {
		f := strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune(" :=;\n", r) })
		if len(f) >= 4 && f[0] == "const" && f[2] == "u32" {
			if n, err := strconv.Atoi(strings.TrimSuffix(f[3], "u")); err == nil {
				values[f[1]] = n
			}
		}
	}
	return values
}

// unrollBlock expands up to the end of the block and returns what follows its closing line.
func unrollBlock(lines []string, values map[string]int, inside bool) (out string, rest []string, err error) {
	var b strings.Builder
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		mark := strings.TrimSpace(line)
		if !strings.HasSuffix(mark, unrollMark) {
			b.WriteString(line)
			continue
		}
		if strings.HasPrefix(mark, "}") {
			if !inside {
				return "", []string{line}, nil
			}
			return b.String(), lines, nil
		}
		name, n, err := loopHead(mark, values)
		if err != nil {
			return "", nil, err
		}
		var body string
		if body, lines, err = unrollBlock(lines, values, true); err != nil {
			return "", nil, err
		}
		parts := splitWord(body, name)
		for i := range n {
			b.WriteString("{\n" + strings.Join(parts, strconv.Itoa(i)+"u") + "}\n")
		}
	}
	if inside {
		return "", nil, errors.New("shaders: unrolled loop without an end")
	}
	return b.String(), nil, nil
}

// loopHead reads "for (var q = 0u; q < LIMIT; q++) {".
func loopHead(line string, values map[string]int) (name string, n int, err error) {
	f := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" (=;)", r) })
	if len(f) < 7 || f[0] != "for" || f[1] != "var" || f[4] != f[2] || f[5] != "<" {
		return "", 0, errors.New("shaders: cannot unroll: " + line)
	}
	n, ok := values[f[6]]
	if !ok {
		if n, err = strconv.Atoi(strings.TrimSuffix(f[6], "u")); err != nil {
			return "", 0, errors.New("shaders: cannot unroll: " + line)
		}
	}
	if n > maxUnroll {
		return "", 0, errors.New("shaders: too long to unroll: " + line)
	}
	return f[2], n, nil
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
