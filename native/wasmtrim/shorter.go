// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// shorter replaces what Go's compiler emits by less that does the same:
//
//   - addresses that are computed in 64 bits of which 32 are dropped;
//   - numbers that are added to SP for a load or a store, which can add them itself;
//   - two additions to SP one after the other, and what is kept in local 1 just before a return, which nobody reads;
//   - the eight instructions before a call that lower SP and store the return address: a small function does that, see pushed.
//
// Ordinary functions of Go's keep a copy of SP in local 1. The runtime's functions with other signatures do not, so the patterns must not match there.
func shorter(list []instruction, push int) []instruction {
	s := shortener{push: push, copies: copiesSP(list)}
	for len(list) > 0 {
		list = list[s.take(list):]
	}
	return s.out
}

// shortener has the instructions so far. stack has, for each value on the operand stack, the index in out of the first instruction that computes
// it, or -1 if that is unknown. Values below those of the list are unknown, too.
type shortener struct {
	out    []instruction
	stack  []int
	push   int  // the function that stores the return address
	copies bool // whether SP and local 1 are equal wherever a call begins
}

// take appends what does the same as the first instructions of a list, and returns how many these are.
func (s *shortener) take(list []instruction) int {
	switch {
	case has(list, opI64ExtendU, opI64Const, opI64Add, opI32WrapI64) && small(list[1]):
		s.add(to32(list[1]))
		s.add(instruction{op: opI32Add, bytes: []byte{opI32Add}})
		return 4
	case has(list, opI64Const, opI32WrapI64) && small(list[0]):
		s.add(to32(list[0]))
		return 2
	case has(list, opI64ExtendU, opI32WrapI64):
		return 2
	case isCall(list) && s.copies:
		s.add(list[6])
		s.add(instruction{opCall, appendUint([]byte{opCall}, uint64(s.push)), s.push})
		return 8
	case list[0].op == opNop:
		return 1
	}
	in := list[0]
	switch {
	case in.op >= opLoadFirst && in.op <= opLoadLast:
		in = s.address(0, in)
	case in.op >= opStoreFirst && in.op <= opStoreLast:
		in = s.address(1, in)
	}
	s.add(in)
	if in.op == opGlobalSet {
		s.merge(has(list[1:], opI32Const, opReturn))
	}
	return 1
}

// has reports whether a list begins with instructions.
func has(list []instruction, ops ...byte) bool {
	return len(ops) <= len(list) && slices.EqualFunc(ops, list[:len(ops)], func(op byte, in instruction) bool { return in.op == op })
}

// isCall reports whether instructions begin with a call: SP is lowered by 8, the return address is stored there, and local 1 is set anew afterwards.
func isCall(list []instruction) bool {
	return has(list, opLocalGet, opI32Const, opI32Sub, opLocalTee, opGlobalSet, opLocalGet, opI64Const, opI64Store, opI32Const, opCall, opGlobalGet, opLocalSet) &&
		list[0].bytes[1] == 1 && list[1].bytes[1] == 8 && list[3].bytes[1] == 1 && list[4].bytes[1] == globalSP && list[5].bytes[1] == 1 &&
		list[7].bytes[2] == 0 && list[8].bytes[1] == 0 && list[10].bytes[1] == globalSP && list[11].bytes[1] == 1
}

// copiesSP reports whether SP and its copy only change together.
func copiesSP(list []instruction) bool {
	is := func(i int, op, number byte) bool {
		return i >= 0 && i < len(list) && list[i].op == op && list[i].bytes[1] == number
	}
	for i := range list {
		if is(i, opGlobalSet, globalSP) != is(i-1, opLocalTee, 1) || is(i, opLocalSet, 1) && !is(i-1, opGlobalGet, globalSP) {
			return false
		}
	}
	return true
}

// pushed is code that lowers SP by 8 and stores the return address there, the first parameter of the function that it is in.
var pushed = []byte{
	opGlobalGet, globalSP, opI32Const, 8, opI32Sub, opGlobalSet, globalSP,
	opGlobalGet, globalSP, opLocalGet, 0, opI64Store, 3, 0,
}

// small reports whether an instruction's number has 28 bits at most, which are encoded in the same way for i32 and i64.
func small(in instruction) bool { return len(in.bytes) <= 5 }

func to32(in instruction) instruction {
	return instruction{op: opI32Const, bytes: append([]byte{opI32Const}, in.bytes[1:]...)}
}

// add appends an instruction and keeps the stack.
func (s *shortener) add(in instruction) {
	pops, pushes, known := effect(in)
	at := len(s.out)
	s.out = append(s.out, in)
	if !known {
		s.stack = s.stack[:0]
		return
	}
	if pops > 0 {
		at = s.begin(pops - 1)
		s.stack = s.stack[:max(len(s.stack)-pops, 0)]
	}
	if pushes {
		s.stack = append(s.stack, at)
	}
}

// begin tells where the computation of a value begins that is so far below the top of the stack.
func (s *shortener) begin(below int) int {
	if at := len(s.stack) - 1 - below; at >= 0 {
		return s.stack[at]
	}
	return -1
}

// effect tells how many values an instruction takes from the stack and whether it leaves one. It is unknown for all others: calls, branches,
// blocks, instructions for memory as a whole, and conversions that saturate.
func effect(in instruction) (pops int, pushes, known bool) {
	switch op := in.op; {
	case op == opLocalGet, op == opGlobalGet, op >= opI32Const && op <= opF64Const:
		return 0, true, true
	case op == opLocalSet, op == opGlobalSet, op == opDrop:
		return 1, false, true
	case op >= opStoreFirst && op <= opStoreLast:
		return 2, false, true
	case op == opSelect:
		return 3, true, true
	case op == opLocalTee, op >= opLoadFirst && op <= opLoadLast, isUnary(op):
		return 1, true, true
	case op > opF64Const && op <= opLast:
		return 2, true, true
	}
	return 0, false, false
}

// isUnary reports whether an instruction computes with one number.
func isUnary(op byte) bool {
	for _, r := range [][2]byte{{0x45, 0x45}, {0x50, 0x50}, {0x67, 0x69}, {0x79, 0x7b}, {0x8b, 0x91}, {0x99, 0x9f}, {0xa7, opLast}} {
		if op >= r[0] && op <= r[1] {
			return true
		}
	}
	return false
}

// address moves a number that is added to SP into the offset of a load or a store. below is how deep the address is on the operand stack.
func (s *shortener) address(below int, in instruction) instruction {
	from, to := s.begin(below), len(s.out)
	if below > 0 {
		to = s.begin(0)
	}
	if from < 0 || to != from+3 || !isSum(s.out[from:]) {
		return in
	}
	add, offset := reader(s.out[from+1].bytes[1:]), reader(in.bytes[2:])
	s.out = slices.Delete(s.out, from+1, to)
	return instruction{op: in.op, bytes: appendUint(slices.Clone(in.bytes[:2]), add.uint()+offset.uint())}
}

// isSum reports whether instructions begin with the sum of SP and a number that is not negative.
func isSum(list []instruction) bool {
	return has(list, opLocalGet, opI32Const, opI32Add) && list[0].bytes[1] == 1 && isNatural(list[1])
}

func isNatural(in instruction) bool { return small(in) && in.bytes[len(in.bytes)-1]&0x40 == 0 }

// isMove reports whether instructions begin with an addition to SP.
func isMove(list []instruction) bool {
	return isSum(list) && has(list[3:], opLocalTee, opGlobalSet) && list[3].bytes[1] == 1 && list[4].bytes[1] == globalSP
}

// moveSize is how many instructions an addition to SP has.
const moveSize = 5

// merge joins the last two additions to SP, if there is nothing between them. If the function returns next, local 1 need not be set.
func (s *shortener) merge(end bool) {
	at := len(s.out) - moveSize
	if at < 0 || !isMove(s.out[at:]) {
		return
	}
	if before := at - moveSize; before >= 0 && isMove(s.out[before:]) {
		first, second := reader(s.out[before+1].bytes[1:]), reader(s.out[at+1].bytes[1:])
		s.out[before+1] = instruction{op: opI32Const, bytes: appendInt([]byte{opI32Const}, first.uint()+second.uint())}
		s.out, at = s.out[:at], before
	}
	if end {
		s.out = slices.Delete(s.out, at+3, at+4)
	}
}
