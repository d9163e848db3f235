// SPDX-License-Identifier: Apache-2.0

// Package shaders holds the compute kernels: text and numbers in, text and numbers out. It knows no device.
//
//	fuse      element-wise functions as WGSL and Go, which kernels take in
//	kernels   the kernels of matrices, a folder of WGSL files for each family; beside them in Go the parameter block, the
//	          dispatch arithmetic, and the same computation on the CPU, which the oracle runs and tests compare with
//	wgsl      what is read of texts of the user's
//
// # Kernel files
//
// A kernel file is valid WGSL as it stands. [Expand] specialises it by rewriting whole lines: the right-hand side of a
// line that ends in "// @param", the region between "// @fuse" and "// @end", and loops marked "// @unroll".
package shaders

import (
	"cmp"
	"encoding/binary"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Program is a kernel ready to be compiled. All its bindings are in group 0: the parameter block, Own storage bindings that are
// read, the one that is written, and Inputs others that are read.
type Program struct {
	Name        string // for people: the family, the kernel and its variant
	Source      string
	Own, Inputs int
	// Reference does the same in Go. It is nil where the program holds WGSL of the user's, which Go cannot run.
	Reference Reference
	// Native does the same in Go, faster than a CPU with Source. It is nil for most.
	Native Native
}

// Reference runs a kernel in Go, given the workgroup counts, the parameter block, and the bytes of each storage binding. It is
// an interface because the linker leaves out a method that nobody calls: a program without the oracle then has no references.
type Reference interface {
	Run(groups [3]uint32, params []byte, storage [][]byte)
}

// Native runs a kernel by the machine's own instructions for vectors; see [Reference].
type Native interface {
	RunNative(groups [3]uint32, params []byte, storage [][]byte)
}

// Ceil divides and rounds up.
func Ceil(a, b int) int { return (a + b - 1) / b }

// MaxGroups is how many workgroups WebGPU allows in one dimension.
const MaxGroups = 65535

// Fold spreads n workgroups over x and y so that neither exceeds [MaxGroups]. The kernel's index is
// workgroup.x + workgroup.y * num_workgroups.x, and it ignores what is too much.
func Fold(n int) [3]uint32 {
	if n <= MaxGroups {
		return [3]uint32{uint32(n), 1, 1}
	}
	rows := Ceil(n, MaxGroups)
	return [3]uint32{uint32(Ceil(n, rows)), uint32(rows), 1}
}

// LoopLimit is how many turns all loops of one invocation may take together. Mesa's llvmpipe ends an invocation silently
// at 65535; kernels split their work to stay below this.
const LoopLimit = 60000

// Words appends numbers to a parameter block.
func Words(b []byte, v ...int) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// Bit is 1 for true and 0 for false.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Param sets the right-hand side of one "// @param" line, a const of type u32 or, with 0 and 1, bool.
type Param struct {
	Name  string
	Value int
}

// Expand specialises a kernel file. Parameters that are not given keep the file's value. fused replaces the region between
// "// @fuse" and "// @end". Of an if whose condition is a parameter that is false only the block of its else is left, if it has one, as compilers
// read and transform what never runs, too. Each loop
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
		case e.lives(&line, mark):
			e.lines = append(e.lines, line)
		}
	}
	return e.block()
}

type expander struct {
	lines  []string          // whose loops are still to do
	values map[string]string // of parameters
	dead   int               // blocks that are open where nothing is left
}

// lives reports whether a line is left, or what it becomes, where a parameter is false.
func (e *expander) lives(line *string, mark string) bool {
	if e.dead > 0 {
		if e.dead == 1 && mark == "} else {" {
			e.dead, *line = 0, "{\n"
			return true
		}
		e.dead += strings.Count(mark, "{") - strings.Count(mark, "}")
		return false
	}
	condition, isIf := strings.CutPrefix(mark, "if (")
	name, block, _ := strings.Cut(condition, ") {")
	if !isIf || e.values[name] != "false" {
		return true
	}
	if block == "" {
		e.dead = 1
		return false
	}
	_, other, found := strings.Cut(block, "} else {")
	*line = "{" + other + "\n"
	return found
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
	for at, name := range Identifiers(text) {
		if name == word {
			parts = append(parts, text[from:at])
			from = at + len(word)
		}
	}
	return append(parts, text[from:])
}

// Identifiers returns the identifiers and keywords of a kernel of this module, and where they begin. Package wgsl reads what users write, whose
// comments may be of several lines; its tokens would cost a page some milliseconds before its first result.
func Identifiers(text string) iter.Seq2[int, string] {
	return func(yield func(at int, name string) bool) {
		for at := 0; at < len(text); {
			if strings.HasPrefix(text[at:], "//") {
				_, rest, _ := strings.Cut(text[at:], "\n")
				at = len(text) - len(rest)
				continue
			}
			end := at
			for end < len(text) && inIdentifier(text[end]) {
				end++
			}
			if end > at && (text[at] < '0' || text[at] > '9') && !yield(at, text[at:end]) {
				return
			}
			at = max(end, at+1)
		}
	}
}

func inIdentifier(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= utf8.RuneSelf
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
