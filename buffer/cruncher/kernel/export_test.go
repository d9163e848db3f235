// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
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

func (p *Program) PutRange(block []byte, r Range) ([3]uint32, error) { return p.putRange(block, r) }

func (p *Program) PutScalar(block []byte, name string, bits ...uint32) error {
	return p.putScalar(block, name, bits...)
}

func (p *Program) PutArray(block []byte, name string, offset, length int) error {
	return p.putArray(block, name, offset, length)
}

func (p *Program) Translate(err error) error               { return p.translate(err) }
func (p *Program) Diagnostics(err error) []wgsl.Diagnostic { return p.diagnostics(err) }
func (p *Program) LineOf(line int) int                     { return p.lineOf(line) }
