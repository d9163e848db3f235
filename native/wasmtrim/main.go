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

// trim returns a smaller program that does the same. Whatever does not look as expected ends in a panic: of [check], or because it
// leads outside of the program.
func trim(program []byte, shaders ...[]byte) (small []byte, err error) {
	defer func() {
		if recover() != nil {
			small, err = nil, errProgram
		}
	}()
	m := parseModule(program)
	trimTables(m.memory)
	for _, text := range shaders {
		blankComments(m.memory, text)
	}
	return m.encode(), nil
}

// comment matches the comments of shaders but the marks of package shaders, such as "// @param".
var comment = regexp.MustCompile(`// ?[^ @\n].*`)

// blankComments overwrites the comments of a shader that is in a program's memory with spaces, which compress to nothing.
func blankComments(memory, text []byte) {
	if at := bytes.Index(memory, text); at >= 0 {
		for _, found := range comment.FindAllIndex(text, -1) {
			copy(memory[at+found[0]:], bytes.Repeat([]byte{' '}, found[1]-found[0]))
		}
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
