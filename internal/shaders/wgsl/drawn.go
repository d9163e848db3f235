// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// drawn reads the report of wgpu's compiler, which draws the lines that it is about.
//
//	Shader 'x' parsing error: expected expression, found ';'
//	  ┌─ wgsl:2:12
//	  │
//	2 │   arr[i] = ;
//	  │            ^ expected expression
//
// A report of a mistake in types names the place of the whole function, draws a frame around it, marks expressions inside,
// and ends with causes.
//
//	Shader validation error:
//	  ┌─ x:1:1
//	  │
//	1 │ ╭ fn k(i: u32) {
//	2 │ │   arr[i] = 1.5;
//	  │ │   ^^^^^^   ^^^ naga::Expression [4]
//	  │ │   │
//	  │ │   naga::Expression [3]
//	  │ ╰───────────────^ naga::Function [1]
//	Function [1] 'k' is invalid
//	The type of [4] doesn't match the type stored in [3]
func drawn(detail, source string) []Diagnostic {
	head, rest, _ := strings.Cut(detail, "┌─ ")
	where, picture, _ := strings.Cut(rest, "\n")
	parts := strings.Split(where, ":") // the name may hold colons
	line, column, ok := place(strings.Join(parts[max(len(parts)-2, 0):], ":"))
	if !ok {
		return nil
	}
	c := Diagnostic{Line: line, Column: column}
	_, message, syntax := strings.Cut(strings.TrimSpace(head), "parsing error: ")
	d := drawing{source: source}
	for row := range strings.Lines(picture) {
		d.take(strings.TrimRight(row, "\r\n"))
	}
	if !syntax && d.marked > 0 {
		c.Line, c.Column = d.marked, d.column
	}
	c.Text = strings.Trim(message+": "+strings.Join(d.causes, ": "), ": ")
	return []Diagnostic{c}
}

// drawing is what was found in a picture so far.
type drawing struct {
	source string
	line   int // drawn last
	indent int // of its text
	marked int // the first line with a mark inside of the frame
	column int
	causes []string
}

func (d *drawing) take(row string) {
	margin, right, inside := strings.Cut(row, "│")
	if !inside {
		if row = strings.TrimLeft(row, " ="); row != "" {
			d.causes = append(d.causes, row)
		}
		return
	}
	if n, err := strconv.Atoi(strings.TrimSpace(margin)); err == nil {
		text, _ := LineOf(d.source, n)
		d.line = n
		d.indent = utf8.RuneCountInString(right) - drawnWidth(strings.TrimRight(text, " \t"))
		return
	}
	left, _, mark := strings.Cut(right, "^")
	if !mark || d.marked > 0 || strings.Contains(left, "╰") {
		return
	}
	d.marked = d.line
	text, _ := LineOf(d.source, d.line)
	width := utf8.RuneCountInString(left) - d.indent
	at := 0
	for _, r := range text {
		if d.column++; at >= width {
			break
		}
		at = drawnTo(at, r)
	}
}

// drawnWidth is how wide a text is drawn.
func drawnWidth(text string) int {
	width := 0
	for _, r := range text {
		width = drawnTo(width, r)
	}
	return width
}

// drawnTo returns where a character ends that begins at a column. A tab reaches to the next multiple of four.
func drawnTo(column int, r rune) int {
	if r == '\t' {
		return column/4*4 + 4
	}
	return column + 1
}
