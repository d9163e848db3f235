// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// A program of Go's is split by a list of the functions that it needs at once. The first part has these and a stand-in, at the place of
// each other one in the table by which Go calls functions. The rest is a module that takes the memory, the table and the
// registers of the first part, and writes its functions over the stand-in. Calls through the table note which function is called, for the stand-in.
//
// The stand-in asks JavaScript for the rest, by the import sublet_rest.want. If that returns 0, the rest has come meanwhile, and
// the call goes on. Otherwise it leaves WebAssembly, as Go does when it has nothing to do: it writes which function is to go on to where the runtime
// expects that, sets PAUSE and returns 1, upon which all callers return, down to JavaScript. That goes on later by restoring SP and calling
// the export "go on", or the one with the name of the export of Go's that it had called.
//
// During calls that cannot be left in this way, "without resume", of which Go's assembly has a few, the export "rigid" is not 0.

const (
	// tableStart is the place of the first function in the table: funcValueOffset of cmd/link/internal/wasm.
	tableStart = 0x1000

	globalSP    = 0
	globalPause = 7
	globals     = 8 // of Go's
	globalRigid = globals
	globalTold  = globals + 1 // the function that was called last through the table

	importModule = "sublet_rest"
)

// registers are the types of Go's globals; see writeGlobalSec of cmd/link/internal/wasm.
var registers = []byte{typeI32, typeI64, typeI64, typeI64, typeI64, typeI64, typeI64, typeI32}

// program is a module of Go's, taken apart. Functions have numbers from 0 on, without the imports.
type program struct {
	*module
	types, imports [][]byte
	typeOf         []uint64
	bodies         [][]byte
	exports        []export
	first          []bool // whether a function belongs to the first part
	number         []int  // of a function in the part that is being written, by its index in the program
	leaves         map[int]bool
	push           int  // the function of the part that is being written that stores return addresses
	told           int  // the function of the first part by which functions are called through the table
	pushAndTell    int  // the same, which stores the return address first, for calls of functions that are not in the first part
	telling        bool // whether each function says that it is called, by the import of the stand-in
}

type export struct {
	name  string
	kind  byte
	index int
}

func (m *module) section(kind byte) *section {
	i := m.find(kind)
	check(i >= 0)
	return &m.sections[i]
}

func (m *module) find(kind byte) int {
	return slices.IndexFunc(m.sections, func(s section) bool { return s.kind == kind })
}

// elements takes a vector apart.
func elements(content []byte, skip func(r *reader)) (list [][]byte) {
	r := reader(content)
	r.vector(func() {
		before := r
		skip(&r)
		list = append(list, before[:len(before)-len(r)])
	})
	return list
}

func parseProgram(m *module) *program {
	p := &program{module: m, leaves: map[int]bool{}}
	p.types = elements(m.section(sectionType).content, func(r *reader) {
		r.expect(0x60)
		r.text()
		r.text()
	})
	check(bytes.Equal(p.types[0], []byte{0x60, 1, typeI32, 1, typeI32}))
	p.imports = elements(m.section(sectionImport).content, func(r *reader) {
		r.text()
		r.text()
		r.expect(0) // a function
		r.uint()
	})
	types := reader(m.section(sectionFunction).content)
	types.vector(func() { p.typeOf = append(p.typeOf, types.uint()) })
	p.bodies = elements(m.section(sectionCode).content, func(r *reader) { r.text() })
	for i, body := range p.bodies {
		r := reader(body)
		p.bodies[i] = r.text()
	}
	check(len(p.typeOf) == len(p.bodies))
	exports := reader(m.section(sectionExport).content)
	exports.vector(func() {
		p.exports = append(p.exports, export{string(exports.text()), exports.byte(), int(exports.uint())})
	})
	p.checkLayout()
	return p
}

// checkLayout makes sure of the table and the globals.
func (p *program) checkLayout() {
	elements := reader(p.section(sectionElement).content)
	elements.expect(appendInt([]byte{1, 0, opI32Const}, tableStart)...)
	elements.expect(opEnd)
	next := uint64(len(p.imports))
	elements.vector(func() {
		check(elements.uint() == next)
		next++
	})
	check(next == uint64(len(p.imports)+len(p.bodies)))
	r := reader(p.section(sectionGlobal).content)
	check(r.uint() == globals)
	for _, kind := range registers {
		r.expect(kind, 1, opI32Const+typeI32-kind, 0, opEnd)
	}
}

// split returns the two parts of a program. first tells which functions belong to the first one; some do anyway. For nil all do, and say
// when they are called.
func split(m *module, tables *layout, symbols []symbol, first func(function int) bool) (one, rest []byte) {
	p := parseProgram(m)
	p.trust(tables)
	if p.telling = first == nil; p.telling {
		first = func(int) bool { return true }
	}
	p.first = make([]bool, len(p.bodies))
	for i := range p.first {
		p.first[i] = p.typeOf[i] != 0 || first(i)
	}
	for f, body := range p.bodies {
		p.keepRigid(f, body)
	}
	for _, e := range p.exports {
		if e.kind == 0 {
			p.first[e.index-len(p.imports)] = true
		}
	}
	restModule := p.restPart()
	clearPredicted := tables.predict()
	data := tables.withhold(p, symbols)
	clearPredicted()
	restModule.sections = append(restModule.sections, section{sectionData, vector(data)})
	sum := sha256.Sum256(append(slices.Clone(restModule.section(sectionCode).content), m.memory...))
	mark := hex.EncodeToString(sum[:6])
	return p.firstPart(mark, tables.fill()).encode(), p.finishRest(restModule, mark)
}

// filled returns a program that is not split, with the function that fills its tables.
func filled(m *module, tables *layout) []byte {
	p := parseProgram(m)
	p.trust(tables)
	clearPredicted := tables.predict()
	fill := tables.fill()
	clearPredicted()
	var types, bodies [][]byte
	for f, body := range p.bodies {
		types = append(types, appendUint(nil, p.typeOf[f]))
		code, list := instructions(body)
		code = slices.Clone(code)
		for _, in := range shorter(list, p.pushIndex()) {
			code = append(code, in.bytes...)
		}
		bodies = append(bodies, append(appendUint(nil, uint64(len(code))), code...))
	}
	types = append(types, appendUint(nil, p.typeNumber(nil, nil)), appendUint(nil, p.pushType()))
	m.section(sectionType).content = vector(p.types)
	m.section(sectionFunction).content = vector(types)
	m.section(sectionCode).content = vector(append(bodies, fill, function(pushed))) // this has the index pushIndex
	m.sections = slices.Insert(m.sections, m.find(sectionElement), section{sectionStart, appendUint(nil, uint64(len(p.imports)+len(p.bodies)))})
	return m.encode()
}

// name is that of a function as an export of the first part.
func name(function int) string { return fmt.Sprint("f", function) }

// finishRest adds the imports, which have the mark of the program.
func (p *program) finishRest(m *module, mark string) []byte {
	imported := func(name string, description ...byte) []byte {
		return append(appendText(appendText(nil, mark), name), description...)
	}
	memory := reader(p.section(sectionMemory).content)
	memory.expect(1, 0)
	pages := memory.uint()
	check(len(memory) == 0 && pages < 1<<14)
	// web/src/shared.mjs makes it shared in place.
	list := [][]byte{imported("mem", 2, 0, byte(pages)|0x80, byte(pages>>7)|0x80, 0x80, 0x80, 0)}
	list = append(list, p.imports...)
	for _, f := range p.leafList() {
		list = append(list, imported(name(f), append([]byte{0}, appendUint(nil, p.typeOf[f])...)...))
	}
	list = append(list, imported("table", append([]byte{1, 0x70, 0}, appendUint(nil, uint64(tableStart+len(p.bodies)))...)...))
	for i, kind := range registers {
		list = append(list, imported(fmt.Sprint("g", i), 3, kind, 1))
	}
	m.section(sectionImport).content = vector(list)
	return m.encode()
}

// leafList are the functions of the first part that the rest calls by their names, as they are not called as others are.
func (p *program) leafList() (list []int) {
	for f := range p.bodies {
		if p.leaves[f] {
			list = append(list, f)
		}
	}
	return list
}
