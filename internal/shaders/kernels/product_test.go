// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

var devices = map[string]*Device{
	"llvmpipe":    {Software: true, MaxInvocations: 1024, MaxMemory: 32768},
	"swiftshader": {Software: true, SwiftShader: true, MaxInvocations: 256, MaxMemory: 32768},
	"quads":       {Software: true, SwiftShader: true, Quads: true, MaxInvocations: 256, MaxMemory: 32768},
	"portable":    &Portable,
	"simd":        {Software: true, SIMD: SIMD, MaxInvocations: 1024, MaxMemory: 32768},
	"native":      {Software: true, SIMD: SIMD, Native: true, MaxInvocations: 1024, MaxMemory: 32768},
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
	m := memory{operand: Operand{Type: typ, ColMajor: colMajor, Offset: 3, Stride: length + 1, Vectors: true}, values: make([]float64, rows*cols)}
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
		h := uint16(fuse.F16.Store(rng.Float64()*2 - 1))
		binary.LittleEndian.PutUint16(b, h)
		return fuse.F16.Load(uint32(h))
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

// execute runs a plan by its references and returns the result, rows of stride n, of a function with these numbers.
func execute(t *testing.T, p *Product, f *fuse.Func, a, b memory, m, n int, numbers ...uint32) []byte {
	t.Helper()
	result, place := make([]byte, m*n*f.Store.Type.Size()), fuse.Place{Row: n, Col: 1}
	run := func(l *Launch, f *fuse.Func, place fuse.Place, numbers []uint32, storage ...[]byte) {
		t.Helper()
		program := l.Program(f)
		if len(storage) != program.Own+1+program.Inputs {
			t.Fatalf("%s: %d and %d bindings for %d buffers", program.Name, program.Own, program.Inputs, len(storage))
		}
		launched(t, program, l.Groups, f.Params(shaders.Words(nil, l.Shape...), place, nil, numbers), storage)
	}
	if p.Pack != nil {
		packed := make([]byte, 4*p.Packed[0]*p.Packed[1])
		from := fuse.Place{Offset: b.operand.Offset, Row: b.operand.Stride, Col: 1}
		if b.operand.ColMajor {
			from.Row, from.Col = from.Col, from.Row
		}
		load := &fuse.Func{
			Type: f.Type, Code: []fuse.Instr{{Op: fuse.OpLoad, Type: f.Type}}, Store: fuse.View{Type: f.Type, Class: fuse.Vector},
			Loads: []fuse.View{{Type: b.operand.Type, Class: fuse.Gather, Slot: 1}}, Slots: []fuse.Slot{{Type: f.Type, Vec: true}, {Type: b.operand.Type}},
		}
		params := load.Params(shaders.Words(nil, p.Pack.Shape...), fuse.Place{Row: p.Packed[1], Col: 1}, []fuse.Place{from}, nil)
		p.Pack.Program(load).Reference.Run(p.Pack.Groups, params, [][]byte{packed, b.bytes})
		b.bytes = packed
	}
	if p.Sum == nil {
		run(p.First, f, place, numbers, a.bytes, b.bytes, result)
		return result
	}
	scratch := make([]byte, 4*p.Parts*m*p.Width)
	run(p.First, identity(fuse.View{Type: f.Type}), fuse.Place{Row: p.Width, Col: 1}, nil, a.bytes, b.bytes, scratch)
	run(p.Sum, f, place, numbers, scratch, result)
	return result
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
				v, slack = fuse.F16.Load(uint32(binary.LittleEndian.Uint16(at))), math.Abs(want)/1024
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

func storing(typ fuse.Type, compute fuse.Type) *fuse.Func {
	f := identity(fuse.View{Type: typ, Class: fuse.Gather})
	if typ == fuse.F16 {
		f = identity(fuse.View{Type: typ, Class: fuse.Vector})
	}
	f.Type = compute
	return f
}

var sizes = []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 129}

// TestTwins computes products of all layouts by all plans.
func TestTwins(t *testing.T) {
	for name, device := range devices {
		if options != nil && device.Quads {
			continue // the compiler has no subgroups
		}
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for i, m := range sizes {
				n, k := sizes[(i*7+3)%len(sizes)], append(sizes, 0)[(i*11+5)%16]
				for bits := range 16 {
					if options != nil && (bits+i)%6 != 0 { // each plan makes a module
						continue
					}
					a := newMemory(rng, fuse.F32, m, k, bits&1 != 0, bits&2 != 0)
					b := newMemory(rng, fuse.F32, k, n, bits&4 != 0, bits&8 != 0)
					r := Request{M: m, N: n, K: k, A: a.operand, B: b.operand, Device: device}
					plans, err := r.Candidates()
					if err != nil || len(plans) == 0 {
						t.Fatal(plans, err)
					}
					p := plans[rng.IntN(len(plans))]
					got := execute(t, p, storing(fuse.F32, fuse.F32), a, b, m, n)
					compare(t, got, fuse.F32, a, b, m, n, k)
				}
			}
		})
	}
}

// TestLines multiplies single rows by the kernels for those.
func TestLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i, s := range [][2]int{{16, 8}, {17, 9}, {19, 65}, {64, 200}, {37, 1000}, {20, 6}, {5, 7}, {8, 64}, {33, 130}, {4096, 17}, {5001, 8}, {8194, 12}, {256, 64}, {515, 103}} {
		for bits := range 32 {
			if (bits+i)%5 != 0 && (options != nil || s[0]*s[1] > 1<<15) {
				continue
			}
			n, k, name := s[0], s[1], "simd"
			if i >= 12 {
				name = "swiftshader"
			}
			from, to := fuse.F32, fuse.F32
			if bits >= 16 {
				from, to = fuse.I32, fuse.I32
			}
			a := newMemory(rng, from, 1, k, bits&1 != 0, bits&2 != 0)
			b := newMemory(rng, from, k, n, bits&4 != 0, bits&8 != 0)
			r := Request{M: 1, N: n, K: k, Type: to, A: a.operand, B: b.operand, Device: devices[name]}
			plans, err := r.Candidates()
			if err != nil {
				t.Fatal(err)
			}
			p := plans[len(plans)-1]
			if name == "swiftshader" && b.operand.ColMajor == (p.First.form == productStream) || name == "simd" && r.single() && p.First.form != productLine && p.First.form != productDots {
				t.Fatal(s, p.First.Name())
			}
			compare(t, execute(t, p, storing(to, to), a, b, 1, n), to, a, b, 1, n, k)
		}
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
		for bits := range 32 {
			const m, n, k = 5, 12, 11
			device := &Portable
			if bits >= 16 {
				device = devices["simd"]
			}
			a := newMemory(rng, c[0], m, k, bits&1 != 0, bits&2 != 0)
			b := newMemory(rng, c[1], k, n, bits&4 != 0, bits&8 != 0)
			r := Request{M: m, N: n, K: k, A: a.operand, B: b.operand, Type: c[2], Device: device}
			p, err := r.Pick()
			if err != nil {
				t.Fatal(err)
			}
			got := execute(t, p, storing(c[3], c[2]), a, b, m, n)
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
	bias := float32(1.5)
	for _, device := range devices {
		if options != nil && device.Quads {
			continue
		}
		r := Request{M: 3, N: 4, K: 200, Tail: true, A: a.operand, B: b.operand, Device: device}
		plans, err := r.Candidates()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			result := execute(t, p, f, a, b, 3, 4, math.Float32bits(bias))
			for i := range 12 {
				want := float64(bias)
				for l := range 200 {
					want += a.values[i/4*200+l] * b.values[l*4+i%4]
				}
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(result[4*i:])))
				if math.Abs(got-max(want, 0)) > 1e-4 {
					t.Fatalf("%s: element %d: got %v, want %v", p.First.Name(), i, got, want)
				}
			}
		}
	}
}

func TestSize(t *testing.T) {
	for _, r := range []Request{{M: -1, N: 1, K: 1}, {M: 1, N: 1, K: math.MaxInt}, {M: 1, N: -5, K: 0}} {
		if _, err := r.Pick(); err == nil {
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
				r.A, r.B = Operand{ColMajor: bits&1 != 0, Stride: 4, Vectors: true}, Operand{ColMajor: bits&2 != 0, Stride: 3, Vectors: true}
				plans, err := r.Candidates()
				if err != nil || len(plans) == 0 {
					t.Fatal(name, s, plans, err)
				}
				best, err := r.Pick()
				if err != nil {
					t.Fatal(name, s, err)
				}
				for _, p := range append(plans, best) {
					checkPlan(t, &r, p)
				}
				if sooner := best.Sooner; sooner != nil {
					checkPlan(t, &r, sooner)
					if !device.SwiftShader || sooner.Parts != best.Parts || sooner.First.Key(nil) == best.First.Key(nil) {
						t.Error(name, s, "has", sooner.First.Name(), "sooner than", best.First.Name())
					}
				}
			}
		}
	}
}

// variantOf finds what a kernel was made of.
func variantOf(k *Kernel) *variant {
	for i := range variants {
		v := &variants[i]
		if v.form == k.form && slices.Equal(v.params(k.a, k.b, true, true)[:4], k.params[:4]) {
			if v.form != productGroup || v.params(k.a, k.b, true, true)[5] == k.params[5] && v.params(k.a, k.b, true, true)[4] == k.params[4] {
				return v
			}
		}
	}
	return nil
}

func checkPlan(t *testing.T, r *Request, p *Product) {
	t.Helper()
	k, name, shape := &p.First.Kernel, p.First.Name(), p.First.Shape
	if k.form == productPanel {
		tiles := panelGroup * int(p.First.Groups[0]) * int(p.First.Groups[1])
		if r.Device.SIMD == nil || shape[3]*panelCols < r.N || tiles < shape[3]*((r.M+panelRows-1)/panelRows) || len(shape) != k.form.shape {
			t.Errorf("%s: %v and %v do not cover the product", name, shape, p.First.Groups)
		}
		return
	}
	vectors := (r.K + 3) / 4
	wide, high, parts, chunk := shape[3], shape[4], shape[5], shape[6]
	if k.form == productLine || k.form == productDots {
		groups := int(p.First.Groups[0]) * int(p.First.Groups[1])
		covered := groups*4*dotsGroup >= r.N && chunk >= vectors && chunk <= shaders.LoopLimit
		if k.form == productLine {
			covered = groups >= wide*parts && wide*lineStripe >= r.N && chunk*parts >= vectors && chunk/2*lineStripe/4 <= shaders.LoopLimit
		}
		if !covered || parts != p.Parts || p.Width < r.N || p.Width%4 != 0 {
			t.Errorf("%s: %v and %v do not cover the product", name, shape, p.First.Groups)
		}
		return
	}
	if k.form == productStream {
		covered := streamGroup*int(p.First.Groups[0])*int(p.First.Groups[1]) >= parts*shaders.Ceil(r.N, streamStripe)
		if !covered || !r.Device.SwiftShader || parts*8 < r.K || parts != p.Parts || p.Sum == nil || p.Width < r.N || p.Width%4 != 0 {
			t.Errorf("%s: %v and %v do not cover the product", name, shape, p.First.Groups)
		}
		return
	}
	v := variantOf(k)
	if !slices.Equal(shape[:3], []int{r.M, r.N, r.K}) || chunk*parts < vectors || chunk*(parts-1) >= max(vectors, 1) || parts != p.Parts {
		t.Errorf("%s: %v does not cover the product", name, shape)
	}
	if wide*v.cols() < r.N || high*v.rows() < r.M {
		t.Errorf("%s: the tiles of %v do not cover the result", name, shape)
	}
	units := wide * high * parts
	if v.tiles() {
		units = (units + v.threads() - 1) / v.threads()
	}
	if int(p.First.Groups[0])*int(p.First.Groups[1]) < units || len(shape) != k.form.shape {
		t.Errorf("%s: %v workgroups for %d units of work", name, p.First.Groups, units)
	}
	tile := v.tiles()
	if r.Device.MaxInvocations == 0 {
		if !tile {
			t.Errorf("%s does not fit no device", name)
		}
	} else if r.Device.Software != tile || v.threads() > r.Device.MaxInvocations || !tile && v.memory() > r.Device.MaxMemory {
		t.Errorf("%s does not fit the device", name)
	}
	turns := chunk
	if v.outer() {
		turns = 4*chunk + v.rows()*v.cols()/4
	}
	if tile && !k.native && turns > shaders.LoopLimit {
		t.Errorf("%s: %d turns", name, turns)
	}
	if (p.Sum != nil) != (parts > 1) || p.Width < r.N || p.Width%4 != 0 {
		t.Errorf("%s: %d parts of width %d, then %+v", name, parts, p.Width, p.Sum)
	}
}

// TestKeys checks that kernels of one key have one text, and of two keys two.
func TestKeys(t *testing.T) {
	texts, keys := map[string]string{}, map[string]string{}
	f := storing(fuse.F32, fuse.F32)
	for _, v := range variants {
		for bits := range 32 {
			factor := func(b int) Factor {
				return Factor{Type: fuse.Type(bits & 1 * 3), AlongK: b&1 != 0, Vector: b&2 != 0}
			}
			k := Kernel{form: v.form, lines: v.rt, a: factor(bits >> 1), b: factor(bits >> 3)}
			if v.outer() || v.rt < 4 && v.form != productGroup && !k.a.AlongK {
				k.a.Vector = false
			}
			k.params = v.params(k.a, k.b, bits&4 != 0, bits&8 != 0)
			program := k.Program(f)
			if strings.Contains(program.Source, "@param") || strings.Contains(program.Source, "@unroll") {
				t.Fatalf("%s is not specialised", program.Name)
			}
			key := k.Key(f)
			if old, ok := texts[key]; ok && old != program.Source {
				t.Errorf("%s has two texts", program.Name)
			}
			if old, ok := keys[program.Source]; ok && old != key {
				t.Errorf("%s has two keys", program.Name)
			}
			texts[key], keys[program.Source] = program.Source, key
		}
	}
}

// TestCalls has no reference for a function in WGSL.
func TestCalls(t *testing.T) {
	f := storing(fuse.F32, fuse.F32)
	f.Calls = []fuse.Call{{Name: "g", Arity: 1, WGSL: "fn g(x: f32) -> f32 { return x; }"}}
	f.Code = append(f.Code, fuse.Instr{Op: fuse.OpCall, X: 0, Y: 0})
	l := Grid(3, 5, fuse.F32, &Portable)
	if p := l.Program(f); p.Reference != nil || !strings.Contains(p.Source, "fn g(") {
		t.Error(p.Name)
	}
}

func BenchmarkPick(b *testing.B) {
	r := Request{M: 512, N: 512, K: 512, A: Operand{Stride: 512, Vectors: true}, B: Operand{Stride: 512, Vectors: true}, Device: devices["llvmpipe"]}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Pick(); err != nil {
			b.Fatal(err)
		}
	}
}
