// SPDX-License-Identifier: Apache-2.0

package compile

import "github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"

// plain follows an argument that was written by instructions that leave it as it is, where wazero 1.12 compiles the operation wrongly: of a
// comparison of 0 with a conjunction it tests the latter alone, and then has the operands of a branch the wrong way round where 0 is the
// first one; on arm64 that test leaves no carry either, which comparisons without a sign need. The code is looked at and not the program,
// as an argument may only turn out to be 0 at the end.
func (e *emitter) plain(n *node, i int) {
	if !e.wazero || !ordered(n.op) || n.args[i].find().op != wasm.I32And {
		return
	}
	if other := n.args[1-i].find(); other.isInt() && other.imm != 0 {
		return
	}
	e.op(wasm.I32Const)
	e.code = append(e.code, 0)
	e.op(wasm.I32Or)
}

// ordered reports whether an operation compares integers for more than equality.
func ordered(o wasm.Op) bool {
	switch o {
	case wasm.I32LtS, wasm.I32LtU, wasm.I32GtS, wasm.I32GtU, wasm.I32LeS, wasm.I32LeU, wasm.I32GeS, wasm.I32GeU:
		return true
	}
	return false
}
