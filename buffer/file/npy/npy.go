// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"
	"math"
	"slices"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// Elem are the Go types that elements can be read into and written from. A float16 is a [dtype.Half], or a uint16 of its
// bits.
type Elem interface {
	dtype.Half | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Reader reads one array.
type Reader struct {
	header Header
	src    stream.Source
	data   io.Reader // of the elements' bytes, little-endian: src, or what turns its bytes
	left   int64     // bytes that were not read of data
}

// blockSize is about how many bytes are turned at a time, a multiple of every element's size.
const blockSize = 32 << 10

// NewReader reads and checks the header. size is how many bytes r holds, so that a header that claims more is found
// out at once; a negative size means unknown. What follows the array is not read.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	if r == nil {
		return nil, fault.Fail("npy: NewReader", fault.ErrInvalid, "no input")
	}
	return newReader(r, size, place{})
}

func newReader(in io.Reader, size int64, p place) (*Reader, error) {
	r := &Reader{src: stream.NewSource(in, size, p.fail)}
	h, err := readHeader(&r.src, p)
	if err != nil {
		return nil, err
	}
	_, r.left, _ = h.Type.Bytes(h.Shape)
	if size >= 0 && r.left > size-r.src.Pos {
		return nil, p.fail(size, file.ErrTruncated, shapeText(h.Shape), " of ", h.Type.String(), " needs ", r.left,
			" bytes, there are ", max(0, size-r.src.Pos))
	}
	r.header, r.src.Left, r.data = h, r.left, &r.src
	if h.BigEndian {
		mem := make([]byte, min(r.left, blockSize))
		r.data = stream.Blocks(func() ([]byte, error) {
			block := mem[:min(int64(len(mem)), r.src.Left)]
			_, err := io.ReadFull(&r.src, block)
			for part := range slices.Chunk(block, unit(h.Type)) {
				slices.Reverse(part)
			}
			return block, err
		})
	}
	return r, nil
}

// Header describes the array.
func (r *Reader) Header() Header {
	if r == nil {
		return Header{}
	}
	h := r.header
	h.Shape = slices.Clone(h.Shape)
	return h
}

// Read reads the elements' bytes, little-endian, in the order of the file. It returns io.EOF at their end.
func (r *Reader) Read(p []byte) (int, error) {
	if r == nil || r.data == nil {
		return 0, errNoReader
	}
	n, err := r.data.Read(p)
	r.left -= int64(n)
	return n, err
}

var errNoReader = fault.Fail("npy: Read", fault.ErrInvalid, "no reader")

// Read returns the elements that were not read yet, in the order of the file. T has the size of the file's type, and is a
// [dtype.Half] only where that is float16: [file.ErrType] otherwise.
func Read[T Elem](r *Reader) ([]T, error) {
	if r == nil || r.data == nil {
		return nil, errNoReader
	}
	if err := host.CheckOrder("npy: Read"); err != nil {
		return nil, err
	}
	if name := mismatch[T](r.header.Type); name != "" {
		return nil, r.src.Fail(0, file.ErrType, r.header.Type.String(), " read as ", name)
	}
	size := int64(unsafe.Sizeof(*new(T)))
	n := r.left / size
	if n > math.MaxInt {
		return nil, r.src.Fail(r.src.Pos, file.ErrTooLarge, "more than this machine's memory can be")
	}
	var v []T
	if r.src.Size >= 0 {
		v = make([]T, 0, min(n, 1<<30/size)) // the caller's word for the size may be wrong
	}
	return stream.Grow(v, int(n), func(part []T) error {
		_, err := io.ReadFull(r, host.BytesOf(part))
		return err
	})
}

// mismatch describes T if elements of type t do not go into it: it must be of their size, and a Half is nothing else.
func mismatch[T Elem](t dtype.Type) string {
	if _, half := any(*new(T)).(dtype.Half); half && t != dtype.Float16 {
		return dtype.Float16.String()
	}
	if size := int(unsafe.Sizeof(*new(T))); size != t.Size() {
		return fault.Text(size, " bytes each")
	}
	return ""
}

// NewWriter writes the header of an array. The elements are written little-endian in the order that the header says; a
// header of big-endian elements is [fault.ErrInvalid].
func NewWriter(w io.Writer, h Header) (file.Writer, error) {
	if w == nil || h.BigEndian {
		return nil, fault.Fail("npy: NewWriter", fault.ErrInvalid, "no output, or a header of big-endian elements")
	}
	headers, err := stream.Check(place{}.fail, []file.Header{{Type: h.Type, Shape: h.Shape}})
	if err != nil {
		return nil, err
	}
	h.Type = headers[0].Type
	text, ok := h.text()
	if !ok {
		return nil, place{}.fail(0, file.ErrType, h.Type.String())
	}
	return (&stream.Writer{Out: stream.Counter{W: w}, Headers: headers, Fail: place{}.fail}).Begin(text)
}

// Write writes an array. v holds the elements in the order that the header says, and T is as for [Read].
func Write[T Elem](w io.Writer, h Header, v []T) error {
	if err := host.CheckOrder("npy: Write"); err != nil {
		return err
	}
	if name := mismatch[T](h.Type); name != "" {
		return place{}.fail(0, file.ErrType, name, " written as ", h.Type.String())
	}
	if int64(len(v)) != h.Len() {
		return place{}.fail(0, file.ErrFormat, len(v), " elements for shape ", shapeText(h.Shape))
	}
	out, err := NewWriter(w, h)
	if err != nil {
		return err
	}
	if _, err := out.Write(host.BytesOf(v)); err != nil {
		return err
	}
	return out.Close()
}
