// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Elem are the Go types that elements can be read into and written from. A float16 is a [dtype.Half], or a uint16 of its
// bits.
type Elem interface {
	dtype.Half | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Reader reads one array.
type Reader struct {
	header Header
	data   stream.Data
	offset int64
	known  bool // the input is known to be long enough
	unit   int  // bytes to turn round, 0 for none
	one    [8]byte
	rest   []byte // of one
}

// NewReader reads and checks the header. size is how many bytes r holds, so that a header that claims more is found
// out at once; a negative size means unknown. What follows the array is not read.
func NewReader(r io.Reader, size int64, opts ...Option) (*Reader, error) {
	c, err := configure(forReader, opts)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, c.invalid("no input")
	}
	return newReader(r, size, place{}, &c)
}

func newReader(in io.Reader, size int64, p place, c *config) (*Reader, error) {
	r := &Reader{known: size >= 0}
	r.data = stream.Data{R: in, Left: maxHeader + 12, Fail: p.fail} // for the header
	h, err := readHeader(&r.data, p, c.littleEndian)
	if err != nil {
		return nil, err
	}
	r.header, r.offset = h, r.data.At
	_, r.data.Left, _ = h.Type.Bytes(h.Shape)
	if r.known && r.data.Left > size-r.offset {
		return nil, p.fail(max(size, 0), file.ErrTruncated,
			shapeText(h.Shape)+" of "+h.Type.String()+" needs "+strconv.FormatInt(r.data.Left, 10)+" bytes, there are "+
				strconv.FormatInt(max(0, size-r.offset), 10))
	}
	if h.BigEndian {
		r.unit = unit(h.Type)
	}
	return r, nil
}

// Header describes the array.
func (r *Reader) Header() Header {
	h := r.header
	h.Shape = slices.Clone(h.Shape)
	return h
}

// Offset returns where the elements start: how many bytes of the input the header took.
func (r *Reader) Offset() int64 { return r.offset }

// Read reads the elements' bytes, little-endian, in the order of the file. It returns io.EOF at their end.
func (r *Reader) Read(p []byte) (int, error) {
	if r.unit == 0 {
		return r.data.Read(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.rest) == 0 && len(p) < r.unit {
		one := r.one[:r.unit]
		if _, err := io.ReadFull(&r.data, one); err != nil {
			return 0, err
		}
		slices.Reverse(one)
		r.rest = one
	}
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	p = p[:len(p)-len(p)%r.unit]
	n, err := io.ReadAtLeast(&r.data, p, r.unit)
	if more := -n % r.unit; err == nil && more != 0 {
		_, err = io.ReadFull(&r.data, p[n:n+r.unit+more])
		n += r.unit + more
	}
	if err != nil {
		return 0, err
	}
	swap(p[:n], r.unit)
	return n, nil
}

// Read returns all elements in the order of the file. T has the size of the file's type, and is a [dtype.Half] only
// where that is float16: [file.ErrType] otherwise.
func Read[T Elem](r *Reader) ([]T, error) {
	const chunk = 256 << 10
	if err := holds[T](r); err != nil {
		return nil, err
	}
	n, ok := fits(r.data.Left / int64(sizeOf[T]()))
	if !ok {
		return nil, r.data.Fail(r.data.At, file.ErrTooLarge, "more than this machine's memory can be")
	}
	var v []T
	if r.known {
		v = make([]T, 0, min(n, 1<<30/sizeOf[T]())) // the caller's word for the size may be wrong
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

// ReadInto reads the next len(dst) elements. When it fails, what dst holds is undefined.
func ReadInto[T Elem](r *Reader, dst []T) error {
	if err := holds[T](r); err != nil {
		return err
	}
	b := bytesOf(dst)
	if _, err := io.ReadFull(r, b); err != nil {
		if _, ok := errors.AsType[*file.Error](err); !ok {
			return r.data.Fail(r.data.At, file.ErrTruncated, "more elements than there are")
		}
		return err
	}
	if hostBig {
		swap(b, unit(r.header.Type))
	}
	return nil
}

// holds checks a reader of the caller's and the type of an element.
func holds[T Elem](r *Reader) error {
	if r == nil || r.data.Fail == nil {
		return fault.Fail("npy: Read", fault.ErrInvalid, "no reader")
	}
	if name := mismatch[T](r.header.Type); name != "" {
		return r.data.Fail(0, file.ErrType, r.header.Type.String()+" read as "+name)
	}
	return nil
}

// mismatch describes T if elements of type t do not go into it: it must be of their size, and a Half is nothing else.
func mismatch[T Elem](t dtype.Type) string {
	if _, half := any(*new(T)).(dtype.Half); half && t != dtype.Float16 {
		return dtype.Float16.String()
	}
	if size := sizeOf[T](); size != t.Size() {
		return strconv.Itoa(size) + " bytes each"
	}
	return ""
}

// Write writes an array. v holds the elements in the order that the header says, and T is as for [Read].
func Write[T Elem](w io.Writer, h Header, v []T) error {
	if w == nil {
		return fault.Fail("npy: Write", fault.ErrInvalid, "no output")
	}
	if _, err := h.check(); err != nil {
		return err
	}
	b, name := bytesOf(v), mismatch[T](h.Type)
	switch {
	case name != "":
		return (place{}).fail(0, file.ErrType, name+" written as "+h.Type.String())
	case int64(len(v)) != h.Len():
		return (place{}).fail(0, file.ErrFormat, strconv.Itoa(len(v))+" elements for shape "+shapeText(h.Shape))
	}
	w = &stream.Counter{W: w} // which sees to short writes
	if _, err := w.Write(h.text()); err != nil {
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
		swap(buf[:n], unit(h.Type))
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// hostBig tells whether this machine puts the high byte first.
var hostBig = func() bool { x := uint16(1); return *(*byte)(unsafe.Pointer(&x)) == 0 }()

func sizeOf[T Elem]() int {
	var e T
	return int(unsafe.Sizeof(e))
}

// bytesOf returns the memory of v.
func bytesOf[T Elem](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*sizeOf[T]())
}

// swap turns the bytes of every unit round.
func swap(b []byte, unit int) {
	for i := 0; unit > 1 && i+unit <= len(b); i += unit {
		slices.Reverse(b[i : i+unit])
	}
}
