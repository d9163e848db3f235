// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"errors"
	"strconv"
	"strings"
)

// Param sets the right-hand side of one "// @param" line: a const, an alias, or an override of either.
type Param struct{ Name, Value string }

// Uint makes a parameter of type u32.
func Uint(name string, v int) Param { return Param{name, strconv.Itoa(v) + "u"} }

// Bool makes a parameter of type bool.
func Bool(name string, v bool) Param { return Param{name, strconv.FormatBool(v)} }

// Expand specialises a kernel file. Every parameter given must stand in the file; those not given keep the file's value.
// fused replaces the region between "// @fuse" and "// @end"; it is "" for a file without one.
func Expand(source, fused string, params ...Param) (string, error) {
	set := map[string]string{}
	for _, p := range params {
		set[p.Name] = p.Value
	}
	var b strings.Builder
	b.Grow(len(source) + len(fused))
	inFuse, sawFuse := false, false
	for line := range strings.Lines(source) {
		switch mark := strings.TrimSpace(line); {
		case mark == "// @fuse":
			inFuse, sawFuse = true, true
			b.WriteString(fused)
		case mark == "// @end":
			inFuse = false
		case inFuse:
		case strings.HasSuffix(mark, "// @param"):
			b.WriteString(setParam(line, set))
		default:
			b.WriteString(line)
		}
	}
	for name := range set {
		return "", errors.New("shaders: no parameter " + name)
	}
	if inFuse || sawFuse != (fused != "") {
		return "", errors.New("shaders: fused region missing or not ended")
	}
	return unroll(b.String())
}

// setParam rewrites "const NAME: type = value; // @param" and removes the parameter from set.
func setParam(line string, set map[string]string) string {
	left, _, ok := strings.Cut(line, "=")
	if !ok {
		return line
	}
	words := strings.FieldsFunc(left, func(r rune) bool { return r == ' ' || r == ':' })
	if len(words) < 2 {
		return line
	}
	value, ok := set[words[1]]
	if !ok {
		return line
	}
	delete(set, words[1])
	return left + "= " + value + ";\n"
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
