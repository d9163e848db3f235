// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/binary"
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// mark finds the nodes that effects need and counts their uses.
type marker struct {
	work   []*node
	slots  map[uint32][]item // stores, by slot
	read   map[uint32]bool
	wazero bool // the code is for wazero: a constant vector that is used once is made where it is used, also in a loop
}

func (m *marker) use(n *node, from *loop) {
	n = n.find()
	n.uses++
	if n.loop != from && (!m.wazero || n.op != wasm.V128Const) { // wazero would keep more of them than there are registers, on the stack
		n.force = true
		if n.op == opPhi && !within(from, n.loop) {
			n.outside = true
		}
	}
	if !n.live {
		n.live = true
		m.work = append(m.work, n)
	}
}

func within(l, outer *loop) bool {
	for ; depthOf(l) > depthOf(outer); l = l.parent {
	}
	return l == outer
}

// region marks what the effects of a region need.
func (m *marker) region(r *region) {
	for _, i := range r.items {
		switch i.kind {
		case itemNode, itemEdge, itemBr, itemBlock, itemLoop, itemTurn:
		case itemSlot:
			m.slots[i.offset] = append(m.slots[i.offset], i)
		default:
			for _, n := range append([]*node{i.node, i.addr}, i.args...) {
				if n != nil {
					m.use(n, i.loop)
				}
			}
		}
		for _, inner := range []*region{i.region, i.other} {
			if inner != nil {
				m.region(inner)
			}
		}
	}
}

func (m *marker) run() {
	for len(m.work) > 0 {
		n := m.work[len(m.work)-1]
		m.work = m.work[:len(m.work)-1]
		for _, a := range n.args {
			if a != nil {
				m.use(a, n.loop)
			}
		}
		for i, v := range n.in {
			if v.find() != n {
				m.use(v, n.inLoops[i])
			}
		}
		if n.op == opSlot && !m.read[n.imm] {
			m.read[n.imm] = true
			for _, i := range m.slots[n.imm] {
				m.use(i.node, i.loop)
				m.use(i.addr, i.loop)
			}
		}
	}
}

// emitter writes the code of a function.
type emitter struct {
	code    []byte
	locals  []wasm.ValType
	params  int
	free    map[wasm.ValType][]int
	pending map[int][]*node // loads that are not written yet, by the memory they read
	labels  []*label        // of the blocks around the code, nil for those nobody jumps out of
	loop    *loop
	slots   map[uint32]uint32
	frames  [2]uint32 // where they begin, and how long one is
	turns   *turns
	wazero  bool
	cost    float64 // an estimate of how many instructions a call executes
	weight  float64 // an estimate of how often a call executes the present code
	costs   []float64
}

func (e *emitter) op(o wasm.Op) {
	e.code = o.Append(e.code)
	e.cost += e.weight
}
func (e *emitter) num(v uint32) { e.code = wasm.AppendU32(e.code, v) }

func (e *emitter) local(o wasm.Op, n int) {
	e.op(o)
	e.num(uint32(n))
}

// newLocal returns one more than the number of a local that is free.
func (e *emitter) newLocal(t wasm.ValType) int {
	if list := e.free[t]; len(list) > 0 {
		e.free[t] = list[:len(list)-1]
		return list[len(list)-1]
	}
	e.locals = append(e.locals, t)
	if len(e.locals) > maxLocals {
		panic(errTooLarge)
	}
	return e.params + len(e.locals)
}

// push leaves a value on the stack.
func (e *emitter) push(n *node) {
	n = n.find()
	switch {
	case n.op == opParam:
		e.local(wasm.LocalGet, int(n.imm))
		return
	case n.op == opPhi && n.local == 0:
		n.local = e.newLocal(n.typ)
	}
	if n.local == 0 {
		e.compute(n)
		return
	}
	e.local(wasm.LocalGet, n.local-1)
	n.uses--
	if n.uses == 0 && n.loop == e.loop && n.op != opPhi {
		e.free[n.typ] = append(e.free[n.typ], n.local)
	}
}

// compute writes the code of a node.
func (e *emitter) compute(n *node) {
	n.done = true
	for i, a := range n.args {
		if a != nil {
			e.push(a)
			e.plain(n, i)
		}
	}
	switch n.op {
	case opFrames, opFrame:
		e.op(wasm.I32Const)
		e.code = wasm.AppendS32(e.code, int32(e.frames[n.op-opFrames]))
		return
	case opSlot:
		e.memory(loadOp(n.typ), e.slots[n.imm])
		return
	}
	if isLoad(n.op) {
		e.memory(n.op, n.imm)
		if n.op == wasm.V128Load32Lane {
			e.code = append(e.code, n.lanes[0])
		}
		return
	}
	e.op(n.op)
	switch n.op {
	case wasm.I32Const:
		e.code = wasm.AppendS32(e.code, int32(n.imm))
	case wasm.F32Const:
		e.code = binary.LittleEndian.AppendUint32(e.code, n.imm)
	case wasm.V128Const, wasm.I8x16Shuffle:
		e.code = append(e.code, n.lanes[:]...)
	case wasm.F32x4ExtractLane, wasm.I32x4ExtractLane, wasm.F32x4ReplaceLane, wasm.I32x4ReplaceLane:
		e.code = append(e.code, byte(n.imm))
		e.cost += float64(laneCost * e.weight)
	}
}

func isLoad(o wasm.Op) bool {
	switch o {
	case wasm.I32Load, wasm.F32Load, wasm.V128Load, wasm.V128Load32Splat, wasm.V128Load32Zero, wasm.V128Load64Zero, wasm.V128Load32Lane, wasm.AtomicLoad:
		return true
	}
	return false
}

func (e *emitter) memory(o wasm.Op, offset uint32) {
	e.op(o)
	e.num(2)
	e.num(offset)
}

// keep computes a node into a local.
func (e *emitter) keep(n *node) {
	if n.done {
		return
	}
	e.compute(n)
	n.local = e.newLocal(n.typ)
	e.local(wasm.LocalSet, n.local-1)
}

// node comes to the place of a node: it is computed here, unless its only use can do that.
func (e *emitter) node(n *node) {
	switch {
	case !n.live || n.done || n.to != nil:
	case n.uses > 1 || n.force || n.typ == wasm.V128 && n.consumes():
		e.keep(n)
	case n.class != 0:
		e.pending[n.class] = append(e.pending[n.class], n)
	}
}

// consumes reports whether an operand of an operation is a vector that was loaded. Such an operation is done at its place: if many of them
// were left to the end, the vectors that they need would be more than there are registers.
func (n *node) consumes() bool {
	return n.class == 0 && slices.ContainsFunc(n.args[:], func(a *node) bool { return a != nil && a.find().class != 0 && a.find().typ == wasm.V128 })
}

// flush computes the loads that wait to be used, of one memory or, with -1, of all.
func (e *emitter) flush(class int) {
	for c, list := range e.pending {
		if class < 0 || c == class {
			for _, n := range list {
				e.keep(n)
			}
			delete(e.pending, c)
		}
	}
}

func (e *emitter) region(r *region) {
	weight := e.weight
	if r.rare {
		e.weight = 0
	}
	for i := range r.items {
		e.item(&r.items[i])
	}
	e.flush(-1)
	e.weight = weight
}

func (e *emitter) item(i *item) {
	switch i.kind {
	case itemNode:
		e.node(i.node)
	case itemStore:
		e.store(i)
	case itemCall:
		e.call(i)
	case itemSlot:
		if at, ok := e.slots[i.offset]; ok {
			e.push(i.addr)
			e.push(i.node)
			e.flush(slotClass)
			e.memory(storeOp(i.node.typ), at)
		}
	case itemEdge:
		e.sets(i.edge)
	case itemBr:
		e.sets(i.edge)
		e.flush(-1) // what is behind the label may need it
		e.local(wasm.Br, e.distance(i.label))
	case itemBlock, itemLoop:
		e.block(i)
	case itemBack:
		e.back(i)
	case itemIf:
		e.choice(i)
	case itemReturn:
		for _, n := range i.args {
			e.push(n)
		}
		e.op(wasm.Return)
	case itemTurn:
		e.turn(i.offset)
	}
}

func storeOp(t wasm.ValType) wasm.Op {
	switch t {
	case wasm.F32:
		return wasm.F32Store
	case wasm.V128:
		return wasm.V128Store
	}
	return wasm.I32Store
}

func (e *emitter) store(i *item) {
	for _, n := range append([]*node{i.addr, i.node}, i.args...) {
		if n != nil {
			e.push(n)
		}
	}
	e.flush(i.class)
	switch i.op {
	case wasm.MemoryCopy:
		e.op(i.op)
		e.code = append(e.code, 0, 0)
		return
	case wasm.MemoryFill:
		e.op(i.op)
		e.code = append(e.code, 0)
		return
	}
	e.memory(i.op, i.offset)
	if i.op == wasm.V128Store64Lane || i.op == wasm.V128Store32Lane {
		e.code = append(e.code, byte(i.lane))
	}
	for _, r := range i.results { // of atomics
		e.result(r)
	}
}

// result takes a result from the stack.
func (e *emitter) result(n *node) {
	n.local = e.newLocal(n.typ)
	n.done = true
	e.local(wasm.LocalSet, n.local-1)
}

func (e *emitter) call(i *item) {
	e.flush(-1)
	for _, n := range i.args {
		e.push(n)
	}
	e.local(wasm.Call, int(i.offset))
	e.cost += float64(e.weight * e.costs[i.offset])
	for _, v := range slices.Backward(i.results) {
		e.result(v)
	}
}

// sets assigns the phis of an edge, all at once.
func (e *emitter) sets(ed *edge) {
	live := ed.live()
	for _, s := range live {
		e.push(s.value)
	}
	for _, s := range slices.Backward(live) {
		if s.phi.local == 0 {
			s.phi.local = e.newLocal(s.phi.typ)
		}
		e.local(wasm.LocalSet, s.phi.local-1)
	}
}

func (ed *edge) live() (list []set) {
	for _, s := range ed.sets {
		if s.phi.live && s.phi.to == nil && s.value.find() != s.phi {
			list = append(list, s)
		}
	}
	return list
}

// distance counts the blocks out to that of a label.
func (e *emitter) distance(l *label) int {
	for i, v := range slices.Backward(e.labels) {
		if v == l {
			return len(e.labels) - 1 - i
		}
	}
	panic("compile: jump out of nowhere")
}

func (e *emitter) enter(o wasm.Op, l *label) {
	e.op(o)
	e.code = append(e.code, wasm.BlockEmpty)
	e.labels = append(e.labels, l)
}

func (e *emitter) leave() {
	e.op(wasm.End)
	e.labels = e.labels[:len(e.labels)-1]
}

const (
	someTurns = 16 // a guess of how often the body of a loop runs of which nothing is known
	laneCost  = 4  // how many instructions more an access to one component of a vector costs
)

func (e *emitter) block(i *item) {
	e.flush(-1)
	if i.kind == itemBlock {
		if i.label.jumps == 0 {
			e.region(i.region)
			return
		}
		e.enter(wasm.Block, i.label)
		e.region(i.region)
		e.leave()
		return
	}
	for _, n := range i.loop.pre {
		e.node(n)
	}
	e.flush(-1)
	e.enter(wasm.Loop, i.label)
	e.loop = i.loop
	weight := e.weight
	if i.loop.turns > 0 {
		e.weight *= float64(i.loop.turns)
	} else {
		e.weight *= someTurns
	}
	e.region(i.region)
	e.loop, e.weight = i.loop.parent, weight
	e.leave()
}

// back writes the end of a loop. Phis may be assigned before the branch unless what follows the loop needs what they were.
func (e *emitter) back(i *item) {
	live := i.edge.live()
	if i.node == nil {
		e.sets(i.edge)
		e.local(wasm.Br, e.distance(i.label))
		return
	}
	e.push(i.node)
	if i.otherwise {
		e.op(wasm.I32Eqz)
	}
	if slices.ContainsFunc(live, func(s set) bool { return s.phi.outside }) {
		e.enter(wasm.If, nil)
		e.sets(i.edge)
		e.local(wasm.Br, e.distance(i.label))
		e.leave()
		return
	}
	e.sets(i.edge)
	e.local(wasm.BrIf, e.distance(i.label))
}

// choice writes an if, which is a conditional branch where that is all it does.
func (e *emitter) choice(i *item) {
	first, second := effective(i.region), effective(i.other)
	if len(first)+len(second) == 0 {
		return
	}
	e.push(i.node)
	e.flush(-1)
	if len(first) == 1 && len(second) == 0 && first[0].kind == itemBr {
		e.local(wasm.BrIf, e.distance(first[0].label))
		return
	}
	if len(first) == 0 {
		e.op(wasm.I32Eqz)
		i.region, i.other, second = i.other, i.region, first
	}
	e.enter(wasm.If, nil)
	e.region(i.region)
	if len(second) > 0 {
		e.op(wasm.Else)
		e.region(i.other)
	}
	e.leave()
}

// effective lists the items of a region that do something.
func effective(r *region) (list []*item) {
	for k := range r.items {
		i := &r.items[k]
		switch i.kind {
		case itemNode:
			if n := i.node; !n.live || n.done || n.to != nil || n.uses == 1 && !n.force && n.class == 0 {
				continue
			}
		case itemEdge, itemBr:
			if n := len(i.edge.live()); n == 0 && i.kind == itemEdge {
				continue
			} else if n > 0 {
				list = append(list, i) // once more for what it assigns
			}
		}
		list = append(list, i)
	}
	return list
}
