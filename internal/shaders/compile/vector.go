// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// splat puts a scalar into all lanes. One that is loaded, or a lane of a vector that is, is loaded into all of them.
func (g *function) splat(x *node) *node {
	switch x.op {
	case wasm.F32Const, wasm.I32Const:
		return g.all(wasm.V128, false, x.imm)
	case wasm.F32ReinterpretI, wasm.I32ReinterpretF:
		return g.splat(x.args[0])
	case wasm.F32x4ExtractLane, wasm.I32x4ExtractLane:
		v := x.args[0]
		if v.op == wasm.V128Load && g.fresh(v) {
			return g.loadSplat(v, x.typ, x.imm)
		}
		if !g.gen.o.Wazero {
			return g.shuffle(v, v, [4]uint8{uint8(x.imm), uint8(x.imm), uint8(x.imm), uint8(x.imm)})
		}
	case wasm.F32Load, wasm.I32Load:
		if g.fresh(x) && (!g.gen.o.Wazero || g.gen.prog.Lanes) {
			return g.loadSplat(x, x.typ, 0)
		}
	}
	if x.typ == wasm.F32 {
		return g.opTo(wasm.F32x4Splat, wasm.V128, x)
	}
	return g.opTo(wasm.I32x4Splat, wasm.V128, x)
}

// fresh reports whether memory still has what a load read.
func (g *function) fresh(n *node) bool { return n.epoch == g.epochs[n.class] }

// loadSplat loads a word of what another load reads into all lanes.
func (g *function) loadSplat(of *node, t wasm.ValType, lane uint32) *node {
	n := &node{op: wasm.V128Load32Splat, typ: wasm.V128, args: of.args, imm: of.imm + 4*lane, class: of.class, epoch: of.epoch}
	if !g.gen.o.Wazero {
		return g.intern(n, of.class != 0)
	}
	if g.gen.prog.Lanes { // the splat of wazero 1.12 depends on the old content of its register, so that a turn of a loop waits for the one before
		n.op = wasm.V128Load32Zero
		first := g.words([4]uint32{0x03020100, 0x03020100, 0x03020100, 0x03020100})
		return g.make(&node{op: wasm.I8x16Swizzle, typ: wasm.V128, args: [3]*node{g.intern(n, of.class != 0), first}})
	}
	// Wazero makes better code of two instructions, and checks only the first of several addresses if that is the highest one.
	n.op, n.typ = loadOp(t), t
	op := wasm.I32x4Splat
	if t == wasm.F32 {
		op = wasm.F32x4Splat
	}
	var made [4]*node
	for l := uint32(4); l > 0; l-- {
		n.imm = of.imm + 4*(l-1)
		made[l-1] = g.opTo(op, wasm.V128, g.intern(n, of.class != 0))
	}
	return made[lane]
}

func loadOp(t wasm.ValType) wasm.Op {
	switch t {
	case wasm.F32:
		return wasm.F32Load
	case wasm.V128:
		return wasm.V128Load
	}
	return wasm.I32Load
}

// shuffle takes lanes of two vectors: 0 to 3 of x, 4 to 7 of y.
func (g *function) shuffle(x, y *node, lanes [4]uint8) *node {
	if y.op == wasm.V128Const && x.op == wasm.V128Const {
		var w [4]uint32
		for i, l := range lanes {
			w[i] = [2]*node{x, y}[l/4].word(int(l % 4))
		}
		return g.words(w)
	}
	if x == y {
		for i := range lanes {
			lanes[i] %= 4
		}
	}
	if lanes == [4]uint8{0, 1, 2, 3} {
		return x
	}
	n := &node{op: wasm.I8x16Shuffle, typ: wasm.V128, args: [3]*node{x, y}}
	for i, l := range lanes {
		for k := range 4 {
			n.lanes[4*i+k] = 4*l + uint8(k)
		}
	}
	return g.make(n)
}

// lane returns a component as a scalar of a kind.
func (g *function) lane(v *node, i int, k ir.Kind) *node {
	for range 16 { // shuffles and the like
		from, at := through(v, i)
		if from == nil {
			break
		}
		v, i = from, at
	}
	if s := g.laneOf(v, i, k); s != nil {
		return s
	}
	switch k {
	case ir.F32:
		return g.make(&node{op: wasm.F32x4ExtractLane, typ: wasm.F32, args: [3]*node{v}, imm: uint32(i)})
	case ir.Bool:
		return g.and(g.make(&node{op: wasm.I32x4ExtractLane, typ: wasm.I32, args: [3]*node{v}, imm: uint32(i)}), g.i32(1))
	}
	return g.make(&node{op: wasm.I32x4ExtractLane, typ: wasm.I32, args: [3]*node{v}, imm: uint32(i)})
}

// through returns where a component of a vector comes from, if the vector only has it from another one.
func through(v *node, i int) (from *node, lane int) {
	b := v.lanes[4*i : 4*i+4]
	switch {
	case v.op == wasm.I8x16Shuffle && b[0]%4 == 0 && b[1] == b[0]+1 && b[2] == b[0]+2 && b[3] == b[0]+3:
		return v.args[b[0]/16], int(b[0] / 4 % 4)
	case (v.op == wasm.F32x4ReplaceLane || v.op == wasm.I32x4ReplaceLane) && int(v.imm) != i:
		return v.args[0], i
	}
	return nil, 0
}

// laneOf returns lane i of a constant, a splat, or a vector that a scalar was put into there, without a look into the vector.
func (g *function) laneOf(v *node, i int, k ir.Kind) *node {
	var s *node
	switch v.op {
	case wasm.V128Const:
		s = g.i32(v.word(i))
	case wasm.F32x4Splat, wasm.I32x4Splat:
		s = v.args[0]
	case wasm.F32x4ReplaceLane, wasm.I32x4ReplaceLane:
		if int(v.imm) != i {
			return nil
		}
		s = v.args[1]
	default:
		return nil
	}
	switch k {
	case ir.Bool:
		return g.and(g.bitcast(s, wasm.I32), g.i32(1))
	case ir.F32:
		return g.bitcast(s, wasm.F32)
	}
	return g.bitcast(s, wasm.I32)
}

// same returns the scalar that all lanes of a vector of integers have, or nil.
func (g *function) same(v *node) *node {
	switch v.op {
	case wasm.I32x4Splat:
		return v.args[0]
	case wasm.V128Const:
		if w := v.word(0); w == v.word(1) && w == v.word(2) && w == v.word(3) {
			return g.i32(w)
		}
	}
	return nil
}

// replace puts a scalar into a lane.
func (g *function) replace(v *node, i int, s *node) *node {
	if v.op == wasm.V128Const && (s.op == wasm.I32Const || s.op == wasm.F32Const) {
		w := [4]uint32{v.word(0), v.word(1), v.word(2), v.word(3)}
		w[i] = s.imm
		return g.words(w)
	}
	op := wasm.I32x4ReplaceLane
	if s.typ == wasm.F32 {
		op = wasm.F32x4ReplaceLane
	}
	return g.make(&node{op: op, typ: wasm.V128, args: [3]*node{v, s}, imm: uint32(i)})
}

// perLane computes n lanes of a vector one by one. With fewer than four the others are those of the first.
func (g *function) perLane(n int, f func(i int) *node) *node {
	v, first := g.words([4]uint32{}), 0
	if !g.gen.prog.Lanes {
		v, first = g.splat(f(0)), 1
	}
	for i := first; i < n; i++ {
		v = g.replace(v, i, f(i))
	}
	return v
}

// source is where a component of a new vector comes from: a lane of a vector, or a scalar.
type source struct {
	from *node
	lane int // -1 of a scalar
}

// gather makes a vector of components.
func (g *function) gather(parts []source) *node {
	if v := g.quad(parts); v != nil {
		return v
	}
	for i, p := range parts {
		switch p.from.op {
		case wasm.F32x4ExtractLane, wasm.I32x4ExtractLane:
			if p.lane < 0 {
				parts[i] = source{p.from.args[0], int(p.from.imm)}
			}
		}
	}
	if first := parts[0]; first.lane < 0 {
		all := true
		for _, p := range parts {
			all = all && p == first
		}
		if all {
			return g.splat(first.from)
		}
	}
	lanes := [4]source{parts[0], parts[0], parts[0], parts[0]}
	copy(lanes[:], parts)
	if v := g.merge2(lanes[:], [4]int{0, 1, 2, 3}); v != nil {
		return v
	}
	low, high := g.merge2(lanes[:2], [4]int{0, 1, 0, 1}), g.merge2(lanes[2:], [4]int{0, 1, 0, 1})
	if low != nil && high != nil {
		return g.shuffle(low, high, [4]uint8{0, 1, 4, 5})
	}
	return g.patch(parts)
}

// merge2 takes lanes of at most two vectors by one shuffle; nil if there are more, or scalars.
func (g *function) merge2(lanes []source, order [4]int) *node {
	var from [2]*node
	var out [4]uint8
	for i, k := range order {
		p := lanes[k]
		switch {
		case p.lane < 0:
			return nil
		case from[0] == nil || from[0] == p.from:
			from[0] = p.from
			out[i] = uint8(p.lane)
		case from[1] == nil || from[1] == p.from:
			from[1] = p.from
			out[i] = 4 + uint8(p.lane)
		default:
			return nil
		}
	}
	if from[1] == nil {
		from[1] = from[0]
	}
	return g.shuffle(from[0], from[1], out)
}

// patch begins with what is constant, or with the vector that gives most, and replaces lanes.
func (g *function) patch(parts []source) *node {
	var base *node
	var constant [4]uint32
	var done [4]bool
	constants := 0
	for i, p := range parts {
		if p.lane < 0 && (p.from.op == wasm.I32Const || p.from.op == wasm.F32Const) {
			constant[i], done[i] = p.from.imm, true
			constants++
		}
	}
	first := parts[0]
	switch {
	case constants > 0:
		base = g.words(constant)
	case first.lane < 0 && !g.gen.prog.Lanes:
		base, done[0] = g.splat(first.from), true
	case first.lane < 0:
		base = g.words(constant)
	default:
		base = first.from
	}
	for i, p := range parts {
		switch {
		case done[i] || p.from == base && p.lane == i:
		case p.lane < 0:
			base = g.replace(base, i, p.from)
		default:
			base = g.replace(base, i, g.lane(p.from, p.lane, ir.F32))
		}
	}
	return base
}

// quad makes one load of the loads of four neighbours.
func (g *function) quad(parts []source) *node {
	first := parts[0].from
	if len(parts) != 4 || first.op != wasm.F32Load && first.op != wasm.I32Load {
		return nil
	}
	for i, p := range parts {
		n := p.from
		if p.lane >= 0 || n.op != first.op || n.args[0] != first.args[0] || n.imm != first.imm+4*uint32(i) || n.class != first.class || !g.fresh(n) {
			return nil
		}
	}
	return g.intern(&node{op: wasm.V128Load, typ: wasm.V128, args: first.args, imm: first.imm, class: first.class, epoch: first.epoch}, first.class != 0)
}
