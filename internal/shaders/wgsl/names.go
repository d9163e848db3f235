// SPDX-License-Identifier: Apache-2.0

package wgsl

import "strings"

// Functions lists the tokens of the names of the functions, in the order of the text.
func (s *Scan) Functions() []int {
	var list []int
	s.declared(func(keyword string, name int) {
		if keyword == "fn" {
			list = append(list, name)
		}
	})
	return list
}

// Params returns how many parameters the function with this name has, and whether it has a list of them at all.
func (s *Scan) Params(name int) (n int, ok bool) {
	open := name + 1
	if s.Char(open) != '(' {
		return 0, false
	}
	return len(s.Split(open+1, int(s.Match[open]))), true
}

// Qualify returns the text with a suffix behind every name that it declares outside of functions, so that it can stand in one
// module with other texts. What has such a name inside of functions is renamed along with it.
func (s *Scan) Qualify(suffix string) string {
	names := map[string]bool{}
	s.declared(func(_ string, name int) { names[s.At(name)] = true })
	member := s.members()
	var b strings.Builder
	at := 0
	for i, t := range s.Tokens {
		// Members of structs, swizzles and attributes have names of their own.
		if t.Kind == Word && !member[i] && s.Char(i-1) != '.' && s.Char(i-1) != '@' && names[s.At(i)] {
			b.WriteString(s.Text[at:t.End])
			b.WriteString(suffix)
			at = int(t.End)
		}
	}
	b.WriteString(s.Text[at:])
	return b.String()
}

// declared visits the names that are declared outside of functions, with the keyword before each.
func (s *Scan) declared(visit func(keyword string, name int)) {
	for i := 0; i < len(s.Tokens); i++ {
		switch s.Char(i) {
		case '(', '[', '{':
			i = int(s.Match[i])
			continue
		}
		switch keyword := s.At(i); keyword {
		case "fn", "struct", "alias", "const", "override", "var":
			name := i + 1
			if s.Char(name) == '<' { // var<private>
				for name < len(s.Tokens) && s.Char(name) != '>' {
					name++
				}
				name++
			}
			if s.IsWord(name) {
				visit(keyword, name)
				i = name
			}
		}
	}
}

// members finds the names of members in the declarations of structs.
func (s *Scan) members() map[int]bool {
	found := map[int]bool{}
	s.declared(func(keyword string, name int) {
		if keyword != "struct" || s.Char(name+1) != '{' {
			return
		}
		for _, part := range s.Split(name+2, int(s.Match[name+1])) {
			for i := part[0]; i < part[1]; i++ {
				if s.Char(i) == '(' {
					i = int(s.Match[i])
				} else if s.IsWord(i) && s.Char(i+1) == ':' {
					found[i] = true
					break
				}
			}
		}
	})
	return found
}
