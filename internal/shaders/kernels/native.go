// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"runtime"
	"unsafe"

	"github.com/sublet-gpu/sublet/internal/gemm"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// runsNative leaves out of programs for pages what none of them calls.
const runsNative = runtime.GOOS != "js"

// native reports whether package gemm multiplies: it takes float32 and knows no function behind a product, which takes a launch of its
// own, and which a stack has no place for.
func (r *Request) native() bool {
	return r.Device.Native && r.A.Type == fuse.F32 && r.B.Type == fuse.F32 && r.Type == fuse.F32 && (r.Stack == 0 || !r.Tail)
}

// planNative lists the launches of a product by package gemm.
func (r *Request) planNative() *Product {
	p := r.plan(choice{variant: &plainTile, parts: 1})
	p.First.native = true
	if r.Tail {
		p.Sum = Kernel{form: productSum}.launch(shaders.Ceil(r.M*quads(r.N), sumGroup), r.M, r.N, quads(r.N), 1)
	}
	return p
}

// RunNative implements [shaders.Native] for products without a function behind them.
func (r reference) RunNative(_ [3]uint32, params []byte, storage [][]byte) {
	var shape [16]int
	for i := range shape {
		shape[i] = int(word(params, i))
	}
	m, n, depth, parts := shape[0], shape[1], shape[2], shape[5]
	offset, row := int(word(params, 16)), int(word(params, 17))
	c := floats32(storage[2])
	for x := range parts {
		a := r.k.a.matrix(storage[0], shape[ProductA]+x*shape[12], shape[ProductA+1], m, depth)
		b := r.k.b.matrix(storage[1], shape[ProductB]+x*shape[13], shape[ProductB+1], n, depth).T()
		dst := gemm.Matrix{Data: c[offset+x*m*row:], Rows: m, Cols: n, Row: row, Col: 1}
		gemm.Multiply(dst, a, b, runtime.GOMAXPROCS(0))
	}
}

// matrix is the factor with so many lines, of so many elements along k.
func (c Factor) matrix(mem []byte, offset, stride, lines, depth int) gemm.Matrix {
	m := gemm.Matrix{Rows: lines, Cols: depth, Row: stride * c.Unit(), Col: 1}
	if depth > 0 { // a matrix without elements may begin behind its memory
		m.Data = floats32(mem)[offset*c.Unit():]
	}
	if !c.AlongK {
		m.Row, m.Col = m.Col, m.Row
	}
	return m
}

// floats32 is memory of words as numbers.
func floats32(mem []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}
