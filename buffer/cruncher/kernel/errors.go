// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// ErrKernel is a source, a name or a declaration that no program can be made of. The message names the line of the
// source where one is to blame. What only a compiler finds is gpu.ErrCompile, from the device.
var ErrKernel = fault.New("ErrKernel", "not a usable kernel")

func fail(op string, detail ...string) error {
	return fault.Fail("kernel: "+op, ErrKernel, detail...)
}

// quote shortens what a hostile source may have made long.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

// translate makes a compiler's error about the program's text one about the source: it names the source's lines and shows them.
// Other errors, and those in which no place can be found, come back as they are.
func (p *Program) translate(err error) error {
	e, ok := errors.AsType[*fault.OpError](err)
	if !ok || !errors.Is(err, fault.ErrCompile) {
		return err
	}
	var list []string
	for _, d := range wgsl.Diagnostics(e.Detail, p.WGSL) {
		list = append(list, p.show(d))
	}
	if list == nil {
		return err
	}
	return &fault.OpError{Op: e.Op, Shapes: e.Shapes, Err: e.Err, Detail: strings.Join(list, "\n")}
}

// show words a diagnostic about the program's text for the source.
func (p *Program) show(d wgsl.Diagnostic) string {
	text, start := wgsl.LineOf(p.source.scan.Text, d.Line)
	if start < 0 {
		return "what the library adds to kernel " + p.Name + ": " + d.Text
	}
	if made, at := wgsl.LineOf(p.WGSL, d.Line); d.Column > 0 {
		pos := before(p.edits, at+wgsl.OffsetOf(made, d.Column)) - start
		d.Column = 0
		if pos >= 0 {
			d.Column = 1 + utf8.RuneCountInString(text[:min(pos, len(text))])
		}
	}
	return d.Show(text)
}
