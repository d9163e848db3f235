// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"encoding/binary"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The page and this program describe tensors to each other as bytes, one after the other, numbers little-endian:
//
//	u32 length, name
//	u8 type code, u8 bits, u16 lanes
//	u8 dimensions, i64 for each
//	to the page only: i64 offset in the file, i64 size in bytes

// describe appends the description of a tensor.
func describe(b []byte, h file.Header) []byte {
	le := binary.LittleEndian
	b = append(le.AppendUint32(b, uint32(len(h.Name))), h.Name...)
	b = le.AppendUint16(append(b, h.Type.Code, h.Type.Bits), h.Type.Lanes)
	b = append(b, byte(len(h.Shape)))
	for _, d := range h.Shape {
		b = le.AppendUint64(b, uint64(d))
	}
	return le.AppendUint64(le.AppendUint64(b, uint64(h.Offset)), uint64(h.Size))
}

// cursor reads descriptions.
type cursor []byte

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(*c)) {
		page.Invalid("a description that ends early")
	}
	b := (*c)[:n]
	*c = (*c)[n:]
	return b
}

// number reads so many bytes.
func (c *cursor) number(size uint64) (n uint64) {
	for i, b := range c.take(size) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

// header reads the description of a tensor.
func (c *cursor) header() (h file.Header) {
	h.Name = string(c.take(c.number(4)))
	h.Type = dtype.Type{Code: uint8(c.number(1)), Bits: uint8(c.number(1)), Lanes: uint16(c.number(2))}
	for range c.number(1) {
		h.Shape = append(h.Shape, int64(c.number(8)))
	}
	return h
}
