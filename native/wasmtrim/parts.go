// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
)

// restPart makes the module of all functions that do not belong to the first part, but for its imports.
func (p *program) restPart() *module {
	for f, body := range p.bodies {
		if p.first[f] {
			continue
		}
		for _, in := range p.instructions(body) {
			if callee := in.target - len(p.imports); in.op == opCall && callee >= 0 && p.typeOf[callee] != 0 {
				p.leaves[callee] = true
			}
		}
	}
	p.number = make([]int, len(p.bodies))
	next := len(p.imports)
	for _, f := range p.leafList() {
		p.number[f] = next
		next++
	}
	var types, bodies, runs [][]byte
	for f := 0; f < len(p.bodies); {
		if p.first[f] {
			f++
			continue
		}
		start, numbers := f, [][]byte{}
		for ; f < len(p.bodies) && !p.first[f]; f++ {
			p.number[f] = next
			numbers = append(numbers, appendUint(nil, uint64(next)))
			types = append(types, []byte{0})
			next++
		}
		runs = append(runs, append(append(appendInt([]byte{0, opI32Const}, uint64(tableStart+start)), opEnd), vector(numbers)...))
	}
	p.push = next
	types = append(types, appendUint(nil, p.pushType()))
	for f, body := range p.bodies {
		if !p.first[f] {
			bodies = append(bodies, p.rewrite(body, false))
		}
	}
	bodies = append(bodies, function(pushed))
	return &module{sections: []section{
		{sectionType, vector(p.types)},
		{sectionImport, nil},
		{sectionFunction, vector(types)},
		{sectionElement, vector(runs)},
		{sectionCode, vector(bodies)},
	}}
}

func (p *program) instructions(body []byte) []instruction {
	_, list := instructions(body)
	return list
}

// rewrite returns a function's body with its calls as the part that it is in has to make them.
func (p *program) rewrite(body []byte, first bool) []byte {
	locals, list := instructions(body)
	list = shorter(list, p.pushIndex())
	out := slices.Clone(locals)
	for i := 0; i < len(list); i++ {
		in := list[i]
		if in.op == opCall && in.target == p.pushIndex() && first && p.missing(list[i+2].target) && !isRigid(list[i+2:]) {
			i += 2 // the number before the call is that of the first block
			out = appendInt(append(out, opI32Const), uint64(tableStart+list[i].target-len(p.imports)))
			out = appendUint(append(out, opCall), uint64(p.pushAndTell))
			continue
		}
		if in.op == opCallIndirect && first {
			check(bytes.Equal(in.bytes, []byte{opCallIndirect, 0, 0}))
			out = appendUint(append(out, opCall), uint64(p.told))
			continue
		}
		if in.op != opCall {
			out = append(out, in.bytes...)
			continue
		}
		rigid := isRigid(list[i:])
		if rigid {
			out = p.addRigid(out, opI32Add)
		}
		out = p.call(out, in.target, first)
		if rigid {
			out = p.addRigid(out, opI32Sub)
		}
	}
	return append(appendUint(nil, uint64(len(out))), out...)
}

// keepRigid leaves a function in the first part that has calls without resume, and what it calls without a look at the result.
func (p *program) keepRigid(f int, body []byte) {
	list := p.instructions(body)
	for i, in := range list {
		callee := in.target - len(p.imports)
		if in.op != opCall || callee < 0 || p.typeOf[callee] != 0 {
			continue
		}
		if isRigid(list[i:]) {
			p.first[f] = true
		}
		if next := afterCall(list[i:]); !slices.Contains([]byte{opIf, opBrIf, opReturn, opDrop}, next[0].op) {
			p.first[callee] = true
		}
	}
}

// afterCall returns what follows a call, which the code begins with, and the copy of SP that is renewed then.
func afterCall(code []instruction) []instruction {
	code = code[1:]
	if code[0].op == opGlobalGet && code[1].op == opLocalSet {
		code = code[2:]
	}
	return code
}

// isRigid tells whether the code, which begins with a call, traps if the callee wants the stack to be left.
func isRigid(code []instruction) bool {
	code = afterCall(code)
	return code[0].op == opIf && code[1].op == opUnreachable
}

// pushIndex stands for the index of the function with [pushed], until rewrite replaces it by the one in the part at hand. It is that of an unsplit program.
func (p *program) pushIndex() int { return len(p.imports) + len(p.bodies) + 1 }

// pushType is the number of its type.
func (p *program) pushType() uint64 { return p.typeNumber([]byte{typeI64}, nil) }

// missing reports whether an index is that of an ordinary function of the program, no import, that is not in the first part.
func (p *program) missing(index int) bool {
	f := index - len(p.imports)
	return f >= 0 && f < len(p.bodies) && !p.first[f] && p.typeOf[f] == 0
}

// addRigid appends what counts calls that cannot be left.
func (p *program) addRigid(out []byte, op byte) []byte {
	return append(out, opGlobalGet, globalRigid, opI32Const, 1, op, opGlobalSet, globalRigid)
}

// call appends a call of a function that has the index in the program.
func (p *program) call(out []byte, index int, first bool) []byte {
	f := index - len(p.imports)
	switch {
	case f < 0:
		return appendUint(append(out, opCall), uint64(index))
	case f == len(p.bodies): // of tell
		return appendUint(append(out, opCall), uint64(len(p.imports)))
	case index == p.pushIndex():
		return appendUint(append(out, opCall), uint64(p.push))
	case p.first[f] == first || p.typeOf[f] != 0:
		return appendUint(append(out, opCall), uint64(p.number[f]))
	}
	out = appendInt(append(out, opI32Const), uint64(tableStart+f))
	if first {
		return appendUint(append(out, opCall), uint64(p.told))
	}
	return append(out, opCallIndirect, 0, 0)
}

// firstPart makes the module of the functions that the program needs at once, with the stand-in for the others.
func (p *program) firstPart(mark string, fill []byte) *module {
	shift := len(p.imports) + 1 // the import of the stand-in comes last
	var types, bodies, table [][]byte
	add := func(kind uint64, body []byte) int {
		types, bodies = append(types, appendUint(nil, kind)), append(bodies, body)
		return shift + len(types) - 1
	}
	stand := add(0, standIn(len(p.imports)))
	p.told = add(p.typeNumber([]byte{typeI32, typeI32}, []byte{typeI32}), function([]byte{
		opLocalGet, 1, opGlobalSet, globalTold, opLocalGet, 0, opLocalGet, 1, opCallIndirect, 0, 0,
	}))
	p.pushAndTell = add(p.typeNumber([]byte{typeI64, typeI32}, []byte{typeI32}), function(append(slices.Clone(pushed),
		opLocalGet, 1, opGlobalSet, globalTold, opI32Const, 0, opLocalGet, 1, opCallIndirect, 0, 0)))
	p.push = add(p.pushType(), function(pushed))
	p.number = make([]int, len(p.bodies))
	next := p.push + 1
	for f := range p.bodies {
		p.number[f] = stand
		if p.first[f] {
			p.number[f] = next
			next++
		}
		table = append(table, appendUint(nil, uint64(p.number[f])))
	}
	for f, body := range p.bodies {
		if p.first[f] {
			add(p.typeOf[f], p.rewrite(p.tell(f, body), true))
		}
	}
	exports := p.firstExports(mark, add)
	start := add(p.typeNumber(nil, nil), fill)
	list := [][]byte{append(append(appendInt([]byte{0, opI32Const}, tableStart), opEnd), vector(table)...)}
	imports := append(slices.Clone(p.imports), append(appendText(appendText(nil, importModule), "want"), 0, 0))
	globalList := append([]byte{globals + 2}, p.section(sectionGlobal).content[1:]...)
	globalList = append(globalList, typeI32, 1, opI32Const, 0, opEnd, typeI32, 1, opI32Const, 0, opEnd)
	m := &module{memory: p.memory}
	for _, s := range p.sections {
		switch s.kind {
		case sectionType:
			s.content = vector(p.types)
		case sectionImport:
			s.content = vector(imports)
		case sectionFunction:
			s.content = vector(types)
		case sectionGlobal:
			s.content = globalList
		case sectionExport:
			s.content = vector(exports)
		case sectionElement:
			m.sections = append(m.sections, section{sectionStart, appendUint(nil, uint64(start))})
			s.content = vector(list)
		case sectionCode:
			s.content = vector(bodies)
		}
		m.sections = append(m.sections, s)
	}
	return m
}

// tell has a function say that it is called, in a program that is to tell.
func (p *program) tell(f int, body []byte) []byte {
	if !p.telling || p.typeOf[f] != 0 {
		return body
	}
	locals, _ := instructions(body)
	code := append(appendInt(append(slices.Clone(locals), opI32Const), uint64(f)), opCall)
	return append(append(appendUint(code, uint64(len(p.imports)+len(p.bodies))), opDrop), body[len(locals):]...)
}

// function encodes a function without locals.
func function(code []byte) []byte {
	body := append(append([]byte{0}, code...), opEnd)
	return append(appendUint(nil, uint64(len(body))), body...)
}

// standIn is called with the entry of the function that is wanted.
func standIn(want int) []byte {
	code := appendUint([]byte{opGlobalGet, globalTold, opCall}, uint64(want))
	code = append(code, opIf, blockEmpty,
		// The word before SP is where wasm_pc_f_loop looks for what to call: entry and function.
		opGlobalGet, globalSP, opI32Const, 8, opI32Sub,
		opGlobalGet, globalTold, opI64ExtendU, opI64Const, 16, opI64Shl, opLocalGet, 0, opI64ExtendU, opI64Or, opI64Store, 3, 0,
		opI32Const, 1, opGlobalSet, globalPause, opI32Const, 1, opReturn, opEnd,
		opLocalGet, 0, opGlobalGet, globalTold, opCallIndirect, 0, 0)
	return function(code)
}

// firstExports encodes the exports of the first part, and adds the functions of some.
func (p *program) firstExports(mark string, add func(kind uint64, body []byte) int) (list [][]byte) {
	put := func(name string, kind byte, index int) {
		list = append(list, appendUint(append(appendText(nil, name), kind), uint64(index)))
	}
	resume := -1
	for _, e := range p.exports {
		if e.kind != 0 {
			put(e.name, e.kind, e.index)
			continue
		}
		f := e.index - len(p.imports)
		put(e.name, e.kind, p.number[f])
		if e.name == "resume" {
			resume = f
		} else if tail := p.tail(f); tail != nil {
			put("go on "+e.name, 0, add(p.tailType(p.typeOf[f]), tail))
		}
	}
	check(resume >= 0)
	// Its last call is that of wasm_pc_f_loop.
	code := p.instructions(p.bodies[resume])
	loop := slices.IndexFunc(code, func(in instruction) bool { return in.op == opCall && p.typeOf[in.target-len(p.imports)] != 0 })
	check(loop >= 0)
	put("go on", 0, p.number[code[loop].target-len(p.imports)])
	for _, f := range p.leafList() {
		put(name(f), 0, p.number[f])
	}
	put("table", 1, 0)
	for i := range registers {
		put(fmt.Sprint("g", i), 3, i)
	}
	put("rigid", 3, globalRigid)
	put("told", 3, globalTold)
	put(mark, 3, globalRigid)
	return list
}

// typeNumber returns the number of a type of functions, which it adds if it is missing.
func (p *program) typeNumber(params, results []byte) uint64 {
	want := append(append(append([]byte{0x60, byte(len(params))}, params...), byte(len(results))), results...)
	i := slices.IndexFunc(p.types, func(b []byte) bool { return bytes.Equal(b, want) })
	if i < 0 {
		i = len(p.types)
		p.types = append(p.types, want)
	}
	return uint64(i)
}

// tail returns a function that goes on with an export of Go's: what that does after it was left. It is nil for an export of another kind.
func (p *program) tail(f int) []byte {
	_, code := instructions(p.bodies[f])
	for i, in := range code {
		if in.op != opIf || i+6 >= len(code) || code[i+5].op != opCall || code[i+6].op != opEnd || code[i+1].op != opI64Const {
			continue
		}
		var out []byte
		for _, in := range code[i+1 : i+5] { // wasm_pc_f_loop_export takes which function the loop ends at
			out = append(out, in.bytes...)
		}
		out = p.call(out, code[i+5].target, true)
		for _, in := range code[i+7:] {
			check(in.op != opCall && (in.op < opLocalGet || in.op >= opGlobalGet))
			out = append(out, in.bytes...)
		}
		return append(appendUint(nil, uint64(len(out)+1)), append([]byte{0}, out...)...)
	}
	return nil
}

// tailType is the type of a function that goes on with one of another type.
func (p *program) tailType(kind uint64) uint64 {
	r := reader(p.types[kind])
	r.byte()
	r.text()
	return p.typeNumber(nil, r.text())
}
