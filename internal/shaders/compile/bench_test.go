// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
)

// loads is a function of n aligned operands of one place.
func loads(n int, code ...fuse.Instr) *fuse.Func {
	view := func(slot int) fuse.View { return fuse.View{Class: fuse.Vector, Slot: uint8(slot)} }
	f := &fuse.Func{Store: view(0), Slots: []fuse.Slot{{Vec: true}}, Flat: true}
	for i := range n {
		f.Loads = append(f.Loads, view(i+1))
		f.Slots = append(f.Slots, fuse.Slot{Vec: true})
		f.Code = append(f.Code, fuse.Instr{Op: fuse.OpLoad, X: uint8(i)})
	}
	f.Code = append(f.Code, code...)
	return f
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func random(n int) []byte {
	v := make([]float32, n)
	for i := range v {
		v[i] = rand.Float32()
	}
	return floats(v...)
}

func bench(b *testing.B, l *kernels.Launch, f *fuse.Func, flop float64, width, rows, cols, operands int) {
	b.Helper()
	place := fuse.Place{Row: cols, Col: 1}
	var places []fuse.Place
	storage := [][]byte{make([]byte, 4*rows*width)}
	for range operands {
		places = append(places, place)
		storage = append(storage, random(rows*cols))
	}
	measure(b, l, f, f.Params(shaders.Words(nil, l.Shape...), fuse.Place{Row: width, Col: 1}, places, nil), storage, flop)
}

// measure times launches as wazero runs them, on one core.
func measure(b *testing.B, l *kernels.Launch, f *fuse.Func, params []byte, storage [][]byte, flop float64) {
	b.Helper()
	mod, err := compile.Compile(l.Program(f).Source, "main", compile.Options{Exact: true, Wazero: true})
	if err != nil {
		b.Fatal(err)
	}
	h := compiletest.Load(b, mod, l.Groups, params, storage)
	best := time.Hour // others use the machine, too
	for b.Loop() {
		start := time.Now()
		h.Launch(b)
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best), "best-ns")
	b.ReportMetric(flop/best.Seconds()/1e9, "GFLOP/s")
}

const million = 1 << 20

func BenchmarkFma(b *testing.B) {
	f := loads(3, fuse.Instr{Op: fuse.OpMul, X: 0, Y: 1}, fuse.Instr{Op: fuse.OpAdd, X: 3, Y: 2})
	bench(b, kernels.Linear(million, false, fuse.F32, &kernels.Portable), f, 2*million, million, 1, million, 3)
}

func BenchmarkChain(b *testing.B) {
	f := loads(2)
	for i := range 10 {
		f.Code = append(f.Code, fuse.Instr{Op: []fuse.Op{fuse.OpMul, fuse.OpAdd}[i%2], X: uint8(1 + i), Y: 0})
	}
	bench(b, kernels.Linear(million, false, fuse.F32, &kernels.Portable), f, 10*million, million, 1, million, 2)
}

func BenchmarkExp(b *testing.B) {
	bench(b, kernels.Linear(million, false, fuse.F32, &kernels.Portable), loads(1, fuse.Instr{Op: fuse.OpExp}), million, million, 1, million, 1)
}

func BenchmarkReduceRows(b *testing.B) {
	f := loads(1)
	f.Store = fuse.View{Class: fuse.Gather}
	f.Slots[0].Vec = false
	l, parts := kernels.FoldRows(kernels.Fold{Op: fuse.ReduceSum}, 1024, 1024, true, &kernels.Device{Software: true, SIMD: kernels.SIMD})
	bench(b, l, f, million, parts, 1024, 1024, 1)
}

func BenchmarkSoftmaxRows(b *testing.B) {
	bench(b, kernels.Softmax(1024, 1024, false, true, &kernels.Device{Software: true, SIMD: kernels.SIMD}), loads(1), million, 1024, 1024, 1024, 1)
}

// BenchmarkProduct multiplies matrices of 512 rows and columns by the kernels of software adapters.
func BenchmarkProduct(b *testing.B) {
	const n = 512
	for name, d := range map[string]*kernels.Device{
		"llvmpipe": {Software: true, MaxInvocations: 1024}, "swiftshader": {Software: true, SwiftShader: true, MaxInvocations: 256},
		"hardware": {MaxInvocations: 256, MaxMemory: 32768},
	} {
		b.Run(name, func(b *testing.B) {
			operand := kernels.Operand{Stride: n, Vectors: true}
			plan, err := (&kernels.Request{Device: d, A: operand, B: operand, M: n, N: n, K: n}).Pick()
			if err != nil {
				b.Fatal(err)
			}
			p := plan
			f := &fuse.Func{Code: []fuse.Instr{{Op: fuse.OpAcc}}, Store: fuse.View{Class: fuse.Vector}, Slots: []fuse.Slot{{Vec: true}}}
			params := f.Params(shaders.Words(nil, p.First.Shape...), fuse.Place{Row: n, Col: 1}, nil, nil)
			b.Log(p.First.Name())
			measure(b, p.First, f, params, [][]byte{random(n * n), random(n * n), make([]byte, 4*n*n*p.Parts)}, 2*n*n*n)
		})
	}
}
