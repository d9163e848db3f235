// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"unsafe"
)

// Elem are the Go types that elements can be read into and written from. The bits of a float16 go into a uint16.
type Elem interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Reader reads one array.
type Reader struct {
	r      io.Reader
	header Header
	known  bool // the input is known to be long enough
}

// NewReader reads and checks the header. size is how many bytes r holds, so that a header that claims more is found
// out at once; a negative size means unknown.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	h, used, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if n, _ := h.size(); size >= 0 && n > size-used {
		return nil, malformed("shape %v of %v needs %d bytes, there are %d", h.Shape, h.Type, n, max(0, size-used))
	}
	return &Reader{r, h, size >= 0}, nil
}

// Header describes the array.
func (r *Reader) Header() Header { return r.header }

// Read returns all elements in the order of the file. T has the size of the file's type.
func Read[T Elem](r *Reader) ([]T, error) {
	const chunk = 256 << 10
	n := r.header.Len()
	var v []T
	if r.known {
		v = make([]T, 0, n)
	}
	for len(v) < n {
		end := min(len(v)+chunk, n)
		v = slices.Grow(v, end-len(v))
		if err := ReadInto(r, v[len(v):end]); err != nil {
			return nil, err
		}
		v = v[:end]
	}
	return v, nil
}

// ReadInto reads the next len(dst) elements.
func ReadInto[T Elem](r *Reader, dst []T) error {
	b, size := bytesOf(dst)
	if size != r.header.Type.Size {
		return wrongType("%v read as %d bytes each", r.header.Type, size)
	}
	if err := readFull(r.r, b); err != nil {
		return err
	}
	if r.header.BigEndian != hostBig {
		swap(b, size)
	}
	return nil
}

// Write writes an array. v holds the elements in the order that the header says, and T has the size of its type.
func Write[T Elem](w io.Writer, h Header, v []T) error {
	if err := h.check(); err != nil {
		return err
	}
	b, size := bytesOf(v)
	switch {
	case size != h.Type.Size:
		return wrongType("%d bytes each written as %v", size, h.Type)
	case len(v) != h.Len():
		return malformed("%d elements for shape %v", len(v), h.Shape)
	}
	text := h.text()
	if len(text) > maxHeader {
		return malformed("%d dimensions", len(h.Shape))
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if h.BigEndian == hostBig {
		_, err := w.Write(b)
		return err
	}
	buf := make([]byte, min(len(b), 64<<10))
	for len(b) > 0 {
		n := copy(buf, b)
		b = b[n:]
		swap(buf[:n], size)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// hostBig tells whether this machine puts the high byte first.
var hostBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// bytesOf returns the memory of v and the size of one element.
func bytesOf[T Elem](v []T) ([]byte, int) {
	var e T
	size := int(unsafe.Sizeof(e))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*size), size
}

// swap turns the bytes of every element round.
func swap(b []byte, size int) {
	for i := 0; size > 1 && i+size <= len(b); i += size {
		slices.Reverse(b[i : i+size])
	}
}

// readFull fills b. An early end is a malformed file, not an io.EOF that a caller could take for success.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("it ends early")
	}
	return err
}
