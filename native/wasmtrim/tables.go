// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// What follows mirrors runtime/symtab.go, runtime/runtime2.go and internal/abi/symtab.go of Go 1.26.

// tablesHeader begins the tables: magic of Go 1.20 and later, padding, code in units of one byte, pointers of 8.
var tablesHeader = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

// Offsets of the fields of runtime._func. Its pcdata and funcdata follow it.
const (
	funcName      = 4
	funcPCSP      = 16
	funcPCFile    = 20
	funcPCLine    = 24
	funcPCData    = 28 // how many
	funcUnit      = 32
	funcStartLine = 36
	funcID        = 40
	funcFuncData  = 43 // how many
	funcSize      = 44
)

// Numbers of pcdata and funcdata that only tracebacks use, and of functions whose name the runtime itself reads.
const (
	pcdataUnsafe   = 0 // where a signal may not preempt, and there are no signals
	pcdataInlTree  = 2
	pcdataArgLive  = 3
	inlTree        = 3
	argInfo        = 5
	argLive        = 6
	idWrapper      = 23
	inlinedSize    = 16 // of an entry of an inlining tree
	inlinedName    = 4  // where it has the offset of its name
	maxInlined     = 1 << 20
	noFuncData     = ^uint32(0)
	moduleNames    = 1 // words of runtime.moduledata: where it has the table of names
	moduleFuncData = 1 + 3*6 + 1 + 2 + 18
)

// tables is memory with the tables of functions in it. Addresses are those of the memory, except where they are called
// offsets.
type tables struct {
	memory        []byte
	names, pcdata compacted
	units         span   // and, up to pcdata, the files
	funcs         uint64 // the table of functions, and what its offsets count from
	count         uint64
	funcdata      uint64 // what offsets of funcdata count from
}

type span struct{ from, to uint64 }

func (s span) len() uint64 { return s.to - s.from }

// compacted is a table of pieces, of which those that are used are moved together.
type compacted struct {
	span
	kept  []byte            // what the table is to be
	moved map[uint32]uint32 // offsets in it by former offsets
}

// move keeps a piece and returns its new offset. Offset 0 stays what it is: nothing.
func (c *compacted) move(offset uint32, piece []byte) uint32 {
	to, ok := c.moved[offset]
	if !ok {
		to = uint32(len(c.kept))
		c.kept = append(c.kept, piece...)
		c.moved[offset] = to
	}
	return to
}

// replace writes the table that was kept in place of the former one.
func (c *compacted) replace(memory []byte) {
	clear(memory[c.from:c.to])
	copy(memory[c.from:], c.kept)
}

// trimTables takes out of a program's memory what only tracebacks need.
func trimTables(memory []byte) {
	t := findTables(memory)
	for i := range t.count {
		t.trimFunc(t.funcs + uint64(t.u32(t.funcs+8*i+4)))
	}
	t.names.replace(memory)
	t.pcdata.replace(memory)
	clear(memory[t.units.from:t.units.to])
}

func findTables(memory []byte) *tables {
	at := only(memory, tablesHeader)
	t := &tables{memory: memory}
	t.count = t.u64(at + 8)
	offset := func(i uint64) uint64 { return at + t.u64(at+8*(4+i)) }
	table := func(from, to uint64) compacted {
		return compacted{span{from, to}, []byte{0}, map[uint32]uint32{0: 0}}
	}
	t.names = table(offset(0), offset(1))
	t.units = span{offset(1), offset(3)}
	t.pcdata = table(offset(3), offset(4))
	t.funcs = offset(4)
	check(at < t.names.from && t.names.from < t.names.to && t.units.from < t.units.to && t.pcdata.from < t.pcdata.to)
	t.findModule(at)
	return t
}

// only returns where a pattern is that memory has once.
func only(memory, pattern []byte) uint64 {
	at := bytes.Index(memory, pattern)
	check(at >= 0 && !bytes.Contains(memory[at+1:], pattern))
	return uint64(at)
}

// findModule finds runtime.firstmoduledata, which begins with the addresses of the header and of the names.
func (t *tables) findModule(header uint64) {
	pattern := binary.LittleEndian.AppendUint64(nil, header)
	at := only(t.memory, binary.LittleEndian.AppendUint64(pattern, t.names.from))
	t.funcdata = t.u64(at + 8*moduleFuncData)
	end := t.u64(at + 8*(moduleFuncData+1)) // of all tables
	check(t.u64(at+8*(moduleNames+1)) == t.names.len() && t.funcs < t.funcdata && t.funcdata < end && end <= uint64(len(t.memory)))
}

func (t *tables) u32(at uint64) uint32 { return binary.LittleEndian.Uint32(t.memory[at:]) }

func (t *tables) u64(at uint64) uint64 { return binary.LittleEndian.Uint64(t.memory[at:]) }

func (t *tables) put32(at uint64, v uint32) { binary.LittleEndian.PutUint32(t.memory[at:], v) }

// trimFunc takes a function's references to what goes, and moves what stays.
func (t *tables) trimFunc(f uint64) {
	pcdata, funcdata := uint64(t.u32(f+funcPCData)), uint64(t.memory[f+funcFuncData])
	check(pcdata <= 16)
	first := f + funcSize + 4*pcdata // of the funcdata
	if pcdata > pcdataInlTree && funcdata > inlTree {
		t.dropInlining(f+funcSize+4*pcdataInlTree, first+4*inlTree)
	}
	t.keep(f + funcPCSP)
	for i := range pcdata {
		at := f + funcSize + 4*i
		if i == pcdataUnsafe || i == pcdataInlTree || i == pcdataArgLive {
			t.put32(at, 0)
		} else {
			t.keep(at)
		}
	}
	for _, i := range []uint64{argInfo, argLive} {
		if i < funcdata {
			t.put32(first+4*i, noFuncData)
		}
	}
	for _, field := range []uint64{funcPCFile, funcPCLine, funcUnit, funcStartLine} {
		t.put32(f+field, 0)
	}
	t.trimName(f)
}

// trimName gives a function the empty name, unless it is one of those whose name the runtime takes apart when a method
// is called on a nil pointer.
func (t *tables) trimName(f uint64) {
	offset := t.u32(f + funcName)
	check(uint64(offset) < t.names.len())
	if t.memory[f+funcID] != idWrapper {
		t.put32(f+funcName, 0)
		return
	}
	name := t.memory[t.names.from+uint64(offset) : t.names.to]
	check(offset != 0)
	t.put32(f+funcName, t.names.move(offset, name[:bytes.IndexByte(name, 0)+1]))
}

// keep moves the table of pcdata that is referred to at an address.
func (t *tables) keep(at uint64) {
	table, _ := t.read(t.u32(at))
	t.put32(at, t.pcdata.move(t.u32(at), table))
}

// read returns a table of pcdata and the largest value in it. It consists of pairs of how much a value and the program counter
// change, until a value that does not change. At offset 0 there is none.
func (t *tables) read(offset uint32) (table []byte, largest int64) {
	if offset == 0 {
		return nil, -1
	}
	table = t.memory[t.pcdata.from+uint64(offset) : t.pcdata.to]
	value, at := int64(-1), 0
	largest = -1
	for {
		change, n := binary.Varint(table[at:])
		check(n > 0)
		if at += n; change == 0 && at > n {
			return table[:at], largest
		}
		value += change
		largest = max(largest, value)
		_, n = binary.Uvarint(table[at:])
		check(n > 0)
		at += n
	}
}

// dropInlining clears a function's tree of inlined calls. The largest value of the pcdata that leads there tells its size.
func (t *tables) dropInlining(pcdata, funcdata uint64) {
	offset := t.u32(funcdata)
	if offset == noFuncData {
		return
	}
	_, last := t.read(t.u32(pcdata))
	t.put32(funcdata, noFuncData)
	check(last < maxInlined)
	tree := t.memory[t.funcdata+uint64(offset):][:inlinedSize*(last+1)]
	for entry := range slices.Chunk(tree, inlinedSize) {
		check(uint64(binary.LittleEndian.Uint32(entry[inlinedName:])) < t.names.len())
	}
	clear(tree)
}
