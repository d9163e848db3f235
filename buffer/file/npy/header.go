// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Header says what an array holds and how.
type Header struct {
	Type      dtype.Type
	BigEndian bool // how the file holds it; what is read is converted
	Fortran   bool // the first index varies fastest: column by column
	Shape     []int64
}

// Len returns how many elements there are, or 0 where the shape is impossible.
func (h Header) Len() int64 {
	n, _, _ := h.Type.Bytes(h.Shape)
	return n
}

const (
	magic = "\x93NUMPY"
	// maxHeader is far beyond any header of an array of numbers. NumPy itself refuses more than 10,000 bytes.
	maxHeader = 64 << 10
	// align is the multiple of bytes at which NumPy starts the elements.
	align = 64
)

// place is where an array is, for errors.
type place struct {
	member string // of an archive, quoted; "" outside of one
	base   int64  // of the array's first byte
	packed bool   // so that no byte of the file belongs to a byte of the array
}

// failArchive makes the errors that are about no member, or about all.
var failArchive = stream.Errors("npz")

func (p place) fail(at int64, err error, detail ...any) error {
	if p.packed {
		at = 0
	}
	text := fault.Text(detail...)
	if p.member == "" {
		return stream.Errors("npy")(p.base+at, err, text)
	}
	if text != "" {
		text = ": " + text
	}
	return failArchive(p.base+at, err, p.member, text)
}

// readHeader reads what is before the elements.
func readHeader(src *stream.Source, p place) (Header, error) {
	var pre [12]byte
	err := src.Full(pre[:8])
	if n := min(int(src.Pos), len(magic)); string(pre[:n]) != magic[:n] {
		return Header{}, p.fail(0, file.ErrFormat, `it does not start with \x93NUMPY`)
	}
	if err != nil {
		return Header{}, err
	}
	if pre[6] < 1 || pre[6] > 3 || pre[7] != 0 {
		return Header{}, p.fail(6, file.ErrFormat, "unknown version ", int(pre[6]), ".", int(pre[7]))
	}
	at := 12
	if pre[6] == 1 {
		at = 10
	}
	if err := src.Full(pre[8:at]); err != nil {
		return Header{}, err
	}
	length := int64(binary.LittleEndian.Uint32(pre[8:]))
	if length > maxHeader {
		return Header{}, p.fail(8, file.ErrTooLarge, "header of ", length, " bytes")
	}
	text, err := src.Bytes(nil, length)
	if err != nil {
		return Header{}, err
	}
	return parseHeader(text, func(i int64, err error, detail ...any) error { return p.fail(int64(at)+i, err, detail...) })
}

// text returns the bytes of a file before the elements, or false for a type that NumPy does not have.
func (h Header) text() ([]byte, bool) {
	descr, ok := descrOf(h.Type)
	fortran := "False"
	if h.Fortran {
		fortran = "True"
	}
	s := "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shapeText(h.Shape) + ", }"
	const prefix = len(magic) + 4
	n := (prefix+len(s)+1+align-1)/align*align - prefix
	out := append([]byte(magic), 1, 0, byte(n), byte(n>>8))
	return fmt.Appendf(out, "%-*s\n", n-1, s), ok
}

// shapeText writes a shape as Python does.
func shapeText(shape []int64) string {
	s := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	if len(shape) == 1 {
		s += ","
	}
	return "(" + s + ")"
}
