// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"encoding/binary"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
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

// check returns the size in bytes, or what is wrong with a header that is to be written.
func (h Header) check() (int64, error) {
	if h.BigEndian {
		return 0, fault.Fail("npy: NewWriter", fault.ErrInvalid, "a header of big-endian elements")
	}
	if _, ok := descrOf(h.Type); !ok {
		return 0, (place{}).fail(0, file.ErrType, h.Type.String())
	}
	if len(h.Shape) > stream.MaxDims {
		return 0, (place{}).fail(0, file.ErrTooLarge, stream.Decimal(len(h.Shape))+" dimensions")
	}
	_, n, ok := h.Type.Bytes(h.Shape)
	if !ok {
		return 0, (place{}).fail(0, file.ErrFormat, "impossible shape "+shapeText(h.Shape))
	}
	return n, nil
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
	archive bool
	member  string // of the archive
	base    int64  // of the array's first byte
	packed  bool   // so that no byte of the file belongs to a byte of the array
}

func (p place) fail(at int64, err error, detail string) error {
	e := &file.Error{Format: "npy", Offset: p.base, Detail: detail, Err: err}
	if !p.packed {
		e.Offset += at
	}
	if p.archive {
		e.Format = "npz"
		e.Detail = stream.Quote(p.member)
		if detail != "" {
			e.Detail += ": " + detail
		}
	}
	return e
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
		return Header{}, p.fail(6, file.ErrFormat, "unknown version "+stream.Decimal(int(pre[6]))+"."+stream.Decimal(int(pre[7])))
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
		return Header{}, p.fail(8, file.ErrTooLarge, "header of "+stream.Decimal(length)+" bytes")
	}
	text, err := src.Bytes(nil, length)
	if err != nil {
		return Header{}, err
	}
	parse := &parser{stream.Scanner{Text: text, Space: space, Fail: func(i int64, err error, detail string) error {
		return p.fail(int64(at)+i, err, detail)
	}}}
	return parse.header()
}

// text returns the bytes of a file before the elements. The header was checked.
func (h Header) text() []byte {
	descr, _ := descrOf(h.Type)
	fortran := "False"
	if h.Fortran {
		fortran = "True"
	}
	s := "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shapeText(h.Shape) + ", }"
	const prefix = len(magic) + 4
	n := (prefix+len(s)+1+align-1)/align*align - prefix
	out := append([]byte(magic), 1, 0, byte(n), byte(n>>8))
	out = append(out, s...)
	for len(out) < prefix+n-1 {
		out = append(out, ' ')
	}
	return append(out, '\n')
}

// shapeText writes a shape as Python does.
func shapeText(shape []int64) string {
	b := []byte{'('}
	for i, d := range shape {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, d, 10)
	}
	if len(shape) == 1 {
		b = append(b, ',')
	}
	return string(append(b, ')'))
}
