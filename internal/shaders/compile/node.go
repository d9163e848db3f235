// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// node is a value of a function in SSA form: an instruction of WebAssembly with its operands, or one of the operations below.
type node struct {
	op    wasm.Op
	typ   wasm.ValType
	args  [3]*node
	imm   uint32   // bits of a constant, a lane, the offset of a load, the number of a parameter or slot
	lanes [16]byte // of shuffles and constant vectors
	class int      // of loads: the memory that they read, 0 for what never changes
	epoch int      // of loads: how often that was written before

	id     int     // nodes that were made later have higher ones
	loop   *loop   // the innermost loop that computes it
	region *region // where it is computed
	depth  int     // how far it can nest in the code

	in      []*node // of a phi: what it can be
	inLoops []*loop // where each of those is assigned
	to      *node   // what a superfluous phi stands for

	uses    int  // by live nodes and effects
	live    bool // something uses it
	force   bool // it needs a local, whatever the number of uses
	outside bool // of a loop's phi: used after the loop, too
	done    bool // its code is written
	local   int  // one more than the number of its local; 0 for none
}

// Operations beside instructions of WebAssembly.
const (
	opParam  wasm.Op = 0x1000 + iota // parameter imm of the function
	opPhi                            // what the edges into a join or a loop assign
	opResult                         // a result of a call
	opSlot                           // slot imm of an invocation's frame at args[0]
	opFrames                         // where the frames begin in scratch memory
	opFrame                          // the size of a frame
)

// key is what equal nodes have in common.
type key struct {
	op           wasm.Op
	typ          wasm.ValType
	args         [3]*node
	imm          uint32
	lanes        [16]byte
	class, epoch int
}

// loop is a loop of the code. What does not depend on it is computed before it.
type loop struct {
	parent *loop
	depth  int
	outer  *region
	pre    []*node
	closed bool
	turns  uint32 // how often the body runs, 0 if that is not known
}

// region is a sequence of code with one entry: the arm of an if, a block or the body of a loop.
type region struct {
	items  []item
	parent *region
	closed bool
	rare   bool // it hardly ever runs, and does not count as a cost
}

func (r *region) open() bool {
	for ; r != nil; r = r.parent {
		if r.closed {
			return false
		}
	}
	return true
}

// depthOf is the number of loops around the code.
func depthOf(l *loop) int {
	if l == nil {
		return 0
	}
	return l.depth
}

func (n *node) find() *node {
	for n.to != nil {
		n = n.to
	}
	return n
}

func (n *node) isConst() bool {
	return n.op == wasm.I32Const || n.op == wasm.F32Const || n.op == wasm.V128Const
}

// isInt reports whether a node is a constant integer.
func (n *node) isInt() bool { return n.op == wasm.I32Const }

// home returns the innermost of the loops around the present code that computes an operand.
func (g *function) home(n *node) *loop {
	var home *loop
	for _, a := range n.args {
		if a == nil {
			continue
		}
		l := a.loop
		for l != nil && l.closed {
			l = l.parent
		}
		if depthOf(l) > depthOf(home) {
			home = l
		}
	}
	return home
}

// maxNest bounds the depth of expressions in the code, which is written by recursion.
const maxNest = 120

// make returns the node of a pure operation: an equal one where it is computed already.
func (g *function) make(n *node) *node { return g.intern(n, false) }

// intern does it for loads, too, which stay where they are.
func (g *function) intern(n *node, pinned bool) *node {
	k := key{n.op, n.typ, n.args, n.imm, n.lanes, n.class, n.epoch}
	if old := g.table[k]; old != nil && old.region.open() {
		return old
	}
	made := g.place(n, pinned)
	g.table[k] = made
	return made
}

// place puts a new node into the code: before the loops that do not change it.
func (g *function) place(n *node, pinned bool) *node {
	g.gen.spend(1)
	made := new(node)
	*made = *n
	made.id = g.gen.nextID()
	for _, a := range n.args {
		if a != nil && !a.force {
			made.depth = max(made.depth, a.depth+1)
		}
	}
	if made.depth > maxNest {
		made.force, made.depth = true, 0
	}
	if made.op == wasm.I32Const || made.op == wasm.F32Const || made.op == wasm.V128Const && cheap(made.lanes) {
		return made // computed where it is used
	}
	home := g.loop
	if !pinned {
		home = g.home(made)
	}
	made.loop, made.region = home, g.region
	if depthOf(home) < depthOf(g.loop) {
		l := g.loop
		for l.parent != home {
			l = l.parent
		}
		made.region = l.outer
		l.pre = append(l.pre, made)
		return made
	}
	g.region.items = append(g.region.items, item{kind: itemNode, node: made})
	return made
}

// cheap reports whether all bits of a constant are the same: engines make such constants without a load.
func cheap(lanes [16]byte) bool {
	for _, b := range lanes {
		if b != lanes[0] {
			return false
		}
	}
	return lanes[0] == 0 || lanes[0] == 0xff
}

func (g *function) i32(v uint32) *node {
	return g.make(&node{op: wasm.I32Const, typ: wasm.I32, imm: v})
}

func (g *function) f32(v float32) *node {
	return g.make(&node{op: wasm.F32Const, typ: wasm.F32, imm: math.Float32bits(v)})
}

// words makes a constant vector.
func (g *function) words(w [4]uint32) *node {
	n := &node{op: wasm.V128Const, typ: wasm.V128}
	for i, v := range w {
		binary.LittleEndian.PutUint32(n.lanes[4*i:], v)
	}
	return g.make(n)
}

func (n *node) word(i int) uint32 { return binary.LittleEndian.Uint32(n.lanes[4*i:]) }

// all makes a constant scalar or, like a vector, one in all lanes.
func (g *function) all(like wasm.ValType, float bool, bits uint32) *node {
	switch {
	case like == wasm.V128:
		return g.words([4]uint32{bits, bits, bits, bits})
	case float:
		return g.make(&node{op: wasm.F32Const, typ: wasm.F32, imm: bits})
	}
	return g.i32(bits)
}

// floats makes 1.5 or vec4(1.5, 1.5, 1.5, 1.5).
func (g *function) floats(like *node, v float32) *node {
	return g.all(like.typ, true, math.Float32bits(v))
}

// ints does the same for integers.
func (g *function) ints(like *node, v uint32) *node { return g.all(like.typ, false, v) }

// zero returns the zero of a type.
func (g *function) zero(t wasm.ValType) *node { return g.all(t, t == wasm.F32, 0) }

// op1 and op2 apply instructions whose result has the type of the operand, or the one given.
func (g *function) op1(op wasm.Op, x *node) *node { return g.opTo(op, x.typ, x) }

func (g *function) opTo(op wasm.Op, t wasm.ValType, args ...*node) *node {
	n := &node{op: op, typ: t}
	copy(n.args[:], args)
	if t != wasm.V128 && args[0].typ == wasm.I32 {
		if f := g.fold(n); f != nil {
			return f
		}
	}
	if t == wasm.V128 && g.gen.prog.Lanes {
		if f := g.foldMask(n); f != nil {
			return f
		}
	}
	return g.make(n)
}

func (g *function) op2(op wasm.Op, x, y *node) *node { return g.opTo(op, x.typ, x, y) }

func (g *function) add(x, y *node) *node { return g.op2(wasm.I32Add, x, y) }
func (g *function) and(x, y *node) *node { return g.op2(wasm.I32And, x, y) }

// choose returns t where a condition holds, f where it does not. Of vectors the condition is a mask or a truth value.
func (g *function) choose(t, f, cond *node) *node {
	if t == f {
		return t
	}
	if cond.isInt() {
		if cond.imm != 0 {
			return t
		}
		return f
	}
	if t.typ == wasm.F32 && g.gen.o.Wazero { // which loses one of two floats where registers are short
		return g.bitcast(g.choose(g.bitcast(t, wasm.I32), g.bitcast(f, wasm.I32), cond), wasm.F32)
	}
	if t.typ != wasm.V128 {
		return g.make(&node{op: wasm.Select, typ: t.typ, args: [3]*node{t, f, cond}})
	}
	if cond.typ != wasm.V128 {
		cond = g.splat(g.op2(wasm.I32Sub, g.i32(0), cond))
	}
	switch {
	case cond.op == wasm.V128Not:
		return g.choose(f, t, cond.args[0])
	case cond.op == wasm.V128Const && cheap(cond.lanes):
		if cond.lanes[0] == 0 {
			return f
		}
		return t
	case f.op == wasm.V128Const && cheap(f.lanes) && f.lanes[0] == 0:
		return g.op2(wasm.V128And, t, cond)
	case t.op == wasm.V128Const && cheap(t.lanes) && t.lanes[0] == 0:
		return g.op2(wasm.V128AndNot, f, cond)
	}
	// Not v128.bitselect: where registers are short wazero 1.12 loses a part of it on amd64.
	return g.op2(wasm.V128Or, g.op2(wasm.V128And, t, cond), g.op2(wasm.V128AndNot, f, cond))
}

// least returns the smaller of two unsigned integers.
func (g *function) least(x, y *node) *node {
	if y.isInt() && bound(x) <= y.imm {
		return x
	}
	return g.choose(x, y, g.op2(wasm.I32LtU, x, y))
}
