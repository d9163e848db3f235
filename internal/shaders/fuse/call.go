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
	var list []string
	for _, c := range wgsl.Diagnostics(report, source) {
		shown, at := wgsl.LineOf(source, c.Line)
		begin := strings.LastIndex(source[:at], userBegin)
		if begin < 0 || strings.Contains(source[begin:at]+shown, userEnd) {
			continue
		}
		suffix, above, _ := strings.Cut(source[begin+len(userBegin):at], "\n")
		c.Line, c.Column = strings.Count(above, "\n")+1, 0 // columns are not those of the user
		list = append(list, strings.ReplaceAll(c.Show(shown), suffix, ""))
	}
	return strings.Join(list, "\n")
}
