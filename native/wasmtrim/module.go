// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
)

const (
	moduleHeader = "\x00asm\x01\x00\x00\x00"

	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11

	maxMemory = 1 << 28 // of a program at its start
)

// section is a part of a WebAssembly module.
type section struct {
	kind    byte
	content []byte
}

// module is a WebAssembly module with its data as the memory that it makes up. The section of data is empty meanwhile.
type module struct {
	sections []section
	memory   []byte
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

// text reads bytes after their number.
func (r *reader) text() []byte { return r.take(r.uint()) }

// expect reads bytes that are known.
func (r *reader) expect(want ...byte) { check(bytes.Equal(r.take(uint64(len(want))), want)) }

// vector reads as many elements as a number says, and wants the end behind them.
func (r *reader) vector(element func()) {
	for n := r.uint(); n > 0; n-- {
		element()
	}
	check(len(*r) == 0)
}

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// appendInt appends a number that is not negative as signed LEB128.
func appendInt(b []byte, v uint64) []byte {
	b = appendUint(b, v)
	if last := len(b) - 1; b[last]&0x40 != 0 { // would be the sign
		b[last] |= 0x80
		b = append(b, 0)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(appendUint(b, uint64(len(text))), text...)
}

// vector encodes elements with their number before them.
func vector(elements [][]byte) []byte {
	return append(appendUint(nil, uint64(len(elements))), bytes.Join(elements, nil)...)
}

func parseModule(program []byte) *module {
	check(bytes.HasPrefix(program, []byte(moduleHeader)))
	m := &module{}
	for r := reader(program[len(moduleHeader):]); len(r) > 0; {
		kind, content := r.byte(), r.text()
		if kind == sectionData {
			check(m.memory == nil)
			m.memory, content = parseData(content), nil
		}
		m.sections = append(m.sections, section{kind, content})
	}
	check(m.memory != nil)
	return m
}

// parseData lays out the memory that the data segments make up.
func parseData(r reader) []byte {
	var memory []byte
	r.vector(func() {
		r.expect(0, opI32Const)
		at := r.uint()
		r.expect(opEnd)
		data := r.text()
		end := at + uint64(len(data))
		check(at <= maxMemory && end <= maxMemory)
		if end > uint64(len(memory)) {
			memory = append(memory, make([]byte, end-uint64(len(memory)))...)
		}
		copy(memory[at:], data)
	})
	return memory
}

// shortGap is how many zeros in a row cost less in a segment than another segment does, once the program is compressed: zeros then
// cost next to nothing, but a segment's address and length are numbers like no others. With 16 instead of 256 the program of
// the npm package had 50,000 segments, and took 80 KB more.
const shortGap = 256

// segments encodes what is in memory as data, leaving out zeros: memory begins with them.
func segments(memory []byte) []byte {
	var list [][]byte
	gap := make([]byte, shortGap)
	for at := zeros(memory); at < len(memory); {
		size := bytes.Index(memory[at:], gap)
		if size < 0 {
			size = len(bytes.TrimRight(memory[at:], "\x00"))
		}
		list = append(list, segment(at, memory[at:at+size]))
		at += size + zeros(memory[at+size:])
	}
	return vector(list)
}

func segment(at int, data []byte) []byte {
	b := append(appendInt([]byte{0, opI32Const}, uint64(at)), opEnd)
	return append(appendUint(b, uint64(len(data))), data...)
}

// encode writes the module.
func (m *module) encode() []byte {
	out := []byte(moduleHeader)
	for _, s := range m.sections {
		content := s.content
		if s.kind == sectionData && content == nil {
			content = segments(m.memory)
		}
		out = append(appendUint(append(out, s.kind), uint64(len(content))), content...)
	}
	return out
}

// zeros counts the zeros at the beginning.
func zeros(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "\x00")) }
