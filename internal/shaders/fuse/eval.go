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
	scalars []uint32
	storage [][]byte
	floats  [][]float32 // the values of the instructions of a type; of others nil
	ints    [][]int32
	uints   [][]uint32
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
	place := func(i int) Place {
		return Place{Offset: int(word(4 * i)), Row: int(word(4*i + 1)), Col: int(word(4*i + 2))}
	}
	e := &Eval[N]{f: f, store: place(0), storage: storage}
	size := 1 + len(f.Loads)
	for i, v := range f.Loads {
		p := place(i + 1)
		if v.Class == Indexed {
			p.Rows, p.Cols = int(word(4*size)), int(word(4*size+1))
			size++
		}
		e.loads = append(e.loads, p)
	}
	for i := range f.Scalars {
		e.scalars = append(e.scalars, word(4*size+i))
	}
	n := len(f.Code)
	e.floats, e.ints, e.uints = make([][]float32, n), make([][]int32, n), make([][]uint32, n)
	for i, c := range f.Code {
		switch c.Type {
		case F32:
			e.floats[i] = make([]float32, evalChunk)
		case I32:
			e.ints[i] = make([]int32, evalChunk)
		default:
			e.uints[i] = make([]uint32, evalChunk)
		}
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
		switch c.Type {
		case F32:
			compute(e, e.floats, k, i, j, acc)
		case I32:
			compute(e, e.ints, k, i, j, acc)
		default:
			compute(e, e.uints, k, i, j, acc)
		}
	}
	copy(acc, e.bank(typeOf[N]()).([][]N)[len(e.f.Code)-1])
}

// bank returns the values of the instructions of a type.
func (e *Eval[N]) bank(t Type) any {
	switch t {
	case F32:
		return e.floats
	case I32:
		return e.ints
	}
	return e.uints
}

// compute runs instruction k, whose value is of type M.
func compute[M, N Num](e *Eval[N], regs [][]M, k, i, j int, acc []N) {
	c, r := e.f.Code[k], regs[k][:len(acc)]
	switch c.Op {
	case OpAcc:
		copy(r, any(acc).([]M))
	case OpLoad:
		v, p := e.f.Loads[c.X], e.loads[c.X]
		Read(r, v.Type, e.storage[v.Slot], p.Offset+i*p.Row+j*p.Col, p.Col)
	case OpScalar:
		for l := range r {
			r[l] = FromBits[M](e.scalars[c.X])
		}
	case OpRow:
		for l := range r {
			r[l] = M(i)
		}
	case OpCol:
		for l := range r {
			r[l] = M(j + l)
		}
	case OpAt:
		v, p := e.f.Loads[c.X], e.loads[c.X]
		for l := range r {
			r[l] = 0
			if row, col := int(e.ints[c.Y][l]), int(e.ints[c.Z][l]); row >= 0 && row < p.Rows && col >= 0 && col < p.Cols {
				Read(r[l:l+1], v.Type, e.storage[v.Slot], p.Offset+row*p.Row+col*p.Col, 1)
			}
		}
	case OpRandom:
		word := func(k uint8, l int) uint64 { return uint64(e.uints[c.X+k][l]) }
		for l := range r {
			row, col := uint64(e.ints[c.X][l]), uint64(e.ints[c.X+1][l])
			r[l] = M(Random(row, col, word(2, l), word(3, l)|word(4, l)<<32, word(5, l)|word(6, l)<<32))
		}
	case OpConvert:
		switch t := Type(c.Y); e.f.Code[c.X].Type {
		case F32:
			convert(r, t, e.floats[c.X])
		case I32:
			convert(r, t, e.ints[c.X])
		default:
			convert(r, t, e.uints[c.X])
		}
	default:
		at := func(n uint8) []M { // operands that an operation has not may be any
			if int(n) < len(regs) && regs[n] != nil {
				return regs[n][:len(r)]
			}
			return r
		}
		Compute(c.Op, r, at(c.X), at(c.Y), at(c.Z))
	}
}

// convert makes elements of type t, which M is computed in: integers by their bits, as in WGSL.
func convert[M, F Num](dst []M, t Type, src []F) {
	whole := typeOf[M]() != F32 && typeOf[F]() != F32
	for l := range dst {
		switch {
		case whole:
			dst[l] = FromBits[M](typeOf[M]().Store(t.Load(t.Narrow(uint32(src[l])))))
		default:
			dst[l] = FromBits[M](typeOf[M]().Store(t.Load(t.Store(float64(src[l])))))
		}
	}
}

// Store writes the values to row i from column j on.
func (e *Eval[N]) Store(i, j int, values []N) {
	t := e.f.Store.Type
	whole := t.Compute() != F32 && typeOf[N]() != F32 // integers are stored by their bits
	for k, v := range values {
		if whole {
			e.StoreBits(i, j+k, t.Narrow(uint32(v)))
		} else {
			e.StoreBits(i, j+k, t.Store(float64(v)))
		}
	}
}

// StoreBits writes the bits of the element of row i and column j.
func (e *Eval[N]) StoreBits(i, j int, word uint32) {
	o := e.store.Offset + i*e.store.Row + j*e.store.Col
	switch e.f.Store.Type.Size() {
	case 1:
		e.storage[0][o] = byte(word)
	case 2:
		binary.LittleEndian.PutUint16(e.storage[0][2*o:], uint16(word))
	default:
		binary.LittleEndian.PutUint32(e.storage[0][4*o:], word)
	}
}

// Read converts elements of type t, which lie step apart from offset on: integers by their bits, as in WGSL.
func Read[N Num](dst []N, t Type, mem []byte, offset, step int) {
	own := typeOf[N]()
	whole := t.Compute() != F32 && own != F32 && !t.Packed()
	for l := range dst {
		var word uint32
		switch t.Size() {
		case 1:
			word = uint32(mem[offset])
		case 2:
			word = uint32(binary.LittleEndian.Uint16(mem[2*offset:]))
		default:
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
