// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"testing"
)

// TestNeeded has a function that refers to a type of structures, with and without another one that looks into types.
func TestNeeded(t *testing.T) {
	const (
		structType, fieldType, name, itabs, itab, other, types, end = 0, 104, 200, 208, 216, 248, 344, 352
		fields                                                      = structType + 80
	)
	symbols := []symbol{
		{"main.f", tableStart << 16, 1, []reference{{0, 2}, {8, 9}}},
		{"reflect.look", (tableStart + 1) << 16, 1, nil},
		{"type:main.s", structType, 104, []reference{{typeName, 4}, {fields - structType, 4}, {fields - structType + 8, 3}}},
		{"type:main.field", fieldType, 96, nil},
		{"type:.namedata.s", name, 8, nil},
		{"runtime.itablink", itabs, 8, []reference{{0, 6}}},
		{"go:itab.main.other,error", itab, 32, []reference{{8, 7}}},
		{"type:main.other", other, 96, nil},
		{"runtime.typelink", types, 8, nil},
		{"runtime.firstmoduledata", end, 8, []reference{{0, 5}, {4, 8}}},
		{"runtime.unused", end + 8, 8, nil},
	}
	memory := make([]byte, end+24) // the last bytes are no symbol's
	memory[structType+typeKind] = kindStruct
	binary.LittleEndian.PutUint64(memory[structType+typeFields:], fields)
	binary.LittleEndian.PutUint64(memory[structType+typeFields+8:], 1)
	l := &layout{inlined: make([][]string, 2)}
	for _, c := range []struct {
		first  []bool
		at     int
		wanted bool
	}{
		{[]bool{true, false}, structType, true},
		{[]bool{true, false}, structType + typeName, false},
		{[]bool{true, false}, fields, false},
		{[]bool{true, false}, fieldType, false},
		{[]bool{true, false}, name, false},
		{[]bool{true, true}, fields, true},
		{[]bool{true, true}, fieldType, true},
		{[]bool{true, true}, name, true},
		{[]bool{false, true}, structType, false},
		{[]bool{true, false}, itabs, true},
		{[]bool{true, false}, itab, true},
		{[]bool{true, false}, other + typeHash, true}, // by which the pair is entered
		{[]bool{true, false}, other, false},
		{[]bool{true, false}, types, false},
		{[]bool{true, true}, types, true},
		{[]bool{true, false}, end + 8, false},
		{[]bool{true, false}, end + 16, true},
	} {
		if got := needed(l, memory, symbols, c.first).kept[c.at]; got != c.wanted {
			t.Errorf("with %v %d is kept: %v", c.first, c.at, got)
		}
	}
	l.inlined[0] = []string{"internal/reflectlite.rtype.String"}
	if !needed(l, memory, symbols, []bool{true, false}).kept[name] {
		t.Error("names go that an inlined function reads")
	}
}
