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
	o := e.store.Offset + i*e.store.Row + j*e.store.Col
	for _, v := range values {
		var word uint32
		if whole {
			word = uint32(v)
		} else {
			word = t.Store(float64(v))
		}
		if t.Size() == 2 {
			binary.LittleEndian.PutUint16(e.storage[0][2*o:], uint16(word))
		} else {
			binary.LittleEndian.PutUint32(e.storage[0][4*o:], word)
		}
		o += e.store.Col
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

// number is what the reference of an operation computes in; float64 serves tests.
type number interface {
	~float32 | ~float64 | ~int32 | ~uint32
}

// The following are what the references of operations call; see the column Go of the table in internal/ops.

func truth[N number](b bool) N {
	if b {
		return 1
	}
	return 0
}

func pick[N number](first bool, x, y N) N {
	if first {
		return x
	}
	return y
}

func absolute[N number](x N) N {
	switch {
	case x < 0:
		return -x
	case x == 0:
		return 0 // of -0, too
	}
	return x
}

func sign[N number](x N) N {
	var zero N
	switch {
	case x > zero:
		return 1
	case x < zero:
		return zero - 1
	}
	return x // zero, or NaN
}

func clamp[N number](x, lo, hi N) N {
	if x > hi {
		x = hi
	}
	if x < lo {
		x = lo
	}
	return x
}

// divide divides as WGSL does: integers by zero yield the dividend.
func divide[N number](x, y N) N {
	if one, two := N(1), N(2); y == 0 && one/two == 0 {
		return x
	}
	return x / y
}

// bitwise computes with the bits of integers. What is shifted further than they are long leaves nothing.
func bitwise[N number](x, y N, op byte) N {
	v, w := uint32(int64(x)), uint32(int64(y))
	switch op {
	case '~':
		v = ^v
	case '&':
		v &= w
	case '|':
		v |= w
	case '^':
		v ^= w
	case '<':
		v <<= w
	}
	if N(0)-1 < 0 {
		return N(int32(v))
	}
	return N(v)
}

func shiftRight[N number](x, y N) N {
	if places := uint32(int64(y)); N(0)-1 < 0 {
		return N(int32(int64(x)) >> min(places, 31))
	} else {
		return N(uint32(int64(x)) >> places)
	}
}

// remainder is what truncated division leaves; of integers by zero nothing.
func remainder[N number](x, y N) N {
	if one, two := N(1), N(2); y == 0 && one/two == 0 {
		return 0
	}
	return N(math.Mod(float64(x), float64(y)))
}

// floorMod is remainder with the sign of the divisor.
func floorMod[N number](x, y N) N {
	r := remainder(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// power is math.Pow; of integers modulo 2 to the power 32, without fractions.
func power[N number](x, y N) N {
	one, two := N(1), N(2)
	switch {
	case one/two != 0:
		return N(math.Pow(float64(x), float64(y)))
	case y < 0 && x != 1 && x != 0-one:
		return 0
	case y < 0 && y/two*two == y:
		return one
	case y < 0:
		return x
	}
	r := one
	for e := uint32(int64(y)); e > 0; e >>= 1 {
		if e&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}

func elu[N number](x N) N {
	if x < 0 {
		return N(math.Expm1(float64(x)))
	}
	return x
}

func logAddExp[N number](x, y N) N {
	switch {
	case x != x || x == y && x-y != 0: // NaN, or the same infinity
		return x
	case y != y:
		return y
	}
	return N(math.Max(float64(x), float64(y)) + math.Log1p(math.Exp(-math.Abs(float64(x)-float64(y)))))
}
