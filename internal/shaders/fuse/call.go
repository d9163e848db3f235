// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Call is a function of the user's.
type Call struct {
	Name  string // the name after "fn"
	Arity int
	WGSL  string // the whole text, with any functions it needs
}

// What stands before and after a text of the user's in a kernel.
const (
	userBegin = "// The user's, whose names end with "
	userEnd   = "// End of the user's."
)

// NewCall makes a call of a function of a text. Its names get a suffix that depends on the text, so that they are no others'.
func NewCall(scan *wgsl.Scan, name string, arity int) Call {
	h := fnv.New32a()
	_, _ = h.Write([]byte(scan.Text))
	suffix := "_" + strconv.FormatUint(uint64(h.Sum32()), 36)
	text := userBegin + suffix + "\n" + scan.Qualify(suffix) + "\n" + userEnd
	return Call{Name: name + suffix, Arity: arity, WGSL: text}
}

// Complaints turns a compiler's report about the text of a kernel into one about the user's text, where it is to blame: it
// names the lines and shows them. It returns "" where it is not.
func Complaints(report, source string) string {
	var b strings.Builder
	for _, c := range wgsl.Diagnostics(report, source) {
		line, suffix := userLine(source, c.Line)
		if line == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		shown, _ := wgsl.LineOf(source, c.Line)
		c.Line, c.Column = line, 0 // columns are not those of the user
		b.WriteString(strings.ReplaceAll(c.Show(shown), suffix, ""))
	}
	return b.String()
}

// userLine returns which line of the user's text a line of a kernel is, from 1 on, and the suffix of its names, or 0.
func userLine(source string, line int) (n int, suffix string) {
	begin := 0
	for row := range strings.Lines(source) {
		line--
		if rest, ok := strings.CutPrefix(row, userBegin); ok {
			begin, suffix = line, strings.TrimSpace(rest)
		}
		if strings.HasPrefix(row, userEnd) {
			suffix = ""
		}
		if line == 0 {
			break
		}
	}
	if suffix == "" || line != 0 {
		return 0, ""
	}
	return begin - line, suffix
}
