// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// The element types by WGSL's names.
var (
	F32 = dtype.Float32
	I32 = dtype.Int32
	U32 = dtype.Uint32
	U8  = dtype.Uint8
	I8  = dtype.Int8
	U16 = dtype.Uint16
	I16 = dtype.Int16
	F16 = dtype.Float16
)

// Vec returns a vector type.
func Vec(t dtype.Type, lanes uint16) dtype.Type {
	t.Lanes = lanes
	return t
}

// Groups returns the workgroups of a launch, which are zero where there is nothing to do.
func (p *Program) Groups(r Range) (groups [3]uint32, fits bool, err error) {
	tiles, err := p.tiles(&r)
	if err != nil || slices.Contains(tiles[:], 0) {
		return groups, true, err
	}
	groups, fits = p.groups(tiles)
	return groups, fits, nil
}

func (p *Program) Translate(err error) error { return p.translate(err) }

// Scalars declares values.
func Scalars(list ...Decl) []Decl {
	for i := range list {
		list[i].Scalar = true
	}
	return list
}
