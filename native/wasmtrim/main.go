// SPDX-License-Identifier: Apache-2.0

// Command wasmtrim makes a WebAssembly program of Go's smaller by the tables that the Go runtime only prints tracebacks
// with: file names, line numbers, function names, what was inlined where, and where arguments lie. Compressed, a program
// loses about a sixth. Panics still print their message, and each function of a traceback as "???". Garbage collection,
// recover and stack growth use other tables, which stay. Comments of the shaders that are named go too.
//
//	wasmtrim program.wasm [shader.wgsl ...]   # in place
//
// It knows the layout of one version of Go's tables, checks all that it relies on, and changes nothing otherwise.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: wasmtrim program.wasm [shader.wgsl ...]")
		os.Exit(2)
	}
	if err := trimFile(os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, "wasmtrim:", err)
		os.Exit(1)
	}
}

func trimFile(path string, shaders ...string) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	texts := make([][]byte, len(shaders))
	for i, shader := range shaders {
		if texts[i], err = os.ReadFile(shader); err != nil {
			return err
		}
	}
	small, err := trim(program, texts...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, small, 0o644)
}

// trim returns a smaller program that does the same, or an error for a program whose tables are not as expected. The functions that it
// calls panic for such a program: by [check], or by an index outside of the program.
func trim(program []byte, shaders ...[]byte) (small []byte, err error) {
	defer func() {
		if recover() != nil {
			small, err = nil, errProgram
		}
	}()
	m := parseModule(program)
	trimTables(m.memory)
	for _, text := range shaders {
		shorten(m.memory, text)
	}
	return m.encode(), nil
}

// comment matches comments of shaders, except for the marks of package shaders such as "// @param". A match begins with the end of the line
// before, so that no empty line is left: at empty lines package fuse divides texts.
var comment = regexp.MustCompile(`\n? *// ?[^ @\n].*`)

// shorten removes the comments of a shader's text from a program's memory, and fills its end with spaces, which compress to almost nothing.
// It does nothing if the program does not have the shader.
func shorten(memory, text []byte) {
	if at := bytes.Index(memory, text); at >= 0 {
		short := comment.ReplaceAll(text, nil)
		copy(memory[at:], append(short, bytes.Repeat([]byte{' '}, len(text)-len(short))...))
	}
}

var errProgram = errors.New("not a WebAssembly program of Go's, or its tables of functions do not look as those of Go 1.26 do")

// check panics unless all is as expected.
func check(ok bool) {
	if !ok {
		panic(errProgram)
	}
}

const (
	moduleHeader = "\x00asm\x01\x00\x00\x00"

	sectionData = 11

	opI32Const = 0x41
	opEnd      = 0x0b

	maxMemory = 1 << 28 // of a program at its start
)

// module is a WebAssembly module with its data as the memory that it makes up.
type module struct {
	before, after []byte // the sections before and after the data
	memory        []byte
}

// reader reads a module.
type reader []byte

func (r *reader) take(n uint64) []byte {
	head := (*r)[:n]
	*r = (*r)[n:]
	return head
}

func (r *reader) byte() byte { return r.take(1)[0] }

// uint reads an unsigned LEB128 number. A signed one that is not negative has the same bytes.
func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(*r)
	r.take(uint64(n))
	return v
}

func parseModule(program []byte) *module {
	check(bytes.HasPrefix(program, []byte(moduleHeader)))
	m := &module{}
	for r := reader(program[len(moduleHeader):]); len(r) > 0; {
		at := len(program) - len(r)
		kind, content := r.byte(), reader(r.take(r.uint()))
		if kind == sectionData {
			check(m.memory == nil)
			m.before, m.after, m.memory = program[:at], r, parseData(content)
		}
	}
	check(m.memory != nil)
	return m
}

// parseData lays out the memory that the data segments make up.
func parseData(r reader) []byte {
	var memory []byte
	for n := r.uint(); n > 0; n-- {
		check(bytes.Equal(r.take(2), []byte{0, opI32Const}))
		at := r.uint()
		check(r.byte() == opEnd)
		data := r.take(r.uint())
		end := at + uint64(len(data))
		check(at <= maxMemory && end <= maxMemory)
		if end > uint64(len(memory)) {
			memory = append(memory, make([]byte, end-uint64(len(memory)))...)
		}
		copy(memory[at:], data)
	}
	check(len(r) == 0)
	return memory
}

// shortGap is how many zeros in a row cost less in a segment than another segment does, once the program is compressed: zeros then
// cost next to nothing, but a segment's address and length are numbers like no others. With 16 instead of 256 the program of
// the npm package had 50,000 segments, and took 80 KB more.
const shortGap = 256

// encode writes the module, leaving out zeros: memory begins with them.
func (m *module) encode() []byte {
	var segments []byte
	count := uint64(0)
	gap := make([]byte, shortGap)
	for at := zeros(m.memory); at < len(m.memory); count++ {
		size := bytes.Index(m.memory[at:], gap)
		if size < 0 {
			size = len(bytes.TrimRight(m.memory[at:], "\x00"))
		}
		segments = append(segments, 0, opI32Const)
		segments = binary.AppendUvarint(segments, uint64(at))
		if last := len(segments) - 1; segments[last]&0x40 != 0 { // would be the sign
			segments[last] |= 0x80
			segments = append(segments, 0)
		}
		segments = append(segments, opEnd)
		segments = binary.AppendUvarint(segments, uint64(size))
		segments = append(segments, m.memory[at:at+size]...)
		at += size + zeros(m.memory[at+size:])
	}
	section := append(binary.AppendUvarint(nil, count), segments...)
	out := append(bytes.Clone(m.before), sectionData)
	out = binary.AppendUvarint(out, uint64(len(section)))
	return append(append(out, section...), m.after...)
}

// zeros counts the zeros at the beginning.
func zeros(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "\x00")) }

// The tables mirror runtime/symtab.go, runtime/runtime2.go and internal/abi/symtab.go of Go 1.26.

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

// trimTables takes out of a program's memory what only tracebacks need.
func trimTables(memory []byte) {
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
	t := &tables{
		names: newCompacted(memory[names:units]), pcdata: newCompacted(memory[pcdata:funcs]),
		funcs: memory[funcs:funcdata], funcdata: memory[funcdata:end],
	}
	for i := range count {
		t.trimFunc(t.funcs[u32(t.funcs[8*i+4:]):])
	}
	t.names.replace()
	t.pcdata.replace()
	clear(memory[units:pcdata])
}

// only returns where a pattern is that memory has once.
func only(memory, pattern []byte) int {
	at := bytes.Index(memory, pattern)
	check(at >= 0 && !bytes.Contains(memory[at+1:], pattern))
	return at
}

// trimFunc takes a function's references to what goes, and moves what stays.
func (t *tables) trimFunc(f []byte) {
	pcdata, funcdata := int(u32(f[funcPCData:])), int(f[funcFuncData])
	check(pcdata <= 16)
	first := f[funcSize+4*pcdata:] // of the funcdata
	if pcdata > pcdataInlTree && funcdata > inlTree {
		t.dropInlining(f[funcSize+4*pcdataInlTree:], first[4*inlTree:])
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

// dropInlining clears a function's tree of inlined calls. The largest value of the pcdata that leads there tells its size.
func (t *tables) dropInlining(pcdata, funcdata []byte) {
	offset := u32(funcdata)
	if offset == noFuncData {
		return
	}
	_, last := t.read(u32(pcdata))
	put32(funcdata, noFuncData)
	check(last < maxInlined)
	tree := t.funcdata[offset:][:inlinedSize*(last+1)]
	for entry := range slices.Chunk(tree, inlinedSize) {
		check(int(u32(entry[inlinedName:])) < len(t.names.table))
	}
	clear(tree)
}
