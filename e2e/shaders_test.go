// SPDX-License-Identifier: Apache-2.0

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
	"github.com/sublet-gpu/sublet/internal/shaders/elementwise"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
	"github.com/sublet-gpu/sublet/internal/shaders/product"
	"github.com/sublet-gpu/sublet/internal/shaders/reduce"
	"github.com/sublet-gpu/sublet/internal/shaders/softmax"
	"github.com/sublet-gpu/sublet/internal/shaders/sparse"
)

// programs collects kernels by their text.
type programs map[string]shaders.Program

func (p programs) add(t *testing.T, kernel shaders.Program, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p[kernel.Source] = kernel
}

var types = []fuse.Type{fuse.F32, fuse.I32, fuse.U32, fuse.F16}

// chain uses every operation that the type has, on operands read in all ways.
func chain(t fuse.Type, store fuse.Class) *fuse.Func {
	f := &fuse.Func{Type: t.Compute(), Store: fuse.View{Type: t, Class: store}, Scalars: 1, Flat: store != fuse.Vector}
	f.Slots = []fuse.Slot{{Type: t, Vec: store == fuse.Vector}, {Type: t, Vec: true}, {Type: t}}
	f.Loads = []fuse.View{
		{Type: t, Class: fuse.Vector, Slot: 1},
		{Type: t, Class: fuse.Gather, Slot: 2},
		{Type: t, Class: fuse.Column, Slot: 2},
		{Type: t, Class: fuse.Gather},
	}
	f.Code = []fuse.Instr{{Op: fuse.OpAcc}, {Op: fuse.OpScalar}}
	for i := range f.Loads {
		f.Code = append(f.Code, fuse.Instr{Op: fuse.OpLoad, X: uint8(i)})
	}
	for op := fuse.OpCopy; op.Arity() > 0; op++ {
		if op.Takes(f.Type) {
			last := uint8(len(f.Code) - 1)
			f.Code = append(f.Code, fuse.Instr{Op: op, X: last, Y: last - 1, Z: last - 2})
		}
	}
	return f
}

// addSparse adds the kernels of sparse matrices, which know no binary16.
func addSparse(t *testing.T, p programs) {
	t.Helper()
	for _, blocks := range []bool{false, true} {
		k, err := sparse.BuildScatter(blocks)
		p.add(t, k, err)
	}
	for _, et := range []fuse.Type{fuse.F32, fuse.I32, fuse.U32} {
		for _, f := range []*fuse.Func{chain(et, fuse.Vector), chain(et, fuse.Gather)} {
			for _, placed := range []bool{false, true} {
				k, err := sparse.BuildRows(placed, f)
				p.add(t, k, err)
			}
			k, err := sparse.BuildSum(f)
			p.add(t, k, err)
		}
	}
}

func allPrograms(t *testing.T) programs {
	p := programs{}
	addSparse(t, p)
	for _, et := range types {
		vec := chain(et, fuse.Vector)
		for _, f := range []*fuse.Func{vec, chain(et, fuse.Gather)} {
			for _, s := range []elementwise.Spec{
				{Form: elementwise.Linear},
				{Form: elementwise.Linear, Tail: true},
				{Form: elementwise.Grid, WX: 16, WY: 4},
				{Form: elementwise.Grid, WX: 16, WY: 4, Tail: true},
				{Form: elementwise.Block},
				{Form: elementwise.Block, Each: 4, Tail: true},
			} {
				if et != fuse.F16 || f == vec {
					k, err := elementwise.Build(s, f)
					p.add(t, k, err)
				}
			}
			for _, form := range []reduce.Form{reduce.Rows, reduce.Tree, reduce.Cols} {
				for op := reduce.Sum; op <= reduce.Prod; op++ {
					if et != fuse.F16 {
						k, err := reduce.Build(reduce.Spec{Form: form, Op: op, Wide: 4}, f)
						p.add(t, k, err)
					}
				}
			}
		}
		if et == fuse.F16 {
			k, err := elementwise.Build(elementwise.Spec{Form: elementwise.Words}, chain(et, fuse.Gather))
			p.add(t, k, err)
		}
		addProducts(t, p, et, vec)
	}
	for _, s := range []softmax.Spec{{Size: 16}, {Size: 16, Log: true}, {Group: true, Size: 64}, {Group: true, Size: 256, Log: true}} {
		k, err := softmax.Build(s, chain(fuse.F32, fuse.Vector))
		p.add(t, k, err)
	}
	return p
}

// addProducts adds every variant of a product for every way in which its factors can lie in memory.
func addProducts(t *testing.T, p programs, et fuse.Type, tail *fuse.Func) {
	portable, software := plan.Portable, plan.Portable
	software.Software = true
	narrow := software
	narrow.SwiftShader = true
	for _, d := range []plan.Device{portable, software, narrow} {
		for way := range 16 {
			factor := func(col, odd bool) product.Operand {
				o := product.Operand{Type: et, ColMajor: col, Stride: 4096}
				if odd {
					o.Stride++
				}
				return o
			}
			for _, rows := range []int{1, 2, 100} {
				odd := rows % 2 // products of one row have odd sizes
				plans, err := product.Candidates(&product.Request{
					M: rows, N: 100 + odd, K: 4000 + odd, Compute: et.Compute(), Device: d,
					A: factor(way&1 != 0, way&2 != 0), B: factor(way&4 != 0, way&8 != 0),
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range plans {
					for _, pass := range plans[i].Passes {
						f := pass.Func(tail, tail.Type)
						k, err := product.Build(pass.Spec, f)
						p.add(t, k, err)
					}
				}
			}
		}
	}
}

// TestEveryKernelCompiles gives the text of every variant of every kernel to the browser's compiler and to the native one. Short
// tests take one of each form, whatever its sizes, and every tenth of the others.
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

// sample returns one kernel of each form, and every tenth of all.
func (p programs) sample() programs {
	some, names := programs{}, map[string]bool{}
	for i, source := range slices.Sorted(maps.Keys(p)) {
		form := strings.Map(withoutDigits, p[source].Name)
		if i%10 == 0 || !names[form] {
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
			dev, err := gpu.Open(t.Context(), gpu.WithDriver("cogent"))
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
	desc := gpu.KernelDesc{Label: kernel.Name, Source: source}
	for _, a := range kernel.Access {
		desc.Bindings = append(desc.Bindings, [...]driver.Access{0, driver.AccessRead, driver.AccessReadWrite, driver.AccessParams}[a])
	}
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
		const device = await (await navigator.gpu.requestAdapter()).requestDevice();
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
