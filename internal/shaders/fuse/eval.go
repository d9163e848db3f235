// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	"encoding/binary"
	"math"
)

// Num is a type that functions are computed in.
type Num interface{ ~float32 | ~int32 | ~uint32 }

// Eval is a Func with its parameters and storage, evaluated in Go: apply and store of the generated text.
type Eval[N Num] struct {
	f       *Func
	store   Place
	loads   []Place
	scalars []N
	storage [][]byte
	regs    [][]N
}

// evalChunk is how many elements of a row are evaluated at a time: enough to hide the interpreter, few enough to stay in
// the cache.
const evalChunk = 256

// NewEval reads the parameters that [Func.Params] wrote and binds the storage of the function's slots. It reports false
// for a function that Go cannot evaluate: one that calls WGSL of the user's.
func NewEval[N Num](f *Func, params []byte, storage [][]byte) (*Eval[N], bool) {
	if len(f.Calls) > 0 || len(storage) < len(f.Slots) {
		return nil, false
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(params[4*i:]) }
	place := func(i int) Place { return Place{int(word(4 * i)), int(word(4*i + 1)), int(word(4*i + 2))} }
	e := &Eval[N]{f: f, store: place(0), storage: storage}
	for i := range f.Loads {
		e.loads = append(e.loads, place(i+1))
	}
	for i := range f.Scalars {
		e.scalars = append(e.scalars, FromBits[N](word(4*(len(f.Loads)+1)+i)))
	}
	e.regs = make([][]N, len(f.Code))
	for i := range e.regs {
		e.regs[i] = make([]N, evalChunk)
	}
	return e, true
}

// Apply computes the function for row i, columns j to j+len(acc)-1. acc holds the kernel's own values and then the
// results.
func (e *Eval[N]) Apply(i, j int, acc []N) {
	for len(acc) > 0 {
		n := min(len(acc), evalChunk)
		e.chunk(i, j, acc[:n])
		acc, j = acc[n:], j+n
	}
}

func (e *Eval[N]) chunk(i, j int, acc []N) {
	for k, c := range e.f.Code {
		r := e.regs[k][:len(acc)]
		switch c.Op {
		case OpAcc:
			copy(r, acc)
		case OpLoad:
			v, p := e.f.Loads[c.X], e.loads[c.X]
			Read(r, v.Type, e.storage[v.Slot], p.Offset+i*p.Row+j*p.Col, p.Col)
		case OpScalar:
			for l := range r {
				r[l] = e.scalars[c.X]
			}
		default:
			Compute(c.Op, r, e.reg(c.X, len(r)), e.reg(c.Y, len(r)), e.reg(c.Z, len(r)))
		}
	}
	copy(acc, e.regs[len(e.regs)-1])
}

func (e *Eval[N]) reg(n uint8, size int) []N { return e.regs[min(int(n), len(e.regs)-1)][:size] }

// Store writes the values to row i from column j on.
func (e *Eval[N]) Store(i, j int, values []N) {
	t := e.f.Store.Type
	whole := t.Compute() != F32 && typeOf[N]() != F32 // integers are stored by their bits
	for k, v := range values {
		if whole {
			e.StoreBits(i, j+k, uint32(v))
		} else {
			e.StoreBits(i, j+k, t.Store(float64(v)))
		}
	}
}

// StoreBits writes the bits of the element of row i and column j.
func (e *Eval[N]) StoreBits(i, j int, word uint32) {
	o := e.store.Offset + i*e.store.Row + j*e.store.Col
	if e.f.Store.Type.Size() == 2 {
		binary.LittleEndian.PutUint16(e.storage[0][2*o:], uint16(word))
	} else {
		binary.LittleEndian.PutUint32(e.storage[0][4*o:], word)
	}
}

// Read converts elements of type t, which lie step apart from offset on: integers by their bits, as in WGSL.
func Read[N Num](dst []N, t Type, mem []byte, offset, step int) {
	own := typeOf[N]()
	whole := t.Compute() != F32 && own != F32
	for l := range dst {
		var word uint32
		if t.Size() == 2 {
			word = uint32(binary.LittleEndian.Uint16(mem[2*offset:]))
		} else {
			word = binary.LittleEndian.Uint32(mem[4*offset:])
		}
		if !whole && t != own {
			word = own.Store(t.Load(word))
		}
		dst[l] = FromBits[N](word)
		offset += step
	}
}

// FromBits returns the number with these bits.
func FromBits[N Num](b uint32) N {
	if typeOf[N]() == F32 {
		return N(math.Float32frombits(b))
	}
	return N(b)
}

func typeOf[N Num]() Type {
	switch any(N(0)).(type) {
	case int32:
		return I32
	case uint32:
		return U32
	}
	return F32
}
