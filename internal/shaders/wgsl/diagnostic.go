// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
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
