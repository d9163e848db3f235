// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// guardText is what follows a guarded source. The probe makes a loop of two turns, or of one where loops are ended early.
const guardText = `
@group(1) @binding(0) var<storage, read_write> GUARD: array<atomic<u32>, 4>;
var<private> GUARD_end: u32;
fn GUARD_probe() {
  var n = 0u;
  while (n < atomicLoad(&GUARD[1])) { n += 1u; }
  if (n < 2u) { atomicAdd(&GUARD[0], 1u); atomicStore(&GUARD[3], IDu); }
}
`

// Guarded returns the text of a compute shader with code that tells of loops that the device ends before their conditions do, or ""
// for one that has no loops or no such entry point. Mesa's llvmpipe does so after a number of turns of all loops of an invocation,
// and of those beside it, together: at the next end of a turn it leaves the loop as if by break, and so each later loop after its first
// turn. So it is enough to make one loop of two turns whenever the entry point returns.
//
// Binding 0 of group 1 is four words: the first counts the invocations that were cut short, the second has to be 2 and the third 0, and
// the fourth gets the id. Each loop may also be left for what that third word is: otherwise a compiler would drop what follows a
// loop that it finds to be endless, and with it the probe.
func (s *Scan) Guarded(entry string, id uint32) string {
	name := "sublet_guard"
	for n := 0; strings.Contains(s.Text, name); n++ {
		name = "sublet_guard" + strconv.Itoa(n)
	}
	body, loops := 0, false
	s.declared(func(keyword string, token int) {
		if open := token + 1; keyword == "fn" && s.At(token) == entry && s.Char(open) == '(' {
			body = int(s.Match[open]) + 1
		}
	})
	if s.Char(body) != '{' {
		return ""
	}
	var b strings.Builder
	at := 0
	insert := func(pos int, text string) {
		b.WriteString(s.Text[at:pos] + text)
		at = pos
	}
	end := int(s.Match[body])
	for i := 0; i < len(s.Tokens); i++ {
		switch keyword := s.At(i); {
		case i == body:
			insert(s.Pos(i)+1, " "+name+"_end = atomicLoad(&"+name+"[2]);")
		case keyword == "loop" || keyword == "while" || keyword == "for":
			for i++; i < len(s.Tokens) && s.Char(i) != '{'; i++ {
			}
			insert(min(s.Pos(i)+1, len(s.Text)), " if ("+name+"_end != 0u) { break; }")
			loops = true
		case keyword == "return" && body < i && i < end, i == end && !s.returns(end):
			insert(s.Pos(i), name+"_probe(); ")
		}
	}
	if !loops {
		return ""
	}
	b.WriteString(s.Text[at:])
	b.WriteString(strings.NewReplacer("GUARD", name, "ID", strconv.FormatUint(uint64(id), 10)).Replace(guardText))
	return b.String()
}

// returns reports whether what ends with a brace ends with return, after which nothing may stand: blocks that begin a statement count as
// what they hold.
func (s *Scan) returns(end int) bool {
	for s.Char(end-1) == '}' && strings.IndexByte("{;}", s.Char(int(s.Match[end-1])-1)) >= 0 {
		end--
	}
	return s.Char(end-1) == ';' && s.At(end-2) == "return"
}
