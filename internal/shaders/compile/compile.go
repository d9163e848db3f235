// SPDX-License-Identifier: Apache-2.0

// Package compile translates WGSL compute shaders to WebAssembly with vectors of 128 bits.
//
// Invocations run one after another, or four at a time, which is a program of its own that package lanes makes: a dispatch is a loop over
// workgroups, a workgroup a loop over invocations. A function is first written as a graph of nodes in SSA form (node.go, flow.go), from
// which code is made (emit.go): operations that are equal are computed once, what a loop does not change before it, and what nothing
// needs not at all. WebAssembly engines repeat some of that, but not all of them do.
package compile

import (
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// Options say what code is made for.
type Options struct {
	Exact   bool   // the text promises that no index is out of range
	Guard   bool   // count the turns of loops and watch the word that stops the kernel
	Relaxed bool   // fma may round once or twice; the module needs relaxed SIMD
	Fuse    bool   // with Relaxed, vectors are multiplied and added at once wherever the text does both
	Apart   string // a function that the kernel calls, whose own operations are rounded one by one in any case
	Threads bool   // other threads run workgroups of the same dispatch: atomics of storage are atomic instructions
	Wazero  bool   // prefer what wazero's compiler translates well to what V8 does

	// Widen rewrites a program to run four invocations at a time, as package lanes does, and returns nil where it does not. The code is that
	// of the program or of what Widen returns, whichever is likely to take less time. A nil Widen leaves the second out, as Exact does.
	Widen  func(*ir.Program) *ir.Program
	Always bool // take what Widen returns, for tests
}

// Module is a kernel as a WebAssembly module. It imports the memory "env"."memory", which [Share] makes a shared one, and exports
//
//	run(args, scratch, from, to i32) i32
//
// which runs the workgroups from number from to before number to, of which those along x follow each other. Scratch is the address of
// so many bytes of the thread's own. Args is that of words of 32 bits, aligned to 16 bytes: 0 to 2 are the workgroup counts, 3 the
// address of the parameter block, of 1024 bytes, 4 that of a word which is not 0 when the kernel is to stop, 5 how many turns the loops
// of a run may take, where 0 is no limit, 6 and 7 are 0. Then follow the address and the size in bytes of each of Bindings, those of
// storage. The result is 0 when all is done, 1 if the run was stopped, and 2 after too many turns.
type Module struct {
	Wasm     []byte
	Scratch  int
	Size     [3]int    // of a workgroup
	Params   int       // the binding of the parameter block, -1 if there is none
	Bindings []Binding // of storage, in order
	Barriers bool
	cost     float64
}

// Binding is a storage binding of a kernel.
type Binding struct {
	Binding int
	Write   bool
	Min     int // how many bytes it has to have: nothing is run with less
	v       *ir.Var
}

// The limits of a module. Those of engines are in https://webassembly.github.io/spec/js-api/#limits.
const (
	maxLocals   = 40000
	maxCode     = 4 << 20
	maxScratch  = 64 << 20
	maxBudget   = 1 << 20 // nodes, items and cells
	maxWork     = 1 << 18 // nodes of package ir after inlining
	maxInline   = 400     // those of a function that is inlined wherever it is called
	maxCells    = 4096    // of a value
	maxPromoted = 512     // of a variable in locals
	worth       = 0.83    // how much of the instructions four invocations at a time may take, of what one after another does
	maxBranches = 8192    // blocks, branches and loops: wazero takes time that grows with their square, some seconds for these
)

var (
	errTooLarge = fault.Fail("compile", fault.ErrLimit, "the program is too large")
	errInternal = fault.Fail("compile", fault.ErrCompile, "internal error of the code generator")
)

// Compile translates an entry point of a text. Its errors are those of the front end, [fault.ErrCompile], and [fault.ErrLimit].
func Compile(source, entry string, o Options) (*Module, error) {
	p, err := front.Parse(source, entry)
	if err != nil {
		return nil, fault.Fail("compile", fault.ErrCompile, err.Error())
	}
	return Generate(p, o)
}

// Generate translates a program.
func Generate(p *ir.Program, o Options) (*Module, error) {
	mod, err := generate(p, o)
	if o.Widen == nil || o.Exact || err != nil { // invocations that are masked may have indices out of range
		return mod, err
	}
	if wide := o.widen(p); wide != nil {
		if four, err := generate(wide, o); err == nil && (o.Always || four.cost < worth*mod.cost) {
			return four, nil
		}
	}
	return mod, nil
}

// widen is Widen, whose faults must not fail a kernel that compiles without it.
func (o *Options) widen(p *ir.Program) (wide *ir.Program) {
	defer func() {
		if !o.Always && recover() != nil {
			wide = nil
		}
	}()
	return o.Widen(p)
}

// generate translates a program as it is.
func generate(p *ir.Program, o Options) (mod *Module, err error) {
	m := &generator{
		o: o, prog: p, layouts: map[*ir.Type][]cell{}, counts: map[*ir.Type]int{}, facts: map[*ir.Func]*facts{}, memory: map[*ir.Var]bool{},
		numbers: map[*ir.Func]int{}, workgroup: map[*ir.Var]uint32{}, words: map[*ir.Var]int{}, budget: maxBudget,
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *fault.OpError:
			mod, err = nil, e
		default: // a mistake of ours must not end the program of whoever has the kernel
			mod, err = nil, errInternal
		}
	}()
	if err := m.analyse(p.Funcs); err != nil {
		return nil, err
	}
	mod = &Module{Size: p.Size, Params: -1, Barriers: m.barriers()}
	m.variables(mod)
	run := m.run()
	module := wasm.Module{Memory: wasm.Memory{Module: "env", Name: "memory"}, Funcs: append(m.funcs, run)}
	mod.cost = m.costs[len(m.costs)-1]
	mod.Wasm, mod.Scratch, mod.Bindings = module.Encode(), int(m.reserved), m.bindings
	if len(mod.Wasm) > maxCode {
		return nil, errTooLarge
	}
	return mod, nil
}

// Share returns the text of a module for a memory that is shared, of up to 4 GiB.
func Share(wasm []byte) []byte {
	const (
		own    = "\x0f\x01\x03env\x06memory\x02\x00\x00"             // the section of imports: its size, and at its end no flags and a minimum of 0
		shared = "\x12\x01\x03env\x06memory\x02\x03\x00\x80\x80\x04" // with a maximum of 65536 pages
	)
	before, behind, _ := strings.Cut(string(wasm), own)
	return []byte(before + shared + behind)
}

// generator makes a module.
type generator struct {
	o         Options
	prog      *ir.Program
	layouts   map[*ir.Type][]cell
	counts    map[*ir.Type]int
	facts     map[*ir.Func]*facts
	memory    map[*ir.Var]bool // variables that are in memory
	funcs     []wasm.Func
	costs     []float64 // of funcs and of run: about how many instructions a call executes
	numbers   map[*ir.Func]int
	workgroup map[*ir.Var]uint32 // where in scratch memory they are
	zeroed    int                // bytes of those
	words     map[*ir.Var]int    // of storage: the word of args with the address
	bindings  []Binding
	reserved  uint32
	budget    int
	effort    int64 // what was spent, and what else the code is likely to take
	branches  int
	ids       int
}

func (m *generator) nextID() int {
	m.ids++
	return m.ids
}

// spend ends the compilation of a program that grows too large.
func (m *generator) spend(n int) {
	m.effort += int64(n)
	m.budget -= n
	if m.budget < 0 {
		panic(errTooLarge)
	}
}

// branch counts a block, a branch or a loop.
func (m *generator) branch() {
	most := maxBranches
	if m.prog.Lanes { // there is the program that runs one invocation after another
		most /= 4
	}
	if m.branches++; m.branches > most {
		panic(errTooLarge)
	}
}

// reserve returns the offset of so many bytes of scratch memory.
func (m *generator) reserve(size int) uint32 {
	at := m.reserved
	if size > maxScratch {
		panic(errTooLarge)
	}
	m.reserved += uint32(size+15) &^ 15
	if m.reserved > maxScratch {
		panic(errTooLarge)
	}
	return at
}

// variables gives those of the module their places.
func (m *generator) variables(mod *Module) {
	for _, v := range m.prog.Vars {
		switch v.Space {
		case ir.Workgroup:
			m.workgroup[v] = m.reserve(v.Type.Size)
			m.zeroed = int(m.reserved)
		case ir.Uniform:
			mod.Params = v.Binding
		case ir.Storage:
			m.bind(Binding{Binding: v.Binding, Write: v.Write, Min: v.Type.Size, v: v})
		case ir.Private:
			if m.count(v.Type) > maxPromoted {
				m.memory[v] = true
			}
		}
	}
	for i, b := range m.bindings {
		m.words[b.v] = argStorage + 2*i
	}
}

// bind adds a binding to those there are, in the order of their numbers. There are few, and package slices' sort takes 9 KB of a program.
func (m *generator) bind(b Binding) {
	m.bindings = append(m.bindings, b)
	l := m.bindings
	for i := len(l) - 1; i > 0 && l[i].Binding < l[i-1].Binding; i-- {
		l[i], l[i-1] = l[i-1], l[i]
	}
}
