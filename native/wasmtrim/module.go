// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errModule = errors.New("not a WebAssembly module of Go's")

const (
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

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uint reads an unsigned LEB128 number.
func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err = errModule
	}
	r.take(uint64(max(n, 0)))
	return v
}

// int reads a signed LEB128 number.
func (r *reader) int() int64 {
	var v int64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.err = errModule
	return 0
}

func parseModule(program []byte) (*module, error) {
	const header = "\x00asm\x01\x00\x00\x00"
	if !bytes.HasPrefix(program, []byte(header)) {
		return nil, errModule
	}
	m := &module{}
	r := &reader{b: program[len(header):]}
	for len(r.b) > 0 {
		at := len(program) - len(r.b)
		kind := r.byte()
		content := r.take(r.uint())
		if r.err != nil {
			return nil, r.err
		}
		if kind != sectionData {
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
	if m.memory == nil {
		return nil, errModule
	}
	return m, nil
}

// parseData lays out the memory that the data segments make up.
func parseData(section []byte) ([]byte, error) {
	var memory []byte
	r := &reader{b: section}
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		if kind, op := r.byte(), r.byte(); kind != 0 || op != opI32Const {
			return nil, errModule
		}
		at, end := r.int(), r.byte()
		data := r.take(r.uint())
		if end != opEnd || at < 0 || at+int64(len(data)) > maxMemory {
			return nil, errModule
		}
		if need := int(at) + len(data); need > len(memory) {
			memory = append(memory, make([]byte, need-len(memory))...)
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
	for at := 0; at < len(m.memory); {
		at += zeros(m.memory[at:])
		end := at
		for end < len(m.memory) {
			gap := zeros(m.memory[end:])
			if gap > shortGap || end+gap == len(m.memory) {
				break
			}
			end += gap + 1
		}
		if end > at {
			segments = append(segments, 0, opI32Const)
			segments = appendInt(segments, int64(at))
			segments = append(segments, opEnd)
			segments = binary.AppendUvarint(segments, uint64(end-at))
			segments = append(segments, m.memory[at:end]...)
			count++
		}
		at = max(end, at+1)
	}
	section := append(binary.AppendUvarint(nil, count), segments...)
	out := append(bytes.Clone(m.before), sectionData)
	out = binary.AppendUvarint(out, uint64(len(section)))
	return append(append(out, section...), m.after...)
}

// zeros counts the zeros at the beginning.
func zeros(b []byte) int {
	for i, c := range b {
		if c != 0 {
			return i
		}
	}
	return len(b)
}

func appendInt(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
