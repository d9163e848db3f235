// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Complaint is what a compiler has to say about a place in a source.
type Complaint struct {
	Line   int // from 1 on; 0 where it is about nothing in the source
	Column int // in characters from 1 on; 0 where it is not known
	Text   string
}

// LineOf returns the line of the source that a line of the program is, or 0 for what the library added.
func (p *Program) LineOf(line int) int {
	if p == nil || p.source == nil || line < 1 || line > len(p.source.starts) {
		return 0
	}
	return line
}

// Translate makes a device's error about the program's text one about the source: it names the source's lines and shows
// them. Other errors, and those in which no place can be found, come back as they are. So does nil.
func (p *Program) Translate(err error) error {
	complaints := p.Complaints(err)
	if len(complaints) == 0 {
		return err
	}
	old, _ := errors.AsType[*driver.OpError](err)
	var b strings.Builder
	for i, c := range complaints {
		if i > 0 {
			b.WriteString("\n")
		}
		if c.Line == 0 {
			b.WriteString("what the library adds to kernel " + p.Name + ": " + c.Text)
			continue
		}
		b.WriteString("line " + strconv.Itoa(c.Line))
		if c.Column > 0 {
			b.WriteString(":" + strconv.Itoa(c.Column))
		}
		b.WriteString(": " + c.Text + "\n\t" + strings.TrimSpace(p.source.lineText(c.Line)))
	}
	return &driver.OpError{Op: old.Op, Shapes: old.Shapes, Err: old.Err, Detail: b.String()}
}

// Complaints lists what a compiler found, in the source's lines. It understands what the drivers of Sublet report and lists
// nothing for other errors.
func (p *Program) Complaints(err error) []Complaint {
	e, ok := errors.AsType[*driver.OpError](err)
	if p == nil || p.source == nil || !ok || !errors.Is(err, driver.ErrCompile) {
		return nil
	}
	list := listed(e.Detail)
	if len(list) == 0 {
		list = drawn(e.Detail, p.WGSL)
	}
	for i := range list {
		p.locate(&list[i])
	}
	return list
}

// locate turns a place in the program's text into one of the source.
func (p *Program) locate(c *Complaint) {
	line := c.Line
	if c.Line = p.LineOf(line); c.Line == 0 {
		c.Column = 0
		return
	}
	text, start := lineOf(p.WGSL, line)
	if c.Column < 1 || text == "" {
		c.Column = 0
		return
	}
	pos := before(p.edits, start+offsetOf(text, c.Column))
	begin := int(p.source.starts[line-1])
	if pos < begin {
		c.Column = 0
		return
	}
	c.Column = 1 + utf8.RuneCountInString(p.source.text[begin:min(pos, len(p.source.text))])
}

// lineOf returns a line of a text and where it begins.
func lineOf(text string, line int) (string, int) {
	start := 0
	for l := range strings.Lines(text) {
		if line--; line == 0 {
			return strings.TrimRight(l, "\r\n"), start
		}
		start += len(l)
	}
	return "", start
}

// offsetOf returns where a column begins.
func offsetOf(text string, column int) int {
	for i := range text {
		if column--; column == 0 {
			return i
		}
	}
	return len(text)
}

// listed reads complaints of the form "line 3:5: text", as WebGPU's compilation messages are written.
func listed(detail string) (list []Complaint) {
	for row := range strings.Lines(detail) {
		for rest, found := row, !strings.HasPrefix(row, "\t"); found; {
			if _, rest, found = strings.Cut(rest, "line "); !found {
				break
			}
			position, text, _ := strings.Cut(rest, ": ")
			if line, column, ok := place(position); ok {
				list = append(list, Complaint{line, column, strings.TrimSpace(text)})
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
