// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// unroller replaces each loop
//
//	for (var q = 0u; q < 4u; q++) { // @unroll
//	  ... q ...
//	} // @unroll
//
// by its body once for every value of q, written as a literal, each a block of its own. The limit may be a parameter of the file. Software adapters
// keep arrays with computed indices in memory; with literals they stay in registers. Loops may be nested.
type unroller struct {
	lines  []string       // still to do
	values map[string]int // of parameters
}

const (
	unrollMark = "// @unroll"
	maxUnroll  = 256
)

// block expands lines up to the closing one of a loop or, if inside is not set, to the end.
func (u *unroller) block(inside bool) (string, error) {
	var b strings.Builder
	for len(u.lines) > 0 {
		line := u.lines[0]
		u.lines = u.lines[1:]
		mark := strings.TrimSpace(line)
		switch {
		case !strings.HasSuffix(mark, unrollMark):
			b.WriteString(line)
			continue
		case strings.HasPrefix(mark, "}") && inside:
			return b.String(), nil
		case strings.HasPrefix(mark, "}"):
			return "", errors.New("shaders: \"} // @unroll\" without a loop")
		}
		name, n, ok := u.head(mark)
		if !ok || n > maxUnroll {
			return "", errors.New("shaders: cannot unroll: " + mark)
		}
		body, err := u.block(true)
		if err != nil {
			return "", err
		}
		parts := splitWord(body, name)
		for i := range n {
			b.WriteString("{\n" + strings.Join(parts, strconv.Itoa(i)+"u") + "}\n")
		}
	}
	if inside {
		return "", errors.New("shaders: unrolled loop without an end")
	}
	return b.String(), nil
}

// head reads "for (var q = 0u; q < LIMIT; q++) {".
func (u *unroller) head(line string) (name string, n int, ok bool) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(line, "for (var "), " = 0u; ")
	rest, from := strings.CutPrefix(rest, name+" < ")
	limit, _, to := strings.Cut(rest, ";")
	if !ok || !from || !to {
		return "", 0, false
	}
	if n, ok = u.values[limit]; ok {
		return name, n, true
	}
	n, err := number(limit)
	return name, n, err == nil
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
