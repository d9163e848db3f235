// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// ref is a use of a name that is no local one: the name and its token.
type ref struct {
	name  string
	token int
}

// scopes follows the local names of a function while its tokens are walked in order.
type scopes struct {
	*parser
	f     *function
	local map[string]int // how many declarations of a name are in sight
	names []string
	open  []block
	// A declaration counts from its semicolon on: let x = x + 1 reads an outer x.
	pending   string
	pendingAt int
}

// block is a scope: the token that ends it, and how many names were in sight before.
type block struct{ end, names int }

// references lists what a function uses of the module's names.
func (p *parser) references(f *function) {
	s := &scopes{parser: p, f: f, local: map[string]int{}, pendingAt: -1}
	f.bad = -1
	s.push(f.end - 1)
	resume := p.next
	defer func() { p.next = resume }()
	for _, a := range f.params {
		s.declare(p.At(a.name), a.name)
		for i := a.from; i < a.to; i++ {
			s.use(i)
		}
	}
	for i := f.open; i < f.end; i++ {
		i = s.step(i)
	}
}

// step takes the token i and returns the last one that it took.
func (s *scopes) step(i int) int {
	if s.pendingAt == i {
		s.declare(s.pending, -1)
		s.pendingAt = -1
	}
	for len(s.open) > 0 && s.open[len(s.open)-1].end == i {
		s.pop()
	}
	switch s.Char(i) {
	case '{':
		s.push(int(s.Match[i]))
		return i
	case '@':
		if s.Char(i+2) == '(' { // what stands there has names of its own
			return int(s.Match[i+2])
		}
		return i + 1
	}
	switch s.At(i) {
	case "for":
		if open := i + 1; s.Char(open) == '(' {
			s.next = int(s.Match[open]) + 1
			s.attributes()
			if s.Char(s.next) == '{' {
				s.push(int(s.Match[s.next]))
			}
		}
	case "let", "var", "const":
		return s.announce(i)
	default:
		s.use(i)
	}
	return i
}

// announce takes let, var or const and the name after it.
func (s *scopes) announce(i int) int {
	name := i + 1
	if s.Char(name) == '<' {
		for s.Char(name) != '>' && name < s.f.end {
			name++
		}
		name++
	}
	if !s.IsWord(name) || name >= s.f.end {
		return i
	}
	s.check(name)
	s.pending = s.At(name)
	if s.pendingAt > i { // two declarations before one semicolon, which no compiler takes
		return name
	}
	s.pendingAt = s.f.end
	for j := name; j < s.f.end; j++ {
		switch s.Char(j) {
		case '(', '[', '{':
			j = int(s.Match[j])
		case ';', ')', '}':
			s.pendingAt = j
			return name
		}
	}
	return name
}

// use notes the token i where it is a name from outside of the function.
func (s *scopes) use(i int) {
	if !s.IsWord(i) || s.Char(i-1) == '.' {
		return
	}
	if name := s.At(i); s.local[name] == 0 {
		s.f.refs = append(s.f.refs, ref{name, i})
	}
}

func (s *scopes) push(end int) { s.open = append(s.open, block{end, len(s.names)}) }

func (s *scopes) pop() {
	b := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	for _, name := range s.names[b.names:] {
		s.local[name]--
	}
	s.names = s.names[:b.names]
}

func (s *scopes) declare(name string, token int) {
	if token >= 0 {
		s.check(token)
	}
	s.local[name]++
	s.names = append(s.names, name)
}

// check remembers a name that is not the user's to declare.
func (s *scopes) check(token int) {
	if s.f.bad < 0 && strings.HasPrefix(s.At(token), prefix) {
		s.f.bad = token
	}
}

// reach returns the functions that one uses, itself included, as a set and in the order of the source.
func (s *Source) reach(f *function) (set map[*function]bool, list []*function) {
	set = map[*function]bool{f: true}
	for todo := []*function{f}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, r := range last.refs {
			if d := s.decls[r.name]; d != nil && d.fn != nil && !set[d.fn] {
				set[d.fn] = true
				todo = append(todo, d.fn)
			}
		}
	}
	list = slices.Collect(maps.Keys(set))
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	return set, list
}

// uses lists the first use of each name of the module's that the functions need.
func uses(functions []*function) map[string]int {
	first := map[string]int{}
	for _, f := range functions {
		for _, r := range f.refs {
			if _, ok := first[r.name]; !ok {
				first[r.name] = r.token
			}
		}
	}
	return first
}
