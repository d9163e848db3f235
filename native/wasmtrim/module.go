// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errModule = errors.New("not a WebAssembly module of Go's")

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

// reader reads a module. Reading beyond the end sets err.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.b)) {
		r.err = errModule
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

// skip reads the byte that has to be there.
func (r *reader) skip(want byte) {
	if b := r.take(1); b != nil && b[0] != want {
		r.err = errModule
	}
}

// uint reads an unsigned LEB128 number. A signed one that is not negative has the same bytes.
func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err = errModule
	}
	r.take(uint64(max(n, 0)))
	return v
}

func parseModule(program []byte) (*module, error) {
	if !bytes.HasPrefix(program, []byte(moduleHeader)) {
		return nil, errModule
	}
	m := &module{}
	r := &reader{b: program[len(moduleHeader):]}
	for len(r.b) > 0 && r.err == nil {
		at := len(program) - len(r.b)
		kind := r.b[0]
		r.skip(kind)
		content := r.take(r.uint())
		if kind != sectionData || r.err != nil {
			continue
		}
		if m.memory != nil {
			return nil, errModule
		}
		memory, err := parseData(content)
		if err != nil {
			return nil, err
		}
		m.before, m.after, m.memory = program[:at], r.b, memory
	}
	if m.memory == nil || r.err != nil {
		return nil, errModule
	}
	return m, nil
}

// parseData lays out the memory that the data segments make up.
func parseData(section []byte) ([]byte, error) {
	var memory []byte
	r := &reader{b: section}
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		r.skip(0)
		r.skip(opI32Const)
		at := r.uint()
		r.skip(opEnd)
		data := r.take(r.uint())
		end := at + uint64(len(data))
		if at > maxMemory || end > maxMemory {
			return nil, errModule
		}
		if end > uint64(len(memory)) {
			memory = append(memory, make([]byte, end-uint64(len(memory)))...)
		}
		copy(memory[at:], data)
	}
	if r.err != nil || len(r.b) > 0 {
		return nil, errModule
	}
	return memory, nil
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
