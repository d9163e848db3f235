// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errTables = errors.New("the tables of functions do not look as those of Go 1.26 do")

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
func trimTables(memory []byte) error {
	t, err := findTables(memory)
	if err != nil {
		return err
	}
	for i := range t.count {
		if err := t.trimFunc(t.funcs + uint64(t.u32(t.funcs+8*i+4))); err != nil {
			return err
		}
	}
	t.names.replace(memory)
	t.pcdata.replace(memory)
	clear(memory[t.units.from:t.units.to])
	return nil
}

func findTables(memory []byte) (*tables, error) {
	header := bytes.Index(memory, tablesHeader)
	if header < 0 || bytes.Contains(memory[header+1:], tablesHeader) {
		return nil, errTables
	}
	at := uint64(header)
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
	size := uint64(len(memory))
	if at >= t.names.from || t.names.from >= t.names.to || t.units.from >= t.units.to || t.pcdata.from >= t.pcdata.to ||
		t.pcdata.to >= size || t.count >= size/funcSize || t.funcs+8*t.count >= size {
		return nil, errTables
	}
	return t, t.findModule(at)
}

// findModule finds runtime.firstmoduledata, which begins with the addresses of the header and of the names.
func (t *tables) findModule(header uint64) error {
	pattern := binary.LittleEndian.AppendUint64(nil, header)
	pattern = binary.LittleEndian.AppendUint64(pattern, t.names.from)
	at := bytes.Index(t.memory, pattern)
	if at < 0 || bytes.Contains(t.memory[at+1:], pattern) {
		return errTables
	}
	t.funcdata = t.u64(uint64(at) + 8*moduleFuncData)
	end := t.u64(uint64(at) + 8*(moduleFuncData+1)) // of all tables
	if t.u64(uint64(at)+8*(moduleNames+1)) != t.names.len() || t.funcdata <= t.funcs || t.funcdata >= end || end > uint64(len(t.memory)) {
		return errTables
	}
	return nil
}

// u32 and u64 read numbers; what is not there reads as 0, which no check lets pass.
func (t *tables) u32(at uint64) uint32 {
	if at > uint64(len(t.memory))-4 {
		return 0
	}
	return binary.LittleEndian.Uint32(t.memory[at:])
}

func (t *tables) u64(at uint64) uint64 {
	return uint64(t.u32(at)) | uint64(t.u32(at+4))<<32
}

func (t *tables) put32(at uint64, v uint32) { binary.LittleEndian.PutUint32(t.memory[at:], v) }

// trimFunc takes a function's references to what goes, and moves what stays.
func (t *tables) trimFunc(f uint64) error {
	if f+funcSize > uint64(len(t.memory)) {
		return errTables
	}
	pcdata, funcdata := uint64(t.u32(f+funcPCData)), uint64(t.memory[f+funcFuncData])
	first := f + funcSize + 4*pcdata // of the funcdata
	if pcdata > 16 || first+4*funcdata > uint64(len(t.memory)) {
		return errTables
	}
	if pcdata > pcdataInlTree && funcdata > inlTree {
		if err := t.dropInlining(f+funcSize+4*pcdataInlTree, first+4*inlTree); err != nil {
			return err
		}
	}
	if err := t.keep(f + funcPCSP); err != nil {
		return err
	}
	for i := range pcdata {
		at := f + funcSize + 4*i
		if i == pcdataUnsafe || i == pcdataInlTree || i == pcdataArgLive {
			t.put32(at, 0)
		} else if err := t.keep(at); err != nil {
			return err
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
	return t.trimName(f)
}

// trimName gives a function the empty name, unless it is one of those whose name the runtime takes apart when a method
// is called on a nil pointer.
func (t *tables) trimName(f uint64) error {
	offset := t.u32(f + funcName)
	if uint64(offset) >= t.names.len() {
		return errTables
	}
	if t.memory[f+funcID] != idWrapper {
		t.put32(f+funcName, 0)
		return nil
	}
	name := t.memory[t.names.from+uint64(offset) : t.names.to]
	n := bytes.IndexByte(name, 0)
	if n < 0 || offset == 0 {
		return errTables
	}
	t.put32(f+funcName, t.names.move(offset, name[:n+1]))
	return nil
}

// keep moves the table of pcdata that is referred to at an address.
func (t *tables) keep(at uint64) error {
	table, _, err := t.read(t.u32(at))
	if err == nil {
		t.put32(at, t.pcdata.move(t.u32(at), table))
	}
	return err
}

// read returns a table of pcdata and the largest value in it. It consists of pairs of how much a value and the program counter
// change, until a value that does not change. At offset 0 there is none.
func (t *tables) read(offset uint32) (table []byte, largest int64, err error) {
	if offset == 0 {
		return nil, -1, nil
	}
	if uint64(offset) >= t.pcdata.len() {
		return nil, 0, errTables
	}
	table = t.memory[t.pcdata.from+uint64(offset) : t.pcdata.to]
	value, at := int64(-1), 0
	largest = -1
	for first := true; ; first = false {
		change, n := binary.Varint(table[at:])
		if n <= 0 {
			return nil, 0, errTables
		}
		at += n
		if change == 0 && !first {
			return table[:at], largest, nil
		}
		value += change
		largest = max(largest, value)
		if _, n = binary.Uvarint(table[at:]); n <= 0 {
			return nil, 0, errTables
		}
		at += n
	}
}

// dropInlining clears a function's tree of inlined calls. The largest value of the pcdata that leads there tells its size.
func (t *tables) dropInlining(pcdata, funcdata uint64) error {
	_, last, err := t.read(t.u32(pcdata))
	offset := t.u32(funcdata)
	if err != nil || offset == noFuncData {
		return err
	}
	t.put32(funcdata, noFuncData)
	tree := t.funcdata + uint64(offset)
	size := inlinedSize * uint64(last+1)
	if last >= maxInlined || tree+size > uint64(len(t.memory)) {
		return errTables
	}
	for at := tree; at < tree+size; at += inlinedSize {
		if uint64(t.u32(at+inlinedName)) >= t.names.len() {
			return errTables
		}
	}
	clear(t.memory[tree : tree+size])
	return nil
}
