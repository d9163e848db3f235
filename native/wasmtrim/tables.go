// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// The tables mirror runtime/symtab.go, runtime/runtime2.go and internal/abi/symtab.go of Go 1.26.

// tablesHeader begins the tables: magic of Go 1.20 and later, padding, code in units of one byte, pointers of 8.
var tablesHeader = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

// Offsets of the fields of runtime._func. Its pcdata and funcdata follow it.
const (
	funcName      = 4
	funcArgs      = 8 // bytes of arguments and results
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
	argsMaps       = 0
	localsMaps     = 1
	stackObjects   = 2
	openDefers     = 4
	wrapInfo       = 7
	moduleFindFunc = 1 + 3*6
	moduleNames    = 1 // words of runtime.moduledata: where it has the table of names
	moduleFuncData = 1 + 3*6 + 1 + 2 + 18
)

// tables are parts of a program's memory. Offsets count from their beginnings.
type tables struct {
	funcs, funcdata []byte
	names, pcdata   compacted
}

// compacted is a table of pieces, of which those that are used are moved together.
type compacted struct {
	table, kept []byte            // what it is, and what it is to be
	moved       map[uint32]uint32 // offsets in kept by those in table
}

// newCompacted begins with offset 0, which stays what it is: nothing.
func newCompacted(table []byte) compacted {
	check(len(table) > 0)
	return compacted{table, []byte{0}, map[uint32]uint32{0: 0}}
}

// move keeps a piece and returns its new offset.
func (c *compacted) move(offset uint32, piece []byte) uint32 {
	to, ok := c.moved[offset]
	if !ok {
		to = uint32(len(c.kept))
		c.kept = append(c.kept, piece...)
		c.moved[offset] = to
	}
	return to
}

// replace writes what was kept in place of the table.
func (c *compacted) replace() { clear(c.table[copy(c.table, c.kept):]) }

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

// layout is where a program's tables of functions are in its memory.
type layout struct {
	memory                  []byte
	list                    []string   // names of the functions, in their order
	inlined                 [][]string // names of what is inlined in them
	pcdata, funcs, funcdata int        // addresses
	end                     int        // of funcdata
	findFunc, rodata        int
	firstRecord             int   // the first function's table
	records                 []int // those of all
}

// trimTables takes out of a program's memory what only tracebacks need. A name that others had before gets a number in the list of names.
func trimTables(memory []byte) *layout {
	word := func(at, i int) int { return int(binary.LittleEndian.Uint64(memory[at+8*i:])) }
	header := only(memory, tablesHeader)
	count := word(header, 1)
	table := func(i int) int { return header + word(header, 4+i) }
	names, units, pcdata, funcs := table(0), table(1), table(3), table(4) // behind the units are the files
	check(header < names)
	// runtime.firstmoduledata begins with the addresses of the header and of the names.
	pattern := binary.LittleEndian.AppendUint64(nil, uint64(header))
	module := only(memory, binary.LittleEndian.AppendUint64(pattern, uint64(names)))
	funcdata, end := word(module, moduleFuncData), word(module, moduleFuncData+1)
	check(word(module, moduleNames+1) == units-names && count >= 0)
	l := &layout{memory: memory, pcdata: pcdata, funcs: funcs, funcdata: funcdata, findFunc: word(module, moduleFindFunc), rodata: word(module, moduleFuncData-1)}
	l.end = min(end, max(l.findFunc, funcdata))
	t := &tables{
		names: newCompacted(memory[names:units]), pcdata: newCompacted(memory[pcdata:funcs]),
		funcs: memory[funcs:funcdata], funcdata: memory[funcdata:end],
	}
	seen := map[string]int{}
	for i := range count {
		f := t.funcs[u32(t.funcs[8*i+4:]):]
		name := t.name(u32(f[funcName:]))
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s#%d", name, seen[name])
		}
		l.list = append(l.list, name)
		l.inlined = append(l.inlined, t.trimFunc(f))
	}
	t.names.replace()
	t.pcdata.replace()
	clear(memory[units:pcdata])
	return l
}

// only returns where a pattern is that memory has once.
func only(memory, pattern []byte) int {
	at := bytes.Index(memory, pattern)
	check(at >= 0 && !bytes.Contains(memory[at+1:], pattern))
	return at
}

// name returns the name at an offset.
func (t *tables) name(offset uint32) string {
	name, _, _ := bytes.Cut(t.names.table[offset:], []byte{0})
	return string(name)
}

// trimFunc takes a function's references to what goes, and moves what stays. It returns the names of what is inlined.
func (t *tables) trimFunc(f []byte) (inlined []string) {
	pcdata, funcdata := int(u32(f[funcPCData:])), int(f[funcFuncData])
	check(pcdata <= 16)
	first := f[funcSize+4*pcdata:] // of the funcdata
	if pcdata > pcdataInlTree && funcdata > inlTree {
		inlined = t.dropInlining(f[funcSize+4*pcdataInlTree:], first[4*inlTree:])
	}
	t.keep(f[funcPCSP:])
	for i := range pcdata {
		at := f[funcSize+4*i:]
		if i == pcdataUnsafe || i == pcdataInlTree || i == pcdataArgLive {
			put32(at, 0)
		} else {
			t.keep(at)
		}
	}
	for _, i := range []int{argInfo, argLive} {
		if i < funcdata {
			put32(first[4*i:], noFuncData)
		}
	}
	for _, field := range []int{funcPCFile, funcPCLine, funcUnit, funcStartLine} {
		put32(f[field:], 0)
	}
	// The runtime takes some names apart when a method is called on a nil pointer.
	name := t.names.table[u32(f[funcName:]):]
	check(len(name) > 0)
	to := uint32(0)
	if f[funcID] == idWrapper {
		check(len(name) < len(t.names.table))
		to = t.names.move(u32(f[funcName:]), name[:bytes.IndexByte(name, 0)+1])
	}
	put32(f[funcName:], to)
	return inlined
}

// keep moves the table of pcdata that is referred to.
func (t *tables) keep(reference []byte) {
	table, _ := t.read(u32(reference))
	put32(reference, t.pcdata.move(u32(reference), table))
}

// read returns a table of pcdata and the largest value in it. It consists of pairs of how much a value and the program counter
// change, until a value that does not change. At offset 0 there is none.
func (t *tables) read(offset uint32) (table []byte, largest int64) {
	largest = -1
	if offset == 0 {
		return nil, largest
	}
	table = t.pcdata.table[offset:]
	value, at := int64(-1), 0
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

// dropInlining clears a function's tree of inlined calls, and returns the names of the functions. The largest value of the pcdata that leads there tells its size.
func (t *tables) dropInlining(pcdata, funcdata []byte) (names []string) {
	offset := u32(funcdata)
	if offset == noFuncData {
		return nil
	}
	_, last := t.read(u32(pcdata))
	put32(funcdata, noFuncData)
	check(last < maxInlined)
	tree := t.funcdata[offset:][:inlinedSize*(last+1)]
	for entry := range slices.Chunk(tree, inlinedSize) {
		names = append(names, t.name(u32(entry[inlinedName:])))
	}
	clear(tree)
	return names
}
