// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// The runtime finds a function's table by two tables of which all is known: ftab has the number of each function and where its table is,
// which are one behind the other, and findfunctab has the same number 16 times for each function, as one takes up 65536 addresses. The program
// fills them as it is loaded, a megabyte and a half, and the numbers in the functions' tables.
const (
	bucketsPerFunc = 65536 / 4096
	bucketSize     = 20
	ftabEntry      = 8
)

// predict makes sure that what the program fills by itself is as expected. The function that it returns clears it.
func (l *layout) predict() (clearAll func()) {
	n := len(l.list)
	var all [][]byte
	record := ftabEntry*n + 4
	record += -record & 7
	l.firstRecord = l.funcs + record
	for i := range n {
		entry := l.memory[l.funcs+ftabEntry*i:][:ftabEntry]
		f := l.memory[l.funcs+record:]
		check(u32(entry) == uint32(tableStart+i) && u32(entry[4:]) == uint32(record) && u32(f) == uint32(tableStart+i))
		l.records = append(l.records, l.funcs+record)
		record += recordSize(f)
		all = append(all, entry, f[:4])
	}
	want := make([]byte, bucketSize)
	last := (n - 1) * bucketsPerFunc // which is cut off
	for i := range last + 1 {
		put32(want, uint32(i/bucketsPerFunc))
		bucket := l.memory[l.findFunc+i*bucketSize:][:bucketSize]
		if i == last {
			bucket = bucket[:4]
		}
		check(bytes.HasPrefix(want, bucket))
		all = append(all, bucket)
	}
	return func() {
		for _, b := range all {
			clear(b)
		}
	}
}

// verifier is the function by which the runtime makes sure at its start that the linker sorted ftab. It takes milliseconds, as it reads all of the
// table; predict has seen what is in it.
const verifier = "runtime.moduledataverify1"

// trust replaces the verifier by a function that only returns: it takes its return address off the stack.
func (p *program) trust(l *layout) {
	f := slices.Index(l.list, verifier)
	check(f >= 0 && p.typeOf[f] == 0)
	p.bodies[f] = []byte{0, opGlobalGet, globalSP, opI32Const, 8, opI32Add, opGlobalSet, globalSP, opI32Const, 0, opEnd}
}

// recordSize is that of a function's runtime._func with its pcdata and funcdata. They are 8 bytes or a multiple apart.
func recordSize(f []byte) int {
	return (funcSize + 4*int(u32(f[funcPCData:])) + 4*int(f[funcFuncData]) + 7) &^ 7
}

// fill is a function that fills the tables, for the program to run as it is loaded.
func (l *layout) fill() []byte {
	const i, entry, record, bucket, end, number = 0, 1, 2, 3, 4, 5
	code := []byte{1, 6, typeI32}
	set := func(local byte, value int) {
		code = append(append(appendInt(append(code, opI32Const), uint64(value)), opLocalSet), local)
	}
	add := func(local byte, value int) {
		code = append(append(appendInt(append(code, opLocalGet, local, opI32Const), uint64(value)), opI32Add, opLocalSet), local)
	}
	store := func(at, what byte) { code = append(code, opLocalGet, at, opLocalGet, what, opI32Store, 2, 0) }
	set(entry, l.funcs)
	set(record, l.firstRecord)
	set(bucket, l.findFunc)
	set(number, tableStart)
	code = append(code, opLoop, blockEmpty)
	store(entry, number)
	code = append(appendInt(append(code, opLocalGet, entry, opLocalGet, record, opI32Const), uint64(l.funcs)), opI32Sub, opI32Store, 2, 4)
	add(entry, ftabEntry)
	store(record, number)
	// record += recordSize
	code = append(code, opLocalGet, record, opI32Load, 2, funcPCData, opLocalGet, record, opI32Load8U, 0, funcFuncData, opI32Add,
		opI32Const, 4, opI32Mul, opI32Const, funcSize+7, opI32Add, opI32Const, 0x78, opI32And, // -8
		opLocalGet, record, opI32Add, opLocalSet, record)
	// The last function has one bucket.
	code = append(appendInt(append(code, opLocalGet, i, opI32Const), uint64(len(l.list)-1)), opI32Eq, opIf, blockEmpty)
	store(bucket, i)
	code = append(code, opReturn, opEnd)
	code = append(appendInt(append(code, opLocalGet, bucket, opI32Const), bucketsPerFunc*bucketSize), opI32Add, opLocalSet, end)
	code = append(code, opLoop, blockEmpty)
	store(bucket, i)
	add(bucket, bucketSize)
	code = append(code, opLocalGet, bucket, opLocalGet, end, opI32LtU, opBrIf, 0, opEnd)
	add(i, 1)
	add(number, 1)
	code = append(code, opBr, 0, opEnd, opEnd)
	return append(appendUint(nil, uint64(len(code))), code...)
}

// early is the memory that the first part has.
type early struct {
	*layout
	whole, memory []byte
	masks         []int // addresses of what its tables of functions refer to elsewhere
}

// keep copies what the first part needs.
func (e *early) keep(address, size int) {
	copy(e.memory[address:][:size], e.whole[address:])
}

// withhold takes the tables of functions out of memory that do not belong to the first part, and the data that only they use. It returns the data with
// which the rest brings them. A function's tables are only needed when it is on a stack. That can be before it is called when a goroutine is to begin
// with it, so that those of functions stay whose address the first part can take and that have no arguments and no results: the compiler has a
// goroutine begin with no others.
func (l *layout) withhold(p *program, symbols []symbol) [][]byte {
	e := &early{layout: l, whole: slices.Clone(l.memory), memory: l.memory}
	clear(e.memory[l.pcdata:l.end])
	e.keep(l.funcs, l.firstRecord-l.funcs)
	for i := range l.records {
		if p.first[i] {
			e.keepTables(i)
		}
	}
	n := needed(l, e.whole, symbols, p.first)
	taken := p.taken(e.whole, n.kept)
	for i, at := range l.records {
		f := e.whole[at:]
		if p.first[i] {
			continue
		}
		if taken[i] && u32(f[funcArgs:]) == 0 {
			e.keepTables(i)
			continue
		}
		// What a look at a function as such reads: the sizes, its kind, and that it has no data.
		e.keep(at+funcPCData, 4)
		e.keep(at+funcID, funcSize-funcID)
		for _, word := range steps(at+funcSize+4*int(u32(f[funcPCData:])), int(f[funcFuncData])) {
			put32(e.memory[word:], noFuncData)
		}
	}
	n.keepMasks(e.masks)
	for i, is := range n.kept {
		if !is && (i < l.pcdata || i >= l.end) {
			e.memory[i] = 0
		}
	}
	return e.differences(n.kept)
}

// keepTables keeps the tables of a function.
func (e *early) keepTables(function int) {
	at := e.records[function]
	e.keep(at, recordSize(e.whole[at:]))
	e.keepData(e.whole[at:])
}

// keepData keeps the pcdata and funcdata of a function.
func (e *early) keepData(f []byte) {
	t := tables{pcdata: compacted{table: e.whole[e.pcdata:e.funcs]}}
	pcdata := int(u32(f[funcPCData:]))
	for _, at := range append([]int{funcPCSP}, steps(funcSize, pcdata)...) {
		table, _ := t.read(u32(f[at:]))
		e.keep(e.pcdata+int(u32(f[at:])), len(table))
	}
	for i, at := range steps(funcSize+4*pcdata, int(f[funcFuncData])) {
		if offset := u32(f[at:]); offset != noFuncData {
			at := e.funcdata + int(offset)
			e.keep(at, e.funcdataSize(i, e.whole[at:]))
		}
	}
}

// steps are the places of words.
func steps(at, n int) (list []int) {
	for i := range n {
		list = append(list, at+4*i)
	}
	return list
}

// funcdataSize is the size of a function's data of a kind.
func (e *early) funcdataSize(kind int, data []byte) int {
	switch kind {
	case argsMaps, localsMaps: // runtime.stackmap
		return 8 + int(u32(data))*((int(u32(data[4:]))+7)/8)
	case stackObjects: // their number, and runtime.stackObjectRecord, whose last word is where a map is in another table
		count := int(binary.LittleEndian.Uint64(data))
		for i := range count {
			maps := e.rodata + int(u32(data[8+16*i+12:]))
			check(maps < e.pcdata || maps >= e.end)
			e.masks = append(e.masks, maps)
		}
		return 8 + 16*count
	case openDefers: // two numbers
		_, n := binary.Uvarint(data)
		_, m := binary.Uvarint(data[n:])
		return n + m
	case wrapInfo:
		return 4
	}
	check(false)
	return 0
}

// differences are segments with what the first part does not have. They leave what the program may have changed meanwhile.
func (e *early) differences(kept []bool) (list [][]byte) {
	const gap = 48 // bytes that cost less than another segment
	for at := 0; at < len(e.whole); at++ {
		if e.whole[at] == e.memory[at] {
			continue
		}
		end := at + 1
		for i := end; i < min(end+gap, len(e.whole)) && (i < e.end || !kept[i]); i++ {
			if e.whole[i] != e.memory[i] {
				end = i + 1
			}
		}
		list = append(list, segment(at, e.whole[at:end]))
		at = end
	}
	return list
}

// taken are the functions whose address is in memory that is kept or in the code of others in the first part, as that of an entry.
func (p *program) taken(memory []byte, kept []bool) map[int]bool {
	set := map[int]bool{}
	note := func(pc uint64, but int) {
		if f := int(pc>>16) - tableStart; pc&0xffff == 0 && f >= 0 && f < len(p.bodies) && f != but {
			set[f] = true
		}
	}
	for at := 0; at+8 <= len(memory); at += 8 {
		if kept[at] {
			note(binary.LittleEndian.Uint64(memory[at:]), -1)
		}
	}
	for f, body := range p.bodies {
		if !p.first[f] {
			continue
		}
		for _, in := range p.instructions(body) {
			if in.op == opI64Const { // a return address at the function's entry is its own
				pc, _ := binary.Uvarint(in.bytes[1:])
				note(pc, f)
			}
		}
	}
	return set
}
