// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// function is a function of the module while it is made.
type function struct {
	gen     *generator
	table   map[key]*node
	region  *region
	root    *region
	loop    *loop
	dead    bool     // the present code is never reached
	quartet *quartet // the invocations that are run together, if it is known that they are in range

	cur    []*node // what each cell has
	log    []change
	logged []int // where the last change of each cell is in the log
	mark   int   // where the log begins for the innermost block or arm

	wholes map[*node]*node // of small whole numbers the sum that has them in its low bits
	values map[*ir.Value][]*node
	kept   map[*ir.Value]int // the first cell of values that outlive a region; see uniform.go
	places map[*ir.Var]place
	spills map[ir.Expr]*variable // constants
	epochs []int                 // how often each memory was written
	to     targets
	params []*node
	shared *group // of kernels with barriers
	apart  bool   // in the function Apart of the options
}

// Memories that are no variable's.
const (
	neverWritten = 0
	slotClass    = 1
	anyClasses   = 2
)

func (m *generator) newFunction(params ...wasm.ValType) *function {
	g := &function{
		gen: m, table: map[key]*node{}, root: &region{}, values: map[*ir.Value][]*node{}, places: map[*ir.Var]place{},
		epochs: make([]int, anyClasses), spills: map[ir.Expr]*variable{}, wholes: map[*node]*node{},
	}
	g.region = g.root
	for i, t := range params {
		g.params = append(g.params, &node{op: opParam, typ: t, imm: uint32(i), region: g.root})
	}
	return g
}

func (g *function) args() *node    { return g.params[0] }
func (g *function) scratch() *node { return g.params[1] }

func (g *function) newClass() int {
	g.epochs = append(g.epochs, 0)
	return len(g.epochs) - 1
}

// argument loads a word of what the kernel is given.
func (g *function) argument(word int) *node {
	return g.make(&node{op: wasm.I32Load, typ: wasm.I32, args: [3]*node{g.args()}, imm: uint32(4 * word)})
}

// global makes a variable of the module known to the function.
func (g *function) global(v *ir.Var) *variable {
	va := &variable{v: v, cell: -1}
	switch v.Space {
	case ir.Uniform:
		va.addr = g.argument(argParams)
	case ir.Workgroup:
		va.class = g.newClass()
		va.addr, va.offset = g.scratch(), g.gen.workgroup[v]
	case ir.Storage:
		va.class = g.newClass()
		word := g.gen.words[v]
		va.addr = g.argument(word)
		if at, elem := openArray(v.Type); elem != nil {
			size := g.op2(wasm.I32Sub, g.argument(word+1), g.i32(uint32(at)))
			va.length = g.op2(wasm.I32DivU, size, g.i32(uint32(elem.Stride)))
			va.last = g.op2(wasm.I32Sub, va.length, g.i32(1))
		}
	default:
		panic(errInternal)
	}
	return va
}

// openArray returns where in a binding the array without a length begins, if there is one.
func openArray(t *ir.Type) (offset int, array *ir.Type) {
	if t.Kind == ir.Struct {
		last := t.Fields[len(t.Fields)-1]
		offset, t = last.Offset, last.Type
	}
	if t.Kind == ir.Array && t.Len == 0 {
		return offset, t
	}
	return 0, nil
}

// call calls a function of the program, or puts its body here.
func (g *function) call(e *ir.Call) []*node {
	args := make([][]*node, len(e.Args))
	for i, a := range e.Args {
		if a != nil {
			args[i] = g.expr(a)
		}
	}
	if !g.gen.inlined(e.Func) {
		return g.callFunction(e.Func, args)
	}
	for i, p := range e.Func.Params {
		if p.Var != nil {
			g.places[p.Var] = g.ref(e.Refs[i])
		}
	}
	return g.inline(e.Func, args)
}

// inline puts the body of a function here.
func (g *function) inline(f *ir.Func, args [][]*node) []*node {
	for i, p := range f.Params {
		if p.Var == nil {
			g.values[p.Value] = args[i]
		}
	}
	old := g.to
	n := 0
	if f.Result != nil {
		n = g.gen.count(f.Result)
	}
	result := g.newCells(n)
	if n > 0 {
		copy(g.cur[result:], g.zeros(f.Result))
	}
	g.to = targets{ret: g.begin(), result: result}
	g.bodyOf(f, true)
	g.end(g.to.ret)
	g.to = old
	return append([]*node(nil), g.cur[result:result+n]...)
}

// bodyOf puts the statements of a function here.
func (g *function) bodyOf(f *ir.Func, inlined bool) {
	outer := g.apart
	g.apart = f.Name == g.gen.o.Apart
	g.list(f.Body, inlined)
	g.apart = outer
}

// callFunction calls a function of the module.
func (g *function) callFunction(f *ir.Func, args [][]*node) []*node {
	number := g.gen.number(f)
	g.gen.effort += int64(len(g.gen.funcs[number].Code) / bytesPerNode)
	i := item{kind: itemCall, offset: uint32(number), args: []*node{g.args(), g.scratch()}}
	for _, a := range args {
		i.args = append(i.args, a...)
	}
	if f.Result != nil {
		for _, c := range g.gen.cells(f.Result) {
			i.results = append(i.results, &node{op: opResult, typ: valType(c.t), loop: g.loop, region: g.region})
		}
	}
	g.emit(i)
	for v, stored := range g.gen.facts[f].stores {
		if stored && v.Space != ir.Function {
			g.epochs[g.ref(&ir.Ref{Var: v, T: v.Type}).va.class]++
		}
	}
	return append([]*node(nil), i.results...)
}

// number returns that of a function of the module, which it writes when it is called for the first time.
func (m *generator) number(f *ir.Func) int {
	if n, ok := m.numbers[f]; ok {
		return n
	}
	params := []wasm.ValType{wasm.I32, wasm.I32}
	for _, p := range f.Params {
		for _, c := range m.cells(p.Value.Type) {
			params = append(params, valType(c.t))
		}
	}
	g := m.newFunction(params...)
	at := 2
	for _, p := range f.Params {
		n := m.count(p.Value.Type)
		g.values[p.Value] = append([]*node(nil), g.params[at:at+n]...)
		at += n
	}
	g.bodyOf(f, false)
	var results []wasm.ValType
	if f.Result != nil {
		for _, c := range m.cells(f.Result) {
			results = append(results, valType(c.t))
		}
		if !g.dead {
			g.emit(item{kind: itemReturn, args: g.zeros(f.Result)})
		}
	}
	made := m.write(g, nil)
	made.Type = wasm.Type{Params: params, Results: results}
	if f.Result != nil {
		made.Code = wasm.Unreachable.Append(made.Code)
	}
	m.numbers[f] = len(m.funcs)
	m.funcs = append(m.funcs, made)
	return m.numbers[f]
}

// write makes the code of a function.
func (m *generator) write(g *function, guard *turns) wasm.Func {
	mk := marker{slots: map[uint32][]item{}, read: map[uint32]bool{}, wazero: m.o.Wazero}
	mk.region(g.root)
	mk.run()
	e := emitter{
		wazero: m.o.Wazero,
		params: len(g.params), free: map[wasm.ValType][]int{}, pending: map[int][]*node{}, slots: map[uint32]uint32{}, turns: guard,
		weight: 1, costs: m.costs,
	}
	if g.shared != nil {
		e.frames = g.shared.layout(m, e.slots, mk.read)
	}
	if guard != nil {
		e.startTurns()
	}
	e.region(g.root)
	if len(e.code) > maxCode {
		panic(errTooLarge)
	}
	m.costs = append(m.costs, e.cost) // of the function that is the next one, or run
	return wasm.Func{Locals: e.locals, Code: e.code}
}

// spill keeps a value in memory, to have one of its elements whose number is computed. A constant is written once, at the beginning.
func (g *function) spill(e ir.Expr, x []*node) *variable {
	if va := g.spills[e]; va != nil {
		return va
	}
	t := e.Type()
	va := &variable{v: &ir.Var{Type: t}, cell: -1, addr: g.scratch(), offset: g.gen.reserve(t.Size)}
	if _, constant := e.(*ir.Const); constant {
		region, loop := g.region, g.loop
		g.region, g.loop = g.root, nil
		g.store(va.whole(), x)
		g.region, g.loop = region, loop
		g.epochs[neverWritten] = 0
		g.spills[e] = va
		return va
	}
	va.class = g.newClass()
	g.store(va.whole(), x)
	return va
}
