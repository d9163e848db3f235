// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"math"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Untyped is the type of a Scalar that takes the type of the operands it stands beside.
const Untyped = fuse.Type(0xff)

// Typed returns the node of an untyped number in a type, and any other node as it is.
func (n *Node) Typed(t fuse.Type) *Node {
	if n.Type != Untyped || n.Err != nil {
		return n
	}
	return Number(t, n.Rows, n.Cols, Stored(t.Compute(), n.Value))
}

// Stored returns the bits of a number as an element of type t.
func Stored(t fuse.Type, v float64) uint32 {
	switch t {
	case fuse.F16:
		return uint32(dtype.ToHalf(v).Bits())
	case fuse.I32:
		if math.IsNaN(v) {
			return 0
		}
		return uint32(int32(min(max(v, math.MinInt32), math.MaxInt32)))
	case fuse.U32:
		if math.IsNaN(v) {
			return 0
		}
		return uint32(min(max(v, 0), math.MaxUint32))
	}
	return math.Float32bits(float32(v))
}

// Loaded is the inverse of [Stored].
func Loaded(t fuse.Type, bits uint32) float64 {
	switch t {
	case fuse.F16:
		return float64(dtype.HalfFromBits(uint16(bits)).Float32())
	case fuse.I32:
		return float64(int32(bits))
	case fuse.U32:
		return float64(bits)
	}
	return float64(math.Float32frombits(bits))
}
