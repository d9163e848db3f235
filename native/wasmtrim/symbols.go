// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"slices"
	"strings"
)

// symbolsSection is what a program's data consists of. The linker of command linker writes it; where it is missing, the first part of a program
// gets all data but the tables of functions.
const symbolsSection = "sublet symbols"

// symbol is a piece of data, or a function, and what it refers to.
type symbol struct {
	name       string
	at, size   int
	references []reference
}

// reference is one to a symbol, by its number, at an offset.
type reference struct{ offset, to int }

// function returns the number of the function that a symbol is, or -1.
func (s *symbol) function() int { return max(s.at>>16-tableStart, -1) }

// takeSymbols takes the symbols out of a module.
func (m *module) takeSymbols() (list []symbol) {
	m.sections = slices.DeleteFunc(m.sections, func(s section) bool {
		r := reader(s.content)
		if s.kind != sectionCustom || string(r.text()) != symbolsSection {
			return false
		}
		r.vector(func() {
			s := symbol{name: string(r.text()), at: int(r.uint()), size: int(r.uint())}
			for n := r.uint(); n > 0; n-- {
				s.references = append(s.references, reference{int(r.uint()), int(r.uint())})
			}
			list = append(list, s)
		})
		return true
	})
	return list
}

// needs are the data that the functions of the first part can read.
type needs struct {
	memory  []byte
	symbols []symbol
	deep    bool // whether anybody looks at the fields of types
	seen    []bool
	queue   []int
	kept    []bool // by address
}

// Offsets in internal/abi.Type and, of a structure, behind it.
const (
	typeHash      = 16
	typeFlags     = 20
	typeKind      = 23
	typeEqual     = 24
	typeName      = 40
	typeSize      = 48
	typeFields    = 56
	typeFieldSize = 24

	flagMask   = 16 // the collector's mask is made of the fields
	kindStruct = 25
	kindMask   = 31
)

// looking begins the names of functions that look at the fields of structures that cannot be compared, for which also the runtime hashes fields,
// for the names of types, and for the types of pointers to types, which follow the names. Those in harmless do not.
var (
	looking  = []string{"reflect.", "internal/reflectlite.", "unique.", "internal/abi.(*Type).StructType", "internal/abi.(*StructType).", "runtime.typesEqual", "runtime.rtype.string"}
	harmless = []string{
		"reflect.init", "internal/reflectlite.elem", "internal/reflectlite.rtype.Elem", "internal/reflectlite.rtype.Comparable",
		"internal/reflectlite.toType", "internal/reflectlite.TypeOf",
	}
)

// looks tells whether a function does.
func looks(name string) bool {
	return !slices.Contains(harmless, name) && slices.ContainsFunc(looking, func(start string) bool { return strings.HasPrefix(name, start) })
}

// needed returns what the first part needs of memory.
func needed(l *layout, memory []byte, symbols []symbol, first []bool) *needs {
	n := &needs{memory: memory, symbols: symbols, seen: make([]bool, len(symbols)), kept: make([]bool, len(memory))}
	for i := range n.kept {
		n.kept[i] = true
	}
	for i := range symbols {
		s := &symbols[i]
		f := s.function()
		switch {
		case f < 0:
			n.keep(s, 0, s.size, false)
		case f < len(first) && first[f]:
			n.deep = n.deep || looks(s.name) || slices.ContainsFunc(l.inlined[f], looks)
		}
	}
	for i := range symbols {
		s := &symbols[i]
		if f := s.function(); f >= 0 && f < len(first) && first[f] {
			for _, r := range s.references {
				n.need(r.to)
			}
		}
	}
	for len(n.queue) > 0 {
		s := &symbols[n.queue[0]]
		n.queue = n.queue[1:]
		n.visit(s)
	}
	return n
}

// keepMasks keeps the collector's masks that are at the addresses.
func (n *needs) keepMasks(masks []int) {
	for i := range n.symbols {
		s := &n.symbols[i]
		if slices.ContainsFunc(masks, func(at int) bool { return at >= s.at && at < s.at+s.size }) {
			n.keep(s, 0, s.size, true)
		}
	}
}

// need notes that a symbol is needed.
func (n *needs) need(i int) {
	if !n.seen[i] && n.symbols[i].function() < 0 {
		n.seen[i] = true
		n.queue = append(n.queue, i)
	}
}

// keep sets whether a part of a symbol is kept. Symbols without data are behind the end.
func (n *needs) keep(s *symbol, from, to int, kept bool) {
	for i := s.at + from; i < min(s.at+to, len(n.memory)); i++ {
		n.kept[i] = kept
	}
}

// visit keeps a symbol and what it refers to.
func (n *needs) visit(s *symbol) {
	n.keep(s, 0, s.size, true)
	unread := n.unread(s)
	for _, hole := range unread {
		n.keep(s, hole[0], hole[1], false)
	}
	for _, r := range s.references {
		to := &n.symbols[r.to]
		switch {
		case slices.ContainsFunc(unread, func(hole [2]int) bool { return r.offset >= hole[0] && r.offset < hole[1] }):
		case to.name == "runtime.typelink" && !n.deep: // by which types are found by their names
		case s.name == "runtime.itablink": // The runtime enters all pairs of an interface and a type in a table. One of which a half is not needed is not looked up.
			n.keep(to, 0, to.size, true)
			for _, half := range to.references {
				if s := &n.symbols[half.to]; s.function() < 0 {
					n.keep(s, typeHash, typeHash+4, true)
				}
			}
		default:
			n.need(r.to)
		}
	}
}

// unread are the parts of a symbol that only functions read that look into types.
func (n *needs) unread(s *symbol) (list [][2]int) {
	if n.deep || s.size < typeSize || !strings.HasPrefix(s.name, "type:") || strings.HasPrefix(s.name, "type:.") {
		return nil
	}
	list = append(list, [2]int{typeName, typeSize})
	data := n.memory[s.at:][:s.size]
	word := func(at int) int { return int(binary.LittleEndian.Uint64(data[at:])) }
	if data[typeKind]&kindMask != kindStruct || word(typeEqual) != 0 || data[typeFlags]&flagMask != 0 || word(typeFields+8) == 0 {
		return list
	}
	from, count := word(typeFields)-s.at, word(typeFields+8)
	to := from + typeFieldSize*count
	check(from >= typeSize && count > 0 && from < to && to <= s.size)
	return append(list, [2]int{from, to})
}
