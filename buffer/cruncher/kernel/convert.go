// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	_ "embed"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders"
)

//go:embed widen.wgsl
var widenSource string

//go:embed narrow.wgsl
var narrowSource string

const convertSize = 64 // invocations of a workgroup

// convertParams is how many bytes of parameters the conversions have.
const convertParams = 32

// Widen makes the program that turns the elements of a packed array, of 8 or 16 bits, into ones of 32 bits for a [Widened]
// array. Its storage bindings are the packed array, which it reads, and the wide one. [Convert.Put] fills its parameters. The
// result is exact. It is [ErrKernel] for other types.
func Widen(t dtype.Type) (*Program, error) { return conversion("Widen", t, widenSource) }

// Narrow makes the program for the way back: its storage bindings are the packed array, which it writes, and the wide one, which
// it reads. Whole numbers keep their lowest bits, floats are rounded to the nearest, ties to even. Elements beside those
// converted keep their values, as long as nothing else writes to words that hold both at the time.
func Narrow(t dtype.Type) (*Program, error) { return conversion("Narrow", t, narrowSource) }

func conversion(op string, t dtype.Type, source string) (*Program, error) {
	e, _ := elemOf(t)
	if !e.narrow() {
		return nil, fail(op, t.String(), " has not 8 or 16 bits")
	}
	widen := op == "Widen"
	params := []shaders.Param{
		{Name: "SIZE", Value: convertSize}, {Name: "BITS", Value: 8 * e.size()}, {Name: "HALF", Value: shaders.Bit(e == f16)},
	}
	if widen {
		params = append(params, shaders.Param{Name: "SIGNED", Value: shaders.Bit(e == i8 || e == i16)})
	}
	text, err := shaders.Expand(source, "", params...)
	if err != nil {
		return nil, err
	}
	p := &Program{
		Name: op + " " + e.name(), WGSL: text, Entry: "main", ParamBytes: convertParams, Dims: 1, Local: [3]int{convertSize, 1, 1},
		Bindings:  []driver.Access{driver.AccessParams, driver.AccessReadWrite, driver.AccessRead},
		Reference: func(_ [3]uint32, params []byte, storage [][]byte) { narrow(e, params, storage[0], storage[1]) },
	}
	if widen {
		p.Bindings[1], p.Bindings[2] = driver.AccessRead, driver.AccessReadWrite
		p.Reference = func(_ [3]uint32, params []byte, storage [][]byte) { widenTwin(e, params, storage[0], storage[1]) }
	}
	return p, nil
}

// Convert says which elements [Widen] and [Narrow] convert: Count packed ones from element First of what is bound, and element
// Wide of the wide array and those after it.
type Convert struct{ First, Count, Wide int }

// Put writes a parameter block of 32 bytes and returns the workgroup counts of the launch, which are 0 where there is nothing
// to do. It is [ErrKernel] for a block of another size, another type, and elements that a kernel cannot count.
func (c Convert) Put(block []byte, t dtype.Type) (groups [3]uint32, err error) {
	const op = "Convert"
	e, _ := elemOf(t)
	if len(block) != convertParams || !e.narrow() {
		return groups, fail(op, "a parameter block of the wrong size, or elements that have not 8 or 16 bits")
	}
	// The packed elements end below 2^32 - 4, so that no index of a neighbour wraps.
	const most = math.MaxUint32 - 4
	if c.First < 0 || c.Count < 0 || c.Wide < 0 || int64(c.First) > most-int64(c.Count) || int64(c.Wide) > most-int64(c.Count) {
		return groups, fail(op, strconv.Itoa(c.Count), " elements from ", strconv.Itoa(c.First), " and ", strconv.Itoa(c.Wide), " on")
	}
	words := 0
	if c.Count > 0 {
		per := 4 / e.size()
		words = (c.First+c.Count-1)/per - c.First/per + 1
		groups = shaders.Fold(shaders.Ceil(words, convertSize))
	}
	clear(block)
	for i, v := range []uint32{uint32(c.First), uint32(c.Count), uint32(c.Wide), uint32(words), groups[0]} {
		binary.LittleEndian.PutUint32(block[4*i:], v)
	}
	return groups, nil
}

// elements reads what Put wrote, cut to what the arrays hold.
func elements(params []byte, packed, wide []byte, size int) (first, count, to int) {
	first = int(binary.LittleEndian.Uint32(params))
	to = int(binary.LittleEndian.Uint32(params[8:]))
	count = int(binary.LittleEndian.Uint32(params[4:]))
	return first, max(0, min(count, len(packed)/size-first, len(wide)/4-to)), to
}

func widenTwin(e elemType, params, packed, wide []byte) {
	size := e.size()
	first, count, to := elements(params, packed, wide, size)
	for i := range count {
		var v uint32
		switch at := (first + i) * size; e {
		case u8:
			v = uint32(packed[at])
		case i8:
			v = uint32(int32(int8(packed[at])))
		case u16:
			v = uint32(binary.LittleEndian.Uint16(packed[at:]))
		case i16:
			v = uint32(int32(int16(binary.LittleEndian.Uint16(packed[at:]))))
		case f16:
			v = floatBits(uint32(binary.LittleEndian.Uint16(packed[at:])))
		}
		binary.LittleEndian.PutUint32(wide[4*(to+i):], v)
	}
}

func narrow(e elemType, params, packed, wide []byte) {
	size := e.size()
	first, count, to := elements(params, packed, wide, size)
	for i := range count {
		v := binary.LittleEndian.Uint32(wide[4*(to+i):])
		if e == f16 {
			v = halfBits(v)
		}
		if at := (first + i) * size; size == 1 {
			packed[at] = byte(v)
		} else {
			binary.LittleEndian.PutUint16(packed[at:], uint16(v))
		}
	}
}

// floatBits is float of widen.wgsl.
func floatBits(h uint32) uint32 {
	sign, exponent, fraction := h&0x8000<<16, h>>10&0x1f, h&0x3ff
	switch {
	case exponent == 0x1f:
		return sign | 0x7f800000 | fraction<<13
	case exponent != 0:
		return sign | (exponent+112)<<23 | fraction<<13
	case fraction == 0:
		return sign
	}
	top := uint32(bits.Len32(fraction) - 1)
	return sign | (top+103)<<23 | fraction<<(23-top)&0x7fffff
}

// halfBits is half of narrow.wgsl.
func halfBits(f uint32) uint32 {
	sign, size := f>>16&0x8000, f&0x7fffffff
	switch {
	case size > 0x7f800000:
		return sign | 0x7e00 | size>>13&0x3ff
	case size >= 0x47800000:
		return sign | 0x7c00
	case size >= 0x38800000:
		return sign | (size-0x38000000+0xfff+size>>13&1)>>13
	case size>>23 < 102:
		return sign
	}
	fraction, shift := size&0x7fffff|0x800000, 126-size>>23
	kept, lost, tie := fraction>>shift, fraction&(1<<shift-1), uint32(1)<<(shift-1)
	if lost > tie || lost == tie && kept&1 == 1 {
		kept++
	}
	return sign | kept
}
