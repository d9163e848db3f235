// SPDX-License-Identifier: Apache-2.0

package product

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

var devices = map[string]plan.Device{
	"llvmpipe":    {Software: true, MaxInvocations: 1024, MaxMemory: 32768},
	"swiftshader": {Software: true, SwiftShader: true, MaxInvocations: 256, MaxMemory: 32768},
	"portable":    plan.Portable,
	"small":       {MaxInvocations: 64, MaxMemory: 8192},
	"none":        {},
}

// memory is an operand with its elements. What does not belong to it is NaN, or 0x7fc00000.
type memory struct {
	operand Operand
	bytes   []byte
	values  []float64 // row by row
}

func newMemory(rng *rand.Rand, typ fuse.Type, rows, cols int, colMajor, aligned bool) memory {
	length, lines := cols, rows
	if colMajor {
		length, lines = rows, cols
	}
	m := memory{operand: Operand{Type: typ, ColMajor: colMajor, Offset: 3, Stride: length + 1}, values: make([]float64, rows*cols)}
	if aligned {
		m.operand.Offset, m.operand.Stride = 8, (length+3)/4*4
	}
	size := typ.Size()
	m.bytes = make([]byte, (m.operand.Offset+lines*m.operand.Stride+8)/4*4*size)
	for i := 0; i < len(m.bytes); i += size {
		if typ == fuse.F16 {
			binary.LittleEndian.PutUint16(m.bytes[i:], 0x7e00)
		} else {
			binary.LittleEndian.PutUint32(m.bytes[i:], 0x7fc00000)
		}
	}
	for i := range rows {
		for j := range cols {
			at := m.operand.Offset + i*m.operand.Stride + j
			if colMajor {
				at = m.operand.Offset + j*m.operand.Stride + i
			}
			m.values[i*cols+j] = put(rng, typ, m.bytes[at*size:])
		}
	}
	return m
}

// put writes a random element and returns it.
func put(rng *rand.Rand, typ fuse.Type, b []byte) float64 {
	switch typ {
	case fuse.F16:
		h := fuse.FloatToHalf(rng.Float32()*2 - 1)
		binary.LittleEndian.PutUint16(b, h)
		return float64(fuse.HalfToFloat(h))
	case fuse.F32:
		f := rng.Float32()*2 - 1
		binary.LittleEndian.PutUint32(b, math.Float32bits(f))
		return float64(f)
	}
	n := rng.IntN(100)
	if typ == fuse.I32 {
		n -= 50
	}
	binary.LittleEndian.PutUint32(b, uint32(int32(n)))
	return float64(n)
}

// execute runs a plan by its references and returns the result, rows of stride n.
func execute(t *testing.T, p Plan, f *fuse.Func, a, b memory, m, n int) []byte {
	t.Helper()
	buffers := map[plan.Buffer][]byte{
		plan.A: a.bytes, plan.B: b.bytes, plan.Result: make([]byte, m*n*f.Store.Type.Size()),
		plan.Scratch: make([]byte, p.Scratch),
	}
	for i := range p.Passes {
		ps := &p.Passes[i]
		g := ps.Func(f, f.Type)
		program, err := Build(ps.Spec, g)
		if err != nil {
			t.Fatal(err)
		}
		var storage [][]byte
		for _, o := range ps.Own {
			storage = append(storage, buffers[o])
		}
		storage = append(storage, buffers[ps.To])
		if len(storage)+1 != len(program.Access) {
			t.Fatalf("%s: %d bindings for %d buffers", program.Name, len(program.Access), len(storage))
		}
		program.Reference.Run(ps.Groups, g.Params(ps.Shape, ps.Place(fuse.Place{Row: uint32(n), Col: 1}), nil, nil), storage)
	}
	return buffers[plan.Result]
}

// compare compares a result with the product in float64, within k*2^-24 of the sum of absolute values.
func compare(t *testing.T, got []byte, typ fuse.Type, a, b memory, m, n, k int) {
	t.Helper()
	for i := range m {
		for j := range n {
			var want, size float64
			for l := range k {
				x := a.values[i*k+l] * b.values[l*n+j]
				want += x
				size += math.Abs(x)
			}
			at := got[(i*n+j)*typ.Size():]
			var v, slack float64
			switch typ {
			case fuse.F16:
				v, slack = float64(fuse.HalfToFloat(binary.LittleEndian.Uint16(at))), math.Abs(want)/1024
			case fuse.F32:
				v = float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
			case fuse.I32:
				v = float64(int32(binary.LittleEndian.Uint32(at)))
			default:
				v = float64(binary.LittleEndian.Uint32(at))
			}
			if !(math.Abs(v-want) <= float64(k)*0x1p-24*size+slack) {
				t.Fatalf("element %d, %d: got %v, want %v", i, j, v, want)
			}
		}
	}
}

func store(typ fuse.Type, compute fuse.Type) *fuse.Func {
	f := fuse.Identity(fuse.View{Type: typ, Class: fuse.Gather})
	if typ == fuse.F16 {
		f = fuse.Identity(fuse.View{Type: typ, Class: fuse.Vector})
	}
	f.Type = compute
	return f
}

var sizes = []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 129}

// TestTwins computes products of all layouts by all plans.
func TestTwins(t *testing.T) {
	for name, device := range devices {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for i, m := range sizes {
				n, k := sizes[(i*7+3)%len(sizes)], append(sizes, 0)[(i*11+5)%16]
				for bits := range 16 {
					a := newMemory(rng, fuse.F32, m, k, bits&1 != 0, bits&2 != 0)
					b := newMemory(rng, fuse.F32, k, n, bits&4 != 0, bits&8 != 0)
					r := Request{M: m, N: n, K: k, A: a.operand, B: b.operand, Device: device}
					plans, err := Candidates(&r)
					if err != nil || len(plans) == 0 {
						t.Fatal(plans, err)
					}
					p := plans[rng.IntN(len(plans))]
					got := execute(t, p, store(fuse.F32, fuse.F32), a, b, m, n)
					compare(t, got, fuse.F32, a, b, m, n, k)
				}
			}
		})
	}
}

func TestTypes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range [][4]fuse.Type{ // A, B, computed, stored
		{fuse.F16, fuse.F16, fuse.F32, fuse.F32},
		{fuse.F16, fuse.F32, fuse.F32, fuse.F16},
		{fuse.I32, fuse.I32, fuse.I32, fuse.I32},
		{fuse.U32, fuse.U32, fuse.U32, fuse.U32},
		{fuse.I32, fuse.F32, fuse.F32, fuse.F32},
		{fuse.F16, fuse.U32, fuse.F32, fuse.F32},
	} {
		for bits := range 16 {
			const m, n, k = 5, 12, 11
			a := newMemory(rng, c[0], m, k, bits&1 != 0, bits&2 != 0)
			b := newMemory(rng, c[1], k, n, bits&4 != 0, bits&8 != 0)
			r := Request{M: m, N: n, K: k, A: a.operand, B: b.operand, Compute: c[2], Device: plan.Portable}
			p, err := Pick(&r)
			if err != nil {
				t.Fatal(err)
			}
			got := execute(t, p, store(c[3], c[2]), a, b, m, n)
			compare(t, got, c[3], a, b, m, n, k)
		}
	}
}

// TestTail adds a bias to the product and limits it.
func TestTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	a, b := newMemory(rng, fuse.F32, 3, 200, false, true), newMemory(rng, fuse.F32, 200, 4, false, true)
	f := &fuse.Func{
		Code:  []fuse.Instr{{Op: fuse.OpAcc}, {Op: fuse.OpScalar}, {Op: fuse.OpAdd, X: 0, Y: 1}, {Op: fuse.OpRelu, X: 2}},
		Store: fuse.View{Class: fuse.Vector}, Slots: []fuse.Slot{{Vec: true}}, Scalars: 1,
	}
	for _, device := range devices {
		plans, err := Candidates(&Request{M: 3, N: 4, K: 200, A: a.operand, B: b.operand, Device: device})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			last := &p.Passes[len(p.Passes)-1]
			program, err := Build(last.Spec, f)
			if err != nil {
				t.Fatal(err)
			}
			scratch := make([]byte, p.Scratch)
			if len(p.Passes) == 2 {
				first := &p.Passes[0]
				g := first.Func(f, fuse.F32)
				part, err := Build(first.Spec, g)
				if err != nil {
					t.Fatal(err)
				}
				part.Reference.Run(first.Groups, g.Params(first.Shape, first.Place(fuse.Place{}), nil, nil), [][]byte{a.bytes, b.bytes, scratch})
			}
			result := make([]byte, 48)
			storage := [][]byte{a.bytes, b.bytes, result}
			if len(p.Passes) == 2 {
				storage = [][]byte{scratch, result}
			}
			bias := float32(1.5)
			program.Reference.Run(last.Groups, f.Params(last.Shape, fuse.Place{Row: 4, Col: 1}, nil, []uint32{math.Float32bits(bias)}), storage)
			for i := range 12 {
				want := float64(bias)
				for l := range 200 {
					want += a.values[i/4*200+l] * b.values[l*4+i%4]
				}
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(result[4*i:])))
				if math.Abs(got-max(want, 0)) > 1e-4 {
					t.Fatalf("%s: element %d: got %v, want %v", last.Spec, i, got, want)
				}
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, r := range []Request{{M: 0, N: 5, K: 3}, {M: 5, N: 0, K: 3}, {M: 0, N: 0, K: 0}} {
		if p, err := Pick(&r); err != nil || len(p.Passes) != 0 {
			t.Error(p, err)
		}
		if p, err := Candidates(&r); err != nil || len(p) != 0 {
			t.Error(p, err)
		}
	}
	for _, r := range []Request{{M: -1, N: 1, K: 1}, {M: 1, N: 1, K: math.MaxInt}, {M: 1, N: -5, K: 0}} {
		if _, err := Pick(&r); err == nil {
			t.Error("no error for", r)
		}
	}
}

// TestPlans checks what must hold for every plan.
func TestPlans(t *testing.T) {
	shapes := [][3]int{
		{1, 1, 1},
		{1, 1, 0},
		{512, 512, 512},
		{4096, 64, 64},
		{1, 2048, 2048},
		{3, 5, 1 << 20},
		{1, 1, 5_000_000},
		{100_000, 7, 9},
		{64, 64, 4096},
		{2, 3000, 700},
		{70_000, 70_000, 3},
		{511, 517, 513},
	}
	for name, device := range devices {
		for _, s := range shapes {
			for bits := range 4 {
				r := Request{M: s[0], N: s[1], K: s[2], Device: device}
				r.A, r.B = Operand{ColMajor: bits&1 != 0, Stride: 4}, Operand{ColMajor: bits&2 != 0, Stride: 3}
				plans, err := Candidates(&r)
				if err != nil || len(plans) == 0 {
					t.Fatal(name, s, plans, err)
				}
				best, err := Pick(&r)
				if err != nil || fmt.Sprint(best) != fmt.Sprint(plans[0]) {
					t.Error(name, s, "picked", best, "before", plans[0], err)
				}
				for _, p := range plans {
					checkPlan(t, &r, p)
				}
			}
		}
	}
}

func checkPlan(t *testing.T, r *Request, p Plan) {
	t.Helper()
	first := p.Passes[0]
	s, sh := first.Spec, readShape(first.Shape)
	quads := (r.K + 3) / 4
	if sh.m != r.M || sh.n != r.N || sh.k != r.K || sh.chunk*sh.parts < quads || sh.chunk*(sh.parts-1) >= max(quads, 1) {
		t.Errorf("%s: %+v does not cover the product", s, sh)
	}
	if sh.wide*s.cols() < r.N || sh.high*s.rows() < r.M {
		t.Errorf("%s: the tiles of %+v do not cover the result", s, sh)
	}
	units := sh.wide * sh.high * sh.parts
	if s.Kernel == Tile {
		units = (units + s.threads() - 1) / s.threads()
	}
	if int(first.Groups[0])*int(first.Groups[1]) < units || len(first.Shape) != shapeBytes {
		t.Errorf("%s: %v workgroups for %d units of work", s, first.Groups, units)
	}
	if r.Device.MaxInvocations == 0 {
		if s.Kernel != Tile {
			t.Errorf("%s does not fit no device", s)
		}
	} else if r.Device.Software != (s.Kernel == Tile) || s.threads() > r.Device.MaxInvocations || s.memory() > r.Device.MaxMemory {
		t.Errorf("%s does not fit the device", s)
	}
	if s.Kernel == Tile && sh.chunk > shaders.LoopLimit {
		t.Errorf("%s: %d turns", s, sh.chunk)
	}
	if !strings.Contains(s.String(), kernelNames[s.Kernel]) {
		t.Error("no name in", s)
	}
	if sh.parts == 1 {
		if len(p.Passes) != 1 || first.To != plan.Result || p.Scratch != 0 {
			t.Errorf("%s: one part, but %d passes", s, len(p.Passes))
		}
		return
	}
	if len(p.Passes) != 2 || first.To != plan.Scratch || p.Passes[1].To != plan.Result || int(first.Row)*4*r.M*sh.parts != p.Scratch {
		t.Errorf("%s: %d parts, %d passes, %d bytes of scratch memory", s, sh.parts, len(p.Passes), p.Scratch)
	}
}

// TestKeys checks that kernels of one key have one text, and of two keys two.
func TestKeys(t *testing.T) {
	texts, keys := map[string]string{}, map[string]string{}
	f := store(fuse.F32, fuse.F32)
	for _, v := range variants {
		for bits := range 32 {
			class := func(b int) Class {
				return Class{Type: fuse.Type(bits & 1 * 3), AlongK: b&1 != 0, Vector: b&2 != 0}
			}
			s := Spec{Kernel: v.kernel, Tiling: v.tiling, A: class(bits >> 1), B: class(bits >> 3)}
			if v.kernel == Tile {
				s.Ragged, s.Edge = bits&4 != 0, bits&8 != 0
				if v.tiling.RT < 4 && !s.A.AlongK {
					s.A.Vector = false
				}
			}
			program, err := Build(s, f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(program.Source, "@param") || strings.Contains(program.Source, "@unroll") {
				t.Fatalf("%s is not specialised", s)
			}
			key := string(s.Key(nil))
			if old, ok := texts[key]; ok && old != program.Source {
				t.Errorf("%s has two texts", s)
			}
			if old, ok := keys[program.Source]; ok && old != key {
				t.Errorf("%s has two keys", s)
			}
			texts[key], keys[program.Source] = program.Source, key
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	f := fuse.Identity(fuse.View{Type: fuse.F16, Class: fuse.Gather})
	if _, err := Build(Spec{Kernel: Sum, Tiling: Tiling{TX: 64}}, f); err == nil {
		t.Error("an unaligned binary16 result was accepted")
	}
}

// TestCalls has no reference for a function in WGSL.
func TestCalls(t *testing.T) {
	f := store(fuse.F32, fuse.F32)
	f.Calls = []fuse.Call{{Name: "g", Arity: 1, WGSL: "fn g(x: f32) -> f32 { return x; }"}}
	f.Code = append(f.Code, fuse.Instr{Op: fuse.OpCall, X: 0, Y: 0})
	p, err := Build(Spec{Kernel: Tile, Tiling: variants[0].tiling}, f)
	if err != nil || p.Reference != nil || !strings.Contains(p.Source, "fn g(") {
		t.Error(p.Name, err)
	}
}

func BenchmarkPick(b *testing.B) {
	r := Request{M: 512, N: 512, K: 512, A: Operand{Stride: 512}, B: Operand{Stride: 512}, Device: devices["llvmpipe"]}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Pick(&r); err != nil {
			b.Fatal(err)
		}
	}
}
