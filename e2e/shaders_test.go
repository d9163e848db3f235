// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
)

// programs collects kernels by their text.
type programs map[string]shaders.Program

var types = []fuse.Type{fuse.F32, fuse.I32, fuse.U32, fuse.F16}

// chain reads operands in all ways. What it computes of them is up to launch.
func chain(t fuse.Type, store fuse.Class) *fuse.Func {
	f := &fuse.Func{Type: t.Compute(), Store: fuse.View{Type: t, Class: store}, Scalars: 1, Flat: store != fuse.Vector}
	f.Slots = []fuse.Slot{{Type: t, Vec: store == fuse.Vector}, {Type: t, Vec: true}, {Type: t}}
	f.Loads = []fuse.View{
		{Type: t, Class: fuse.Vector, Slot: 1},
		{Type: t, Class: fuse.Gather, Slot: 2},
		{Type: t, Class: fuse.Column, Slot: 2},
		{Type: t, Class: fuse.Gather},
	}
	f.Code = []fuse.Instr{{Op: fuse.OpAcc, Type: f.Type}, {Op: fuse.OpScalar, Type: f.Type}}
	for i := range f.Loads {
		f.Code = append(f.Code, fuse.Instr{Op: fuse.OpLoad, X: uint8(i), Type: f.Type})
	}
	return f
}

// crossed is a function whose first operand lies the other way round, aligned to vectors or not.
func crossed(f *fuse.Func, aligned bool) *fuse.Func {
	c := *f
	c.Loads = slices.Clone(f.Loads)
	c.Loads[0].Class = fuse.Across
	if aligned {
		c.Loads[0].Class = fuse.Crossed
	}
	return &c
}

// placing reads a matrix at rows and columns that are computed, of numbers of other types.
func placing(t fuse.Type) *fuse.Func {
	other := [...]fuse.Type{
		fuse.F32: fuse.I32, fuse.I32: fuse.U32, fuse.U32: fuse.F16, fuse.F16: fuse.I32,
		fuse.I8: fuse.F32, fuse.U8: fuse.I16, fuse.I16: fuse.U8, fuse.U16: fuse.Bool, fuse.Bool: fuse.F16,
	}[t]
	f := &fuse.Func{Type: t.Compute(), Store: fuse.View{Type: t, Class: fuse.Vector}, Scalars: 1}
	f.Slots = []fuse.Slot{{Type: t, Vec: true}, {Type: other}, {Type: other, Vec: true}}
	f.Loads = []fuse.View{{Type: other, Class: fuse.Indexed, Slot: 1}, {Type: other, Class: fuse.Vector, Slot: 2}, {Type: t, Class: fuse.Indexed}}
	f.Code = []fuse.Instr{
		{Op: fuse.OpRow, Type: fuse.I32},
		{Op: fuse.OpCol, Type: fuse.I32},
		{Op: fuse.OpScalar, Type: fuse.I32},
		{Op: fuse.OpAdd, X: 1, Y: 2, Type: fuse.I32},
		{Op: fuse.OpAt, Y: 0, Z: 3, Type: other.Compute()},
		{Op: fuse.OpLoad, X: 1, Type: other.Compute()},
		{Op: fuse.OpMax, X: 4, Y: 5, Type: other.Compute()},
		{Op: fuse.OpConvert, X: 6, Y: uint8(t), Type: f.Type},
		{Op: fuse.OpAt, X: 2, Y: 3, Z: 0, Type: f.Type},
		{Op: fuse.OpSub, X: 7, Y: 8, Type: f.Type},
		{Op: fuse.OpRow, Type: fuse.I32},
		{Op: fuse.OpCol, Type: fuse.I32},
	}
	for range 5 {
		f.Code = append(f.Code, fuse.Instr{Op: fuse.OpConvert, X: 2, Y: uint8(fuse.U32), Type: fuse.U32})
	}
	f.Code = append(
		f.Code, fuse.Instr{Op: fuse.OpRandom, X: 10, Type: fuse.U32}, fuse.Instr{Op: fuse.OpConvert, X: 17, Y: uint8(t), Type: f.Type},
		fuse.Instr{Op: fuse.OpAdd, X: 9, Y: 18, Type: f.Type},
	)
	return f
}

// groups are the operations that a type has, as many in a group as a product can take.
func groups(t fuse.Type) (list [][]fuse.Op) {
	const most = 24
	calls := 0
	for op := fuse.OpCopy; op.Arity() > 0; op++ {
		if !op.Takes(t) {
			continue
		}
		if calls += op.Calls(); list == nil || calls > most || len(list[len(list)-1]) == most {
			list, calls = append(list, nil), op.Calls()
		}
		list[len(list)-1] = append(list[len(list)-1], op)
	}
	return list
}

// computing is a chain of operations, others for each kernel.
func (p programs) computing(f *fuse.Func) *fuse.Func {
	g := *f
	g.Code = slices.Clone(f.Code)
	all := groups(f.Type)
	for _, op := range all[len(p)%len(all)] {
		last := uint8(len(g.Code) - 1)
		g.Code = append(g.Code, fuse.Instr{Op: op, X: last, Y: last - 1, Z: last - 2, Type: g.Type})
	}
	return &g
}

// launch adds the kernel of a launch with a function, which is nil for a kernel that has none.
func (p programs) launch(t *testing.T, l *kernels.Launch, f *fuse.Func) {
	t.Helper()
	if f != nil && f.Scalars > 0 && f.Code[0].Op == fuse.OpAcc { // a chain
		f = p.computing(f)
	}
	k := l.Program(f)
	p[k.Source] = k
}

// addSparse adds the kernels of sparse matrices, which know no binary16.
func addSparse(t *testing.T, p programs) {
	t.Helper()
	p.launch(t, (&kernels.Scatter{Count: 1}).Launch(), nil)
	for _, et := range []fuse.Type{fuse.F32, fuse.I32, fuse.U32} {
		for _, f := range []*fuse.Func{chain(et, fuse.Vector), chain(et, fuse.Gather)} {
			for _, placed := range []bool{false, true} {
				for _, d := range []*kernels.Device{&kernels.Portable, {Software: true}} {
					r := kernels.SparseRows{Placed: placed, Rows: 1, Cols: 16}
					p.launch(t, r.Launch(et, d), f)
				}
			}
			p.launch(t, kernels.SparseSum(1, 1), f)
		}
	}
}

// addFactors adds the kernels of decompositions.
func addFactors(t *testing.T, p programs) {
	t.Helper()
	for _, d := range []*kernels.Device{&kernels.Portable, {Software: true}} {
		for _, set := range []bool{false, true} {
			p.launch(t, (&kernels.Eliminate{Items: 1, Pivot: set}).Launch(d), nil)
			p.launch(t, (&kernels.Eliminate{Items: 1, Pivot: true, Jordan: set}).Launch(d), nil)
			p.launch(t, (&kernels.Swap{Cols: 1, Reverse: set}).Launch(), nil)
			p.launch(t, (&kernels.Invert{Rows: 1, Unit: set}).Launch(), nil)
		}
		for cols := 1; cols <= kernels.FactorBlock; cols *= 2 {
			p.launch(t, kernels.Reflect(d, 1, 1, cols, 1, 0), nil)
		}
		p.launch(t, (&kernels.Rotate{Rows: kernels.RotateRows}).Launch(d), nil)
	}
}

// addFolds adds every pass of every reduction. Passes over states read bits, and those of states write them.
func addFolds(t *testing.T, p programs, et fuse.Type, f *fuse.Func) {
	for op := fuse.ReduceSum; op.Valid(); op++ {
		fold := kernels.Fold{Op: op, Of: et}
		for way := 0; way < 8 && op.Takes(et); way++ {
			g := *f
			fold.Partial, g.Bits = way&4 != 0 && fold.Bits(), fold.Bits()
			if fold.Partial {
				g = *chain(fuse.U32, f.Store.Class)
				g.Bits = true
			}
			rows, _ := kernels.FoldRows(fold, 9, 300, way&1 != 0, &kernels.Device{Software: way&2 != 0})
			p.launch(t, rows, &g)
			cols, _ := kernels.FoldCols(fold, 9, 300, way&1 != 0, &kernels.Device{Software: way&2 != 0})
			p.launch(t, cols, &g)
		}
	}
	for _, set := range []bool{false, true} {
		keys := *f
		keys.Bits = true
		p.launch(t, kernels.SortKeys(9, 300, set), &keys)
		p.launch(t, kernels.SortTake(9, 300, 300, set), f)
	}
	for _, op := range []fuse.Reduction{fuse.ReduceSum, fuse.ReduceProd} {
		p.launch(t, kernels.ScanFold(op, 9, 300), f)
		p.launch(t, kernels.Scan(op, 9, 300, 2), f)
		p.launch(t, kernels.Scan(op, 9, 100, 0), f)
	}
	runs := &fuse.Func{Type: fuse.U32, Bits: true, Code: []fuse.Instr{{Op: fuse.OpAcc, Type: fuse.U32}}, Store: fuse.View{Type: fuse.U32, Class: f.Store.Class}}
	runs.Slots = []fuse.Slot{{Type: fuse.U32, Vec: f.Store.Class == fuse.Vector}}
	p.launch(t, kernels.SortMerge(9, 300, 16, 300, &kernels.Device{}), runs)
	hot := *chain(fuse.I32, f.Store.Class)
	hot.Bits, hot.Store.Type, hot.Scalars = true, et, 0
	hot.Slots[0].Type, hot.Loads, hot.Code = et, hot.Loads[:2], []fuse.Instr{{Op: fuse.OpLoad, Type: fuse.I32}}
	p.launch(t, kernels.OneHot(et, 9, 300, 0, 1), &hot)
}

// addVariants adds what a tuner may choose beside what adapters usually compute by.
func addVariants(t *testing.T, p programs, f *fuse.Func) {
	const et = fuse.F32
	fold := kernels.Fold{Op: fuse.ReduceSum, Of: et}
	for _, size := range []int{640, 641} {
		each := map[kernels.Family]func(*kernels.Device) *kernels.Launch{
			kernels.FamilyLinear:  func(d *kernels.Device) *kernels.Launch { return kernels.Linear(size, false, et, d) },
			kernels.FamilyGrid:    func(d *kernels.Device) *kernels.Launch { return kernels.Grid(9, size, et, d) },
			kernels.FamilyBlock:   func(d *kernels.Device) *kernels.Launch { return kernels.Block(64, size, et, d) },
			kernels.FamilyRows:    func(d *kernels.Device) *kernels.Launch { l, _ := kernels.FoldRows(fold, 9, size, true, d); return l },
			kernels.FamilyCols:    func(d *kernels.Device) *kernels.Launch { l, _ := kernels.FoldCols(fold, 9, size, true, d); return l },
			kernels.FamilySoftmax: func(d *kernels.Device) *kernels.Launch { return kernels.Softmax(9, size, false, false, d) },
			kernels.FamilySparse: func(d *kernels.Device) *kernels.Launch {
				return (&kernels.SparseRows{Rows: 9, Cols: size, Entries: 90}).Launch(et, d)
			},
		}
		for _, launch := range each {
			var class kernels.Class
			var names []string
			d := kernels.Device{MaxInvocations: 256, MaxMemory: 16384}
			d.Tuned = &kernels.Tuned{Asked: func(c kernels.Class, all []string, _ string) { class, names = c, all }}
			launch(&d)
			for _, name := range names {
				d.Tuned = &kernels.Tuned{Answers: []kernels.Answer{{Class: class, Best: name}}}
				p.launch(t, launch(&d), f)
			}
		}
	}
}

// addUnaligned adds the kernels of rows that begin anywhere.
func addUnaligned(t *testing.T, p programs, et fuse.Type) {
	t.Helper()
	f := chain(et, fuse.Beside)
	for i := range f.Loads {
		if f.Loads[i].Class == fuse.Gather {
			f.Loads[i].Class = fuse.Beside
		}
	}
	for _, n := range []int{64, 65} {
		p.launch(t, kernels.Linear(n, false, et, &kernels.Portable), f)
		p.launch(t, kernels.Grid(4, n, et, &kernels.Portable), f)
	}
}

func allPrograms(t *testing.T) programs {
	p := programs{}
	addVariants(t, p, chain(fuse.F32, fuse.Vector))
	addFactors(t, p)
	addSparse(t, p)
	for _, et := range types {
		vec := chain(et, fuse.Vector)
		if et != fuse.F16 { // whose results are in words then
			addUnaligned(t, p, et)
		}
		for _, f := range []*fuse.Func{vec, chain(et, fuse.Gather)} {
			if et == fuse.F16 && f != vec {
				continue
			}
			for _, odd := range []int{0, 1} {
				p.launch(t, kernels.Linear(64+odd, false, et, &kernels.Portable), f)
				p.launch(t, kernels.Grid(4, 64+odd, et, &kernels.Portable), f)
				p.launch(t, kernels.Block(8+odd, 64+odd, et, &kernels.Portable), f)
				p.launch(t, kernels.Block(800, 640+odd, et, &kernels.Device{Software: true, SIMD: kernels.SIMD}), crossed(f, odd == 0))
			}
			p.launch(t, kernels.Grid(4, 64, et, &kernels.Portable), placing(et))
			p.launch(t, kernels.Block(8, 64, et, &kernels.Portable), placing(et))
			if et != fuse.F16 {
				addFolds(t, p, et, f)
			}
		}
		if et == fuse.F16 {
			p.launch(t, kernels.Words(3, 5, 1, 7, et.Size()), chain(et, fuse.Gather))
		}
		addProducts(t, p, et, vec)
	}
	for _, et := range []fuse.Type{fuse.I8, fuse.U8, fuse.I16, fuse.U16, fuse.Bool} {
		addPacked(t, p, et)
	}
	for _, log := range []bool{false, true} {
		for _, software := range []bool{false, true} {
			for _, cols := range []int{3, 29, 200, 2000} {
				for _, simd := range []*kernels.Special{nil, kernels.SIMD} {
					d := &kernels.Device{Software: software, SIMD: simd}
					p.launch(t, kernels.Softmax(5, cols, log, true, d), chain(fuse.F32, fuse.Vector))
				}
			}
		}
	}
	return p
}

// addPacked adds the kernels that write elements that share words; what reads them is the same text everywhere.
func addPacked(t *testing.T, p programs, et fuse.Type) {
	for _, f := range []*fuse.Func{chain(et, fuse.Vector), placing(et)} {
		p.launch(t, kernels.Linear(65, false, et, &kernels.Portable), f)
		p.launch(t, kernels.Block(8, 64, et, &kernels.Portable), f)
	}
	p.launch(t, kernels.Words(3, 5, 1, 7, et.Size()), chain(et, fuse.Gather))
	software := kernels.Portable
	software.Software = true
	for _, d := range []*kernels.Device{&kernels.Portable, &software} {
		for _, to := range []fuse.Type{et.Compute(), fuse.F32} { // factors are also read as larger numbers
			for way := range 8 {
				r := kernels.Request{M: 64, N: 64, K: 64, Device: d, Type: to}
				r.A = kernels.Operand{Type: et, Stride: 64, Vectors: true, ColMajor: way&1 != 0}
				r.B = kernels.Operand{Type: et, Stride: 64, Vectors: true, ColMajor: way&2 != 0}
				if way&4 != 0 {
					r.M, r.B.Stride, r.B.Vectors = 1, 63, false
				}
				best, err := r.Pick()
				devtest.Check(t, err)
				p.launch(t, best.First, chain(to, fuse.Vector))
			}
		}
	}
}

// packing reads the factor of a product that is packed.
func packing(et fuse.Type, colMajor bool) *fuse.Func {
	f := &fuse.Func{Type: et.Compute(), Code: []fuse.Instr{{Op: fuse.OpLoad, Type: et.Compute()}}}
	f.Store = fuse.View{Type: et.Compute(), Class: fuse.Vector}
	f.Loads = []fuse.View{{Type: et, Class: fuse.Gather, Slot: 1}}
	f.Slots = []fuse.Slot{{Type: et.Compute(), Vec: true}, {Type: et}}
	if !colMajor {
		f.Loads[0].Class, f.Slots[1].Vec = fuse.Vector, true
	}
	return f
}

// addProducts adds every variant of a product for every way in which its factors can lie in memory.
func addProducts(t *testing.T, p programs, et fuse.Type, tail *fuse.Func) {
	part := &fuse.Func{Type: et.Compute(), Code: []fuse.Instr{{Op: fuse.OpAcc, Type: et.Compute()}}, Store: fuse.View{Type: et.Compute()}}
	part.Slots = []fuse.Slot{{Type: et.Compute(), Vec: true}}
	portable, software := kernels.Portable, kernels.Portable
	software.Software = true
	narrow := software
	narrow.SwiftShader = true
	quads := narrow
	quads.Quads = true
	simd := software
	simd.SIMD = kernels.SIMD
	for _, d := range []*kernels.Device{&portable, &software, &narrow, &quads, &simd} {
		for way := range 16 {
			factor := func(col, odd bool) kernels.Operand {
				o := kernels.Operand{Type: et, ColMajor: col, Stride: 4096, Vectors: true}
				if odd {
					o.Stride++
				}
				return o
			}
			for _, rows := range []int{1, 2, 100} {
				odd := rows % 2 // products of one row have odd sizes
				r := kernels.Request{
					M: rows, N: 100 + odd, K: 4000 + odd, Device: d, Type: et.Compute(),
					A: factor(way&1 != 0, way&2 != 0), B: factor(way&4 != 0, way&8 != 0),
				}
				plans, err := r.Candidates()
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range plans {
					if c.Pack != nil {
						p.launch(t, c.Pack, packing(et, r.B.ColMajor))
					}
					if c.Parts == 1 {
						p.launch(t, c.First, tail)
					} else {
						p.launch(t, c.First, part)
						p.launch(t, c.Sum, tail)
					}
				}
			}
		}
	}
}

// TestEveryKernelCompiles gives the text of every variant of every kernel to the browser's compiler and to the native one. Short
// tests take one of each form, whatever its sizes, and every hundredth of the others.
func TestEveryKernelCompiles(t *testing.T) {
	all := allPrograms(t)
	t.Logf("%d kernels", len(all))
	if !devtest.Long() {
		all = all.sample()
		t.Logf("of which %d are tried", len(all))
	}
	t.Run("browser", all.compileInBrowser)
	t.Run("native", all.compileNatively)
}

// withoutDigits drops the sizes in names of kernels.
func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// sample returns one kernel of each form, and every hundredth of all.
func (p programs) sample() programs {
	some, names := programs{}, map[string]bool{}
	for i, source := range slices.Sorted(maps.Keys(p)) {
		form := strings.Map(withoutDigits, p[source].Name)
		if i%100 == 0 || !names[form] {
			names[form] = true
			some[source] = p[source]
		}
	}
	return some
}

// compileNatively opens a device for every few kernels: software adapters keep some memory of each.
func (p programs) compileNatively(t *testing.T) {
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(p)), 200) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			dev, err := gpu.Open(t.Context(), gpu.WithDriver(devtest.Native()))
			if err != nil {
				t.Fatal(err)
			}
			for _, source := range chunk {
				p.compile(t, dev, source)
			}
			if err := dev.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func (p programs) compile(t *testing.T, dev *gpu.Device, source string) {
	t.Helper()
	kernel := p[source]
	desc := gpu.KernelDesc{Label: kernel.Name, Source: source, Fused: true, Bindings: []driver.Access{driver.AccessParams}}
	desc.Bindings = append(desc.Bindings, slices.Repeat([]driver.Access{driver.AccessRead}, kernel.Own)...)
	desc.Bindings = append(desc.Bindings, driver.AccessReadWrite)
	desc.Bindings = append(desc.Bindings, slices.Repeat([]driver.Access{driver.AccessRead}, kernel.Inputs)...)
	if _, err := dev.Kernel(t.Context(), desc); err != nil {
		t.Errorf("%s: %v\n%s", kernel.Name, err, source)
	}
}

func (p programs) compileInBrowser(t *testing.T) {
	text, err := json.Marshal(slices.Sorted(maps.Keys(p)))
	if err != nil {
		t.Fatal(err)
	}
	page := chrome.Start(t).Open(t, chrome.Serve(t, chrome.Files{
		"/":           "<!doctype html><script src=sources.js></script>",
		"/sources.js": "const sources = " + string(text),
	}))
	page.RequireWebGPU()
	bad := chrome.Eval[[]string](page, `(async () => {
		const adapter = await navigator.gpu.requestAdapter();
		const device = await adapter.requestDevice({requiredFeatures: adapter.features.has('subgroups') ? ['subgroups'] : []});
		const bad = [];
		for (const code of sources) {
			device.pushErrorScope('validation');
			const info = await device.createShaderModule({code}).getCompilationInfo();
			const error = await device.popErrorScope();
			const first = info.messages.find((m) => m.type === 'error');
			if (first || error) bad.push((first ? first.lineNum + ': ' + first.message : error.message) + '\n' + code);
		}
		return bad;
	})()`)
	for _, b := range bad {
		message, code, _ := strings.Cut(b, "\n")
		t.Errorf("%s: %s", p[code].Name, message)
	}
}
