// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// Instructions of WebAssembly that Go uses and that are not one byte alone.
const (
	opUnreachable  = 0x00
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opLoadFirst    = 0x28
	opI32Load      = 0x28
	opI32Load8U    = 0x2d
	opStoreFirst   = 0x36
	opI32Store     = 0x36
	opI64Store     = 0x37
	opStoreLast    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eq        = 0x46
	opI32LtU       = 0x49
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI32And       = 0x71
	opI64Add       = 0x7c
	opI64Shl       = 0x86
	opI64Or        = 0x84
	opI32WrapI64   = 0xa7
	opI64ExtendU   = 0xad
	opLast         = 0xc4 // of those without prefix
	opPrefix       = 0xfc

	blockEmpty = 0x40 // type of a block without result
	typeI32    = 0x7f
	typeI64    = 0x7e
)

// instruction is one of a function's. target: of a call, the index of the function.
type instruction struct {
	op     byte
	bytes  []byte
	target int
}

// instructions takes the body of a function apart: its locals, and what it does.
func instructions(body []byte) (locals []byte, list []instruction) {
	r := reader(body)
	for n := r.uint(); n > 0; n-- {
		r.uint()
		r.byte()
	}
	locals = body[:len(body)-len(r)]
	for len(r) > 0 {
		before := r
		op := r.byte()
		target := operands(&r, op)
		list = append(list, instruction{op, before[:len(before)-len(r)], target})
	}
	return locals, list
}

// shorter replaces sequences by which Go computes addresses, in 64 bits of which it drops 32, and adds to SP, which is local 1, beforehand
// what a store can add.
func shorter(list []instruction) (out []instruction) {
	is := func(ops ...byte) bool {
		return len(ops) <= len(list) && slices.EqualFunc(ops, list[:len(ops)], func(op byte, in instruction) bool { return in.op == op })
	}
	small := func(in instruction) bool { return len(in.bytes) <= 5 } // a number of 28 bits, which is encoded in the same way
	to32 := func(in instruction) instruction {
		return instruction{op: opI32Const, bytes: append([]byte{opI32Const}, in.bytes[1:]...)}
	}
	for len(list) > 0 {
		skip := 1
		switch {
		case is(opI64ExtendU, opI64Const, opI64Add, opI32WrapI64) && small(list[1]):
			out = append(out, to32(list[1]), instruction{op: opI32Add, bytes: []byte{opI32Add}})
			skip = 4
		case is(opI64Const, opI32WrapI64) && small(list[0]):
			out = append(out, to32(list[0]))
			skip = 2
		case is(opI64ExtendU, opI32WrapI64):
			skip = 2
		case list[0].op >= opStoreFirst && list[0].op <= opStoreLast:
			out = store(out, list[0])
		default:
			out = append(out, list[0])
		}
		list = list[skip:]
	}
	return out
}

// store appends what stores a number or a local variable, without an addition to SP before.
func store(out []instruction, in instruction) []instruction {
	n := len(out)
	if n >= 4 && out[n-4].op == opLocalGet && out[n-4].bytes[1] == 1 && out[n-3].op == opI32Const && out[n-2].op == opI32Add &&
		slices.Contains([]byte{opLocalGet, opI32Const, opI64Const, opF32Const, opF64Const}, out[n-1].op) && out[n-3].bytes[len(out[n-3].bytes)-1]&0x40 == 0 {
		add, offset := reader(out[n-3].bytes[1:]), reader(in.bytes[2:])
		return append(out[:n-3], out[n-1], instruction{op: in.op, bytes: appendUint(slices.Clone(in.bytes[:2]), add.uint()+offset.uint())})
	}
	return append(out, in)
}

// operands reads what follows an instruction's first byte, and returns what is called.
func operands(r *reader, op byte) (target int) {
	switch {
	case op >= opLoadFirst && op <= opStoreLast, op == opCallIndirect:
		r.uint()
		r.uint()
	case op >= 0x02 && op <= opIf, op == opMemorySize, op == opMemoryGrow:
		r.byte()
	case op == opBr, op == opBrIf, op >= opLocalGet && op <= opGlobalSet:
		r.uint()
	case op == opI32Const, op == opI64Const:
		r.skipInt()
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op == opCall:
		return int(r.uint())
	case op == opBrTable:
		for n := r.uint() + 1; n > 0; n-- {
			r.uint()
		}
	case op == opPrefix:
		r.prefixed()
	default:
		known := op <= 0x01 || op == opElse || op == opEnd || op == opReturn || op == opDrop || op == opSelect || op > opF64Const && op <= opLast
		check(known)
	}
	return 0
}

// skipInt skips a signed LEB128 number.
func (r *reader) skipInt() {
	for r.byte() >= 0x80 {
	}
}

// prefixed reads the rest of instructions that convert without traps or handle memory.
func (r *reader) prefixed() {
	switch kind := r.uint(); {
	case kind <= 7:
	case kind == 10: // memory.copy
		r.expect(0, 0)
	case kind == 11: // memory.fill
		r.expect(0)
	default:
		check(false)
	}
}
