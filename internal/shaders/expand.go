// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"errors"
	"strconv"
	"strings"
)

// Param sets the right-hand side of one "// @param" line, a const of type u32 or, with 0 and 1, bool.
type Param struct {
	Name  string
	Value int
}

// Expand specialises a kernel file. Every parameter given must stand in the file; those not given keep the file's value.
// fused replaces the region between "// @fuse" and "// @end"; it is "" for a file without one.
func Expand(source, fused string, params ...Param) (string, error) {
	u := unroller{values: map[string]int{}}
	set, inFuse, sawFuse := 0, false, false
	for len(source) > 0 {
		line := source[:strings.IndexByte(source+"\n", '\n')]
		source = source[min(len(line)+1, len(source)):]
		switch mark := strings.TrimSpace(line); {
		case mark == "// @fuse":
			inFuse, sawFuse = true, true
			u.lines = append(u.lines, fused)
		case mark == "// @end":
			inFuse = false
		case inFuse:
		case strings.HasSuffix(mark, "// @param"):
			line, ok := u.param(line, params)
			if ok {
				set++
			}
			u.lines = append(u.lines, line+"\n")
		default:
			u.lines = append(u.lines, line+"\n")
		}
	}
	if set < len(params) {
		return "", errors.New("shaders: a parameter that the file does not have")
	}
	if inFuse || sawFuse != (fused != "") {
		return "", errors.New("shaders: fused region missing or not ended")
	}
	return u.block(false)
}

// param rewrites "const NAME: type = value; // @param" if the parameter is given. It notes the value.
func (u *unroller) param(line string, params []Param) (rewritten string, given bool) {
	left, right, _ := strings.Cut(line, "=")
	name, kind, _ := strings.Cut(strings.TrimPrefix(left, "const "), ": ")
	for _, p := range params {
		if p.Name != name {
			continue
		}
		u.values[name] = p.Value
		value := strconv.Itoa(p.Value) + "u"
		if strings.TrimSpace(kind) == "bool" {
			value = strconv.FormatBool(p.Value != 0)
		}
		return left + "= " + value + ";", true
	}
	if v, err := number(strings.TrimSpace(right[:strings.IndexByte(right+";", ';')])); err == nil {
		u.values[name] = v
	}
	return line, false
}

// number reads a literal of type u32.
func number(text string) (int, error) { return strconv.Atoi(strings.TrimSuffix(text, "u")) }

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
