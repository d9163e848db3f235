// SPDX-License-Identifier: Apache-2.0

package wgsl

import "strings"

// Function returns the name of the first function and how many parameters it has, "" and 0 for what is missing.
func (s *Scan) Function() (name string, params int) {
	s.declared(func(keyword string, token int) {
		if keyword != "fn" || name != "" {
			return
		}
		if name = s.At(token); s.Char(token+1) == '(' {
			params = len(s.Split(token+2, int(s.Match[token+1])))
		}
	})
	return name, params
}

// Qualify returns the text with a suffix behind every name that it declares outside of functions, so that it can stand in one
// module with other texts. What has such a name inside of functions is renamed along with it.
func (s *Scan) Qualify(suffix string) string {
	names, members := map[string]bool{}, map[int]bool{}
	s.declared(func(keyword string, name int) {
		names[s.At(name)] = true
		if keyword != "struct" || s.Char(name+1) != '{' {
			return
		}
		for i := name + 2; i < int(s.Match[name+1]); i++ {
			members[i] = s.Char(i+1) == ':'
		}
	})
	var b strings.Builder
	at := 0
	for i, t := range s.Tokens {
		// Members of structs, swizzles and attributes have names of their own.
		if t.Kind == Word && !members[i] && s.Char(i-1) != '.' && s.Char(i-1) != '@' && names[s.At(i)] {
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
