// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	_ "embed"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/shaders"
)

//go:embed convert.wgsl
var convertSource string

// Conversions makes the programs between arrays of 8 or 16 bits as memory has them and [Widened] ones. Both take the arrays
// "packed" and "unpacked", of uint32, and as scalars, of uint32, too, "count", how many elements there are, and where they begin:
// "first" and "first_unpacked".
//
// Each item of unpack is an element. The result is exact. Each item of pack is a packed word with any of the elements, and those
// beside them keep their values, as long as nothing else writes to the word at the time. Whole numbers keep their lowest bits,
// floats are rounded to the nearest, ties to even. It is [ErrKernel] for other types.
func Conversions(t dtype.Type) (unpack, pack *Program, err error) {
	if !known(t) || !small(t) {
		return nil, nil, fail("Conversions", t.String(), " has not 8 or 16 bits")
	}
	text := shaders.Expand(convertSource, "",
		shaders.Param{Name: "BITS", Value: int(t.Bits)},
		shaders.Param{Name: "SIGNED", Value: shaders.Bit(t.Code == dtype.Int32.Code)},
		shaders.Param{Name: "HALF", Value: shaders.Bit(t.Code == dtype.Float32.Code)})
	source, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	build := func(name string, unpacks bool) (*Program, error) {
		return source.Build(name, []Decl{
			{Name: "packed", Type: dtype.Uint32, ReadOnly: unpacks},
			{Name: "unpacked", Type: dtype.Uint32, ReadOnly: !unpacks},
			{Name: "first", Type: dtype.Uint32, Scalar: true},
			{Name: "first_unpacked", Type: dtype.Uint32, Scalar: true},
			{Name: "count", Type: dtype.Uint32, Scalar: true},
		}, [3]int{64})
	}
	if unpack, err = build("unpack", true); err != nil {
		return nil, nil, err
	}
	pack, err = build("pack", false)
	return unpack, pack, err
}
