// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Diagnostic is what a compiler has to say about a place in a source.
type Diagnostic struct {
	Line   int // from 1 on; 0 where it is about nothing in the source
	Column int // in characters from 1 on; 0 where it is not known
	Text   string
}

// Show says it, and shows the line.
func (c Diagnostic) Show(line string) string {
	place := "line " + strconv.Itoa(c.Line)
	if c.Column > 0 {
		place += ":" + strconv.Itoa(c.Column)
	}
	return place + ": " + c.Text + "\n\t" + strings.TrimSpace(line)
}

// Diagnostics lists what a compiler found in a text. The report is the detail of a driver's error; where it names no place
// there are none.
func Diagnostics(report, text string) []Diagnostic {
	if list := listed(report); len(list) > 0 {
		return list
	}
	return drawn(report, text)
}

// Translate has show word what a compiler's error says about places in a text, "" for nothing, and makes an error of op of it:
// without op, of what failed. Other errors, and those of which nothing is shown, come back as they are.
func Translate(op string, err error, text string, show func(Diagnostic) string) error {
	e, ok := errors.AsType[*fault.OpError](err)
	if !ok || !errors.Is(err, fault.ErrCompile) {
		return err
	}
	var list []string
	for _, d := range Diagnostics(e.Detail, text) {
		if shown := show(d); shown != "" {
			list = append(list, shown)
		}
	}
	if list == nil {
		return err
	}
	return &fault.OpError{Op: cmp.Or(op, e.Op), Err: e.Err, Detail: strings.Join(list, "\n")}
}

// LineOf returns a line of a text, without its end, and where it begins. That is -1 if the text has no such line.
func LineOf(text string, line int) (string, int) {
	start := 0
	for l := range strings.Lines(text) {
		if line--; line == 0 {
			return strings.TrimRight(l, "\r\n"), start
		}
		start += len(l)
	}
	return "", -1
}

// OffsetOf returns where a column begins.
func OffsetOf(text string, column int) int {
	for i := range text {
		if column--; column == 0 {
			return i
		}
	}
	return len(text)
}

// listed reads diagnostics of the form "line 3:5: text", as WebGPU's compilation messages are written.
func listed(detail string) (list []Diagnostic) {
	for row := range strings.Lines(detail) {
		for rest, found := row, !strings.HasPrefix(row, "\t"); found; {
			_, rest, found = strings.Cut(rest, "line ")
			position, text, _ := strings.Cut(rest, ": ")
			if line, column, ok := place(position); found && ok {
				list = append(list, Diagnostic{line, column, strings.TrimSpace(text)})
				break
			}
		}
	}
	return list
}

// place reads "3:5".
func place(s string) (line, column int, ok bool) {
	l, c, found := strings.Cut(s, ":")
	line, err := strconv.Atoi(l)
	column, err2 := strconv.Atoi(c)
	return line, column, found && err == nil && err2 == nil && line > 0
}

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
