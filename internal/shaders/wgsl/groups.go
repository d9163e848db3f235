// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// LiteralGroups returns the text with numbers for the expressions of @workgroup_size, for compilers that take nothing else there. What
// it does not understand stays as it is. Lines keep their numbers, and columns too where the number is not longer than the expression.
func (s *Scan) LiteralGroups() string {
	var b strings.Builder
	m, at := s.Types(), 0
	for i := range s.Tokens {
		if s.Char(i) != '@' || s.At(i+1) != "workgroup_size" || s.Char(i+2) != '(' {
			continue
		}
		for _, part := range s.Split(i+3, int(s.Match[i+2])) {
			from, to := part[0], part[1]
			v := m.Constant(from, to)
			if v < 0 || to == from+1 && !s.IsWord(from) {
				continue
			}
			number, pos, end := strconv.FormatInt(v, 10), s.Pos(from), int(s.Tokens[to-1].End)
			b.WriteString(s.Text[at:pos])
			b.WriteString(number)
			b.WriteString(strings.Repeat("\n", strings.Count(s.Text[pos:end], "\n")))
			b.WriteString(strings.Repeat(" ", max(0, end-pos-len(number))))
			at = end
		}
	}
	b.WriteString(s.Text[at:])
	return b.String()
}
