// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// guardText is what follows a guarded source. The entry point calls that of the source and then makes a loop of two turns, or of one
// where loops are ended early.
const guardText = `
@group(1) @binding(0) var<storage, read_write> GUARD: array<atomic<u32>, 4>;
var<private> GUARD_end: u32;
ATTRIBUTES fn GUARD_main(PARAMETERS) {
  GUARD_end = atomicLoad(&GUARD[2]);
  ENTRY(ARGUMENTS);
  var n = 0u;
  while (n < atomicLoad(&GUARD[1])) { n += 1u; }
  if (n < 2u) { atomicAdd(&GUARD[0], 1u); atomicStore(&GUARD[3], IDu); }
}
`

// Guarded returns the text of a compute shader with code that tells of loops that the device ends before their conditions do, and its
// entry point; "" for one that has no loops or no such entry point. Mesa's llvmpipe does so after a number of turns of all loops of an
// invocation, and of those beside it, together: at the end of a turn it leaves the loop as if by break, and so each later loop after its
// first turn. So one loop of two turns at the end is enough to find out.
//
// Binding 0 of group 1 is four words: the first counts the invocations that were cut short, the second has to be 2 and the third 0, and
// the fourth gets the id. Each loop may also be left for what that third word is: otherwise a compiler would drop what follows a
// loop that it finds to be endless, and with it the loop at the end.
func (s *Scan) Guarded(entry string, id uint32) (text, main string) {
	name := "sublet_guard"
	for n := 0; strings.Contains(s.Text, name); n++ {
		name = "sublet_guard" + strconv.Itoa(n)
	}
	at := -1
	s.declared(func(keyword string, token int) {
		if keyword == "fn" && s.At(token) == entry && s.Char(token+1) == '(' {
			at = token
		}
	})
	if at < 0 {
		return "", ""
	}
	g := guarding{s: s}
	first, params := s.attributes(at-1), [2]string{}
	attributes, loops := s.Text[s.Pos(first):s.Pos(at-1)], false
	for i := 0; i < len(s.Tokens); i++ {
		switch keyword := s.At(i); {
		case i == first:
			g.skip(s.Pos(first), s.Pos(at-1))
			i = at - 1
		case i == at+1:
			params = g.parameters(i+1, int(s.Match[i]), name)
			i = int(s.Match[i])
		case keyword == "loop" || keyword == "while" || keyword == "for":
			for i < len(s.Tokens)-1 && s.Char(i) != '{' {
				i++
			}
			g.skip(s.Pos(i)+1, s.Pos(i)+1)
			g.WriteString(" if (" + name + "_end != 0u) { break; }")
			loops = true
		}
	}
	if !loops {
		return "", ""
	}
	g.skip(len(s.Text), len(s.Text))
	fill := strings.NewReplacer("GUARD", name, "ID", strconv.FormatUint(uint64(id), 10), "ATTRIBUTES", attributes,
		"ENTRY", entry, "PARAMETERS", params[0], "ARGUMENTS", params[1])
	return g.String() + fill.Replace(guardText), name + "_main"
}

// guarding writes a text anew.
type guarding struct {
	strings.Builder
	s  *Scan
	at int // what is before it has been dealt with
}

// skip writes what is before a position and leaves out what is from there to another one.
func (g *guarding) skip(from, to int) {
	g.WriteString(g.s.Text[g.at:from])
	g.at = to
}

// parameters takes the attributes from parameters, and returns such parameters with them, and what hands these on.
func (g *guarding) parameters(from, to int, name string) (both [2]string) {
	s := g.s
	for n, part := range s.Split(from, to) {
		i := part[0]
		for i < part[1] && s.Char(i) == '@' {
			if i += 2; s.Char(i) == '(' {
				i = int(s.Match[i]) + 1
			}
		}
		from, end := s.Pos(part[0]), int(s.Tokens[part[1]-1].End)
		g.skip(from, s.Pos(i))
		argument := name + "_" + strconv.Itoa(n)
		both[0] += s.Text[from:s.Pos(i)] + argument + s.Text[min(s.Pos(i+1), end):end] + ", "
		both[1] += argument + ", "
	}
	return both
}

// attributes returns the first token of the attributes before a token.
func (s *Scan) attributes(i int) int {
	for {
		name := i - 1
		if s.Char(name) == ')' {
			name = int(s.Match[name]) - 1
		}
		if !s.IsWord(name) || s.Char(name-1) != '@' {
			return i
		}
		i = name - 1
	}
}
