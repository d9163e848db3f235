// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"math"
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
		_, width := measure(strings.TrimRight(text, " \t"), math.MaxInt)
		d.indent = utf8.RuneCountInString(right) - width
		return
	}
	left, _, mark := strings.Cut(right, "^")
	if mark && d.marked == 0 && !strings.Contains(left, "╰") {
		text, _ := LineOf(d.source, d.line)
		d.marked = d.line
		d.column, _ = measure(text, utf8.RuneCountInString(left)-d.indent)
	}
}

// measure returns which character of a text is the one drawn at a place or behind it, and how wide the text is drawn up to there.
// A tab reaches to the next multiple of four.
func measure(text string, until int) (column, width int) {
	for _, r := range text {
		if column++; width >= until {
			break
		}
		if width++; r == '\t' {
			width = (width + 3) / 4 * 4
		}
	}
	return column, width
}
