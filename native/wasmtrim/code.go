// SPDX-License-Identifier: Apache-2.0

package main

// Instructions of WebAssembly that Go uses and that are not one byte alone.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
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
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opLoadFirst    = 0x28
	opLoadLast     = 0x35
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
