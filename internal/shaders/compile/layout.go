// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// cell is a part of a value that one local holds: a scalar, or a vector.
type cell struct {
	t      *ir.Type
	offset int // in memory
}

// valType returns what holds a scalar or vector.
func valType(t *ir.Type) wasm.ValType {
	switch t.Kind {
	case ir.F32:
		return wasm.F32
	case ir.Vector:
		return wasm.V128
	}
	return wasm.I32
}

// cells lists the parts of a type. A matrix has one for each column.
func (m *generator) cells(t *ir.Type) []cell {
	if list, ok := m.layouts[t]; ok {
		return list
	}
	if m.count(t) > maxCells {
		panic(errTooLarge)
	}
	var list []cell
	add := func(t *ir.Type, at int) {
		for _, c := range m.cells(t) {
			list = append(list, cell{c.t, at + c.offset})
		}
	}
	switch t.Kind {
	case ir.Matrix, ir.Array:
		for i := range t.Len {
			add(t.Elem, i*t.Stride)
		}
	case ir.Struct:
		for _, f := range t.Fields {
			add(f.Type, f.Offset)
		}
	default:
		list = []cell{{t, 0}}
	}
	m.spend(len(list))
	m.layouts[t] = list
	return list
}

// count returns how many cells a type has, or a number that is too large.
func (m *generator) count(t *ir.Type) int {
	if n, ok := m.counts[t]; ok {
		return n
	}
	n := 1
	switch t.Kind {
	case ir.Matrix:
		n = t.Len
	case ir.Array:
		n = min(m.count(t.Elem)*t.Len, 1<<30) // an element has fewer than 1<<30, and Len is less than 1<<31
	case ir.Struct:
		n = 0
		for _, f := range t.Fields {
			n = min(n+m.count(f.Type), 1<<30)
		}
	}
	m.counts[t] = n
	return n
}

// before counts the cells of the fields before one.
func (m *generator) before(t *ir.Type, field int) int {
	n := 0
	for _, f := range t.Fields[:field] {
		n += m.count(f.Type)
	}
	return n
}

// variable is a variable of the program: in cells, or in memory.
type variable struct {
	v      *ir.Var
	cell   int // the first one; -1 of a variable in memory
	class  int // of memory: which it is, 0 for the parameter block
	addr   *node
	offset uint32
	length *node // of a binding that ends in an array without a length: how many elements it has
	last   *node // the number of the last one
}

// place is a variable or a part of one.
type place struct {
	va     *variable
	t      *ir.Type
	cell   int   // of a variable in cells
	comp   *node // the number of the component, of a part of a vector in a cell
	addr   *node // of a variable in memory
	offset uint32
	truth  bool // a component in memory of a vector of bool, where true is a mask
}

func (p *place) inCells() bool { return p.va.cell >= 0 }

func (va *variable) whole() place {
	return place{va: va, t: va.v.Type, cell: va.cell, addr: va.addr, offset: va.offset}
}

// ref evaluates the indices of a reference.
func (g *function) ref(r *ir.Ref) place {
	p, ok := g.places[r.Var]
	if !ok {
		p = g.global(r.Var).whole()
		g.places[r.Var] = p
	}
	for _, s := range r.Path {
		p = g.step(p, s)
	}
	return p
}

func (g *function) step(p place, s ir.Step) place {
	t := p.t
	if t.Kind == ir.Struct {
		p.t = t.Fields[s.Field].Type
		if p.inCells() {
			p.cell += g.gen.before(t, s.Field)
		} else {
			p.offset += uint32(t.Fields[s.Field].Offset)
		}
		return p
	}
	p.t = t.Elem
	i := g.one(s.Index)
	if !p.inCells() {
		g.index(&p, i, t)
		return p
	}
	if t.Kind == ir.Vector {
		p.comp = i
		if i.isInt() {
			p.comp = g.i32(min(i.imm, uint32(t.Len-1)))
		}
		return p
	}
	p.cell += int(min(i.imm, uint32(t.Len-1))) * g.gen.count(t.Elem)
	return p
}

// index goes to an element in memory.
func (g *function) index(p *place, i *node, t *ir.Type) {
	stride := uint32(t.Stride)
	if t.Kind == ir.Vector {
		stride = 4
		p.truth = p.t.Kind == ir.Bool
	}
	last := p.va.last
	if t.Len > 0 {
		last = g.i32(uint32(t.Len - 1))
	}
	switch {
	case i.isInt() && t.Len > 0:
		i = g.i32(min(i.imm, last.imm))
	case g.gen.o.Exact || i.isInt() && i.imm == 0:
	case g.reach(p, i, last, stride):
		return
	default:
		i = g.least(i, last)
	}
	switch {
	case i.isInt() && uint64(i.imm)*uint64(stride) < maxOffset:
		p.offset += i.imm * stride
	case g.gen.o.Exact:
		p.addr = g.address(p, i, stride)
	default:
		p.addr = g.add(p.addr, g.op2(wasm.I32Mul, i, g.i32(stride)))
	}
}

// maxOffset is how far the constant part of an address may reach.
const maxOffset = 1 << 28

// address adds an index that is known to be in range. Sums of what changes in loops of different depth are taken apart, so that loops
// add only what changes in them.
func (g *function) address(p *place, i *node, stride uint32) *node {
	var terms []*node
	constant := g.split(i, stride, 0, &terms)
	if constant*stride < maxOffset {
		p.offset += constant * stride
	} else if constant != 0 {
		terms = append(terms, g.i32(constant))
	}
	at := p.addr
	for depth := 0; len(terms) > 0; depth++ {
		var sum *node
		rest := terms[:0]
		for _, n := range terms {
			switch {
			case depthOf(n.loop) > depth:
				rest = append(rest, n)
			case sum == nil:
				sum = n
			default:
				sum = g.add(sum, n)
			}
		}
		if sum != nil {
			at = g.add(at, g.op2(wasm.I32Mul, sum, g.i32(stride)))
		}
		terms = rest
	}
	return at
}

// split lists the terms of a sum, and returns that which is constant. It is to be multiplied by stride: bits that are lost in that do
// not matter.
func (g *function) split(n *node, stride uint32, depth int, terms *[]*node) uint32 {
	x, y := n.args[0], n.args[1]
	switch {
	case depth == 8 || y == nil:
	case n.op == wasm.I32And && y.isInt() && (math.MaxUint32^y.imm)*stride == 0 && (y.imm+1)&y.imm == 0:
		return g.split(x, stride, depth+1, terms) // what is masked is lost
	case n.op == wasm.I32ShrU && y.isInt() && x.op == wasm.I32Add && y.imm < 16 && stride&(1<<y.imm-1) == 0:
		for k := range 2 {
			if a, b := x.args[k], x.args[1-k]; zeros(a, 4) >= y.imm { // (4a + b) / 4 is a + b / 4
				return g.split(g.op2(wasm.I32ShrU, a, y), stride, depth+1, terms) + g.split(g.op2(wasm.I32ShrU, b, y), stride, depth+1, terms)
			}
		}
	case n.op != wasm.I32Add:
	case y.isInt() && y.imm < 1<<20:
		return y.imm + g.split(x, stride, depth+1, terms)
	case x.loop != y.loop || x.op == wasm.I32Add || y.op == wasm.I32Add:
		return g.split(x, stride, depth+1, terms) + g.split(y, stride, depth+1, terms)
	}
	if n.isInt() && n.imm < 1<<20 {
		return n.imm
	}
	*terms = append(*terms, n)
	return 0
}

// zeros returns how many of the low bits of an integer are known to be 0.
func zeros(n *node, depth int) uint32 {
	switch y := n.args[1]; {
	case n.isInt():
		return uint32(bits.TrailingZeros32(n.imm))
	case depth == 0:
	case n.op == wasm.I32Add:
		return min(zeros(n.args[0], depth-1), zeros(y, depth-1))
	case n.op == wasm.I32Shl && y.isInt():
		return y.imm & 31
	}
	return 0
}

// load reads the cells of a place.
func (g *function) load(p place) []*node {
	if p.inCells() {
		if p.comp != nil {
			return []*node{g.component(g.cur[p.cell], p.comp, p.t)}
		}
		n := g.gen.count(p.t)
		return append([]*node(nil), g.cur[p.cell:p.cell+n]...)
	}
	cells := g.gen.cells(p.t)
	list := make([]*node, len(cells))
	for i, c := range cells {
		list[i] = g.loadCell(p, c)
	}
	if p.truth {
		list[0] = g.and(list[0], g.i32(1))
	}
	return list
}

// component reads a component of a vector: lane 0 after the bytes of the lane are moved there.
func (g *function) component(v, i *node, t *ir.Type) *node {
	if i.isInt() {
		return g.lane(v, int(i.imm), t.Kind)
	}
	bytes := g.add(g.op2(wasm.I32Mul, g.and(i, g.i32(3)), g.i32(0x04040404)), g.i32(0x03020100))
	return g.lane(g.make(&node{op: wasm.I8x16Swizzle, typ: wasm.V128, args: [3]*node{v, g.splat(bytes)}}), 0, t.Kind)
}

// loadCell reads a scalar or vector. Of a vector of three in a binding it reads no more than that.
func (g *function) loadCell(p place, c cell) *node {
	n := &node{typ: valType(c.t), imm: p.offset + uint32(c.offset), args: [3]*node{p.addr}, class: p.va.class}
	n.op, n.epoch = loadOp(n.typ), g.epochs[n.class]
	pinned := n.class != 0
	if c.t.Kind != ir.Vector || c.t.Len == 4 || n.class == 0 {
		return g.intern(n, pinned)
	}
	n.op = wasm.V128Load64Zero
	low := g.intern(n, pinned)
	if c.t.Len == 2 {
		return low
	}
	n.op, n.args[1] = wasm.V128Load32Lane, low
	n.imm += 8
	n.lanes[0] = 2
	return g.intern(n, pinned)
}

// store writes the cells of a place.
func (g *function) store(p place, values []*node) {
	switch {
	case p.inCells() && p.comp != nil:
		g.assign(p.cell, g.withComponent(g.cur[p.cell], p.comp, values[0], p.t))
	case p.inCells():
		for i, v := range values {
			g.assign(p.cell+i, v)
		}
	default:
		if p.truth {
			values = []*node{g.op2(wasm.I32Sub, g.i32(0), values[0])}
		}
		for i, c := range g.gen.cells(p.t) {
			g.storeCell(p, c, values[i])
		}
		g.epochs[p.va.class]++
	}
}

func (g *function) storeCell(p place, c cell, v *node) {
	i := item{kind: itemStore, op: storeOp(v.typ), addr: p.addr, node: v, offset: p.offset + uint32(c.offset), class: p.va.class}
	if c.t.Kind == ir.Vector && c.t.Len < 4 {
		i.op = wasm.V128Store64Lane
		g.emit(i)
		if c.t.Len == 2 {
			return
		}
		i.op, i.lane = wasm.V128Store32Lane, 2
		i.offset += 8
	}
	if !g.joined(i) {
		g.emit(i)
	}
}

// joined replaces the stores of the four components of a vector to neighbouring words by one store of the vector. last is the store of the
// last component; joined reports whether the three before it were there.
func (g *function) joined(last item) bool {
	lane := func(i *item) *node {
		if i.kind == itemStore && (i.op == wasm.F32Store || i.op == wasm.I32Store) && (i.node.op == wasm.F32x4ExtractLane || i.node.op == wasm.I32x4ExtractLane) {
			return i.node
		}
		return nil
	}
	n := lane(&last)
	if n == nil || n.imm != 3 {
		return false
	}
	var found []*item
	for k := len(g.region.items) - 1; k >= 0 && len(found) < 3; k-- {
		i := &g.region.items[k]
		if i.kind == itemNode && i.node.class == 0 {
			continue
		}
		at := uint32(2 - len(found))
		if m := lane(i); m == nil || m.args[0] != n.args[0] || m.imm != at || i.addr != last.addr || i.class != last.class || i.offset+4*(3-at) != last.offset {
			return false
		}
		found = append(found, i)
	}
	if len(found) < 3 {
		return false
	}
	for _, i := range found {
		*i = item{kind: itemNode, node: i.node, loop: i.loop}
	}
	last.op, last.node, last.offset = wasm.V128Store, n.args[0], last.offset-12
	g.emit(last)
	return true
}

// withComponent returns a vector in which one component is replaced.
func (g *function) withComponent(v, i, x *node, t *ir.Type) *node {
	if t.Kind == ir.Bool {
		x = g.op2(wasm.I32Sub, g.i32(0), x)
	}
	if i.isInt() {
		return g.replace(v, int(i.imm), x)
	}
	mask := g.op2(wasm.I32x4Eq, g.splat(g.and(i, g.i32(3))), g.words([4]uint32{0, 1, 2, 3}))
	return g.choose(g.splat(x), v, mask)
}
