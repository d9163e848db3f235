// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// lineOf returns the line of the source that a line of the program is, or 0 for what the library added.
func (p *Program) lineOf(line int) int {
	if p == nil || p.source == nil || line < 1 || line > len(p.source.scan.Starts) {
		return 0
	}
	return line
}

// translate makes a device's error about the program's text one about the source: it names the source's lines and shows
// them. Other errors, and those in which no place can be found, come back as they are. So does nil.
func (p *Program) translate(err error) error {
	diagnostics := p.diagnostics(err)
	if len(diagnostics) == 0 {
		return err
	}
	old, _ := errors.AsType[*fault.OpError](err)
	var b strings.Builder
	for i, c := range diagnostics {
		if i > 0 {
			b.WriteString("\n")
		}
		if c.Line == 0 {
			b.WriteString("what the library adds to kernel " + p.Name + ": " + c.Text)
			continue
		}
		b.WriteString(c.Show(p.source.scan.LineText(c.Line)))
	}
	return &fault.OpError{Op: old.Op, Shapes: old.Shapes, Err: old.Err, Detail: b.String()}
}

// diagnostics lists what a compiler found, in the source's lines. It understands what the drivers of Sublet report and lists
// nothing for other errors.
func (p *Program) diagnostics(err error) []wgsl.Diagnostic {
	e, ok := errors.AsType[*fault.OpError](err)
	if p == nil || p.source == nil || !ok || !errors.Is(err, fault.ErrCompile) {
		return nil
	}
	list := wgsl.Diagnostics(e.Detail, p.WGSL)
	for i := range list {
		p.locate(&list[i])
	}
	return list
}

// locate turns a place in the program's text into one of the source.
func (p *Program) locate(c *wgsl.Diagnostic) {
	line := c.Line
	if c.Line = p.lineOf(line); c.Line == 0 {
		c.Column = 0
		return
	}
	text, start := wgsl.LineOf(p.WGSL, line)
	if c.Column < 1 || text == "" {
		c.Column = 0
		return
	}
	pos := before(p.edits, start+wgsl.OffsetOf(text, c.Column))
	begin := int(p.source.scan.Starts[line-1])
	if pos < begin {
		c.Column = 0
		return
	}
	c.Column = 1 + utf8.RuneCountInString(p.source.scan.Text[begin:min(pos, len(p.source.scan.Text))])
}
