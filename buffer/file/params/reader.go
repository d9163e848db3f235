// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

var _ file.Reader = (*Reader)(nil)

// memoryLimit is how many bytes names, and with [Scan] headers, may take. It is enough for some 400,000 names.
const memoryLimit = 64 << 20

// nameCost and headerCost are about what a name and a header take in memory beside their bytes and shape.
const (
	nameCost   = 80
	headerCost = 96
)

// Reader reads a dictionary as a stream. It is not for several goroutines.
type Reader struct {
	src    *stream.Source
	opts   Options
	memory int64 // what is left of the limit
	names  []string
	last   map[string]int // the last index of each name, with LastWins
	next   int            // index of the tensor that Next goes to
	passed int64          // bytes after the last tensor that were passed over
}

// NewReader reads the list of names. r stands at the dictionary's first byte, and offsets count from there. If r has a
// method Seek or Len, the claims of the file are checked against its size at once, else as the bytes run out. r may be
// read some way past the last tensor. Names that take more than 64 MiB of memory are [file.ErrTooLarge].
func NewReader(r io.Reader, opts Options) (*Reader, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, invalid("no reader")
	}
	src, err := stream.Measure(r, fail)
	if err != nil {
		return nil, err
	}
	src.ReadAhead()
	p := &Reader{src: src, opts: opts, memory: memoryLimit}
	if err := p.readList(); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *Reader) readList() error {
	err := r.expect(8, listMagic, func(got uint64) string {
		if got == mxnetMagic {
			return "this is an MXNet NDArray list, not a dictionary of TVM or CVM"
		}
		return "a dictionary starts with b7 9c 04 05 4f 8d e5 f7"
	})
	if err != nil {
		return err
	}
	if _, err := r.number(8); err != nil { // reserved
		return err
	}
	at := r.src.Pos
	count, err := r.number(8)
	if err != nil {
		return err
	}
	if count > uint64(r.left())/8 { // each has at least a length
		return r.lacks(at, count, " names")
	}
	if count > memoryLimit/nameCost {
		return fail(at, file.ErrTooLarge, stream.Decimal(count)+" names")
	}
	if err := r.readNames(int(count)); err != nil {
		return err
	}
	return r.expect(8, count, func(got uint64) string {
		return stream.Decimal(count) + " names, " + stream.Decimal(got) + " tensors"
	})
}

func (r *Reader) readNames(count int) error {
	r.last = map[string]int{}
	var buf []byte
	for i := range count {
		at := r.src.Pos
		length, err := r.number(8)
		if err != nil {
			return err
		}
		if length > uint64(r.left()) {
			return r.lacks(at, length, " bytes of a name")
		}
		if err := r.charge(at, int64(length)+nameCost); err != nil {
			return err
		}
		if buf, err = r.src.Bytes(buf, int64(length)); err != nil {
			return err
		}
		name := string(buf)
		if first, ok := r.last[name]; ok && !r.opts.LastWins {
			return duplicate(at+8, name, first, i)
		}
		r.last[name] = i
		r.names = append(r.names, name)
	}
	return nil
}

// charge takes bytes from the limit of memory.
func (r *Reader) charge(at, n int64) error {
	if n < 0 || n > r.memory {
		return fail(at, file.ErrTooLarge, "names and headers take more than "+stream.Decimal(memoryLimit)+" bytes of memory")
	}
	r.memory -= n
	return nil
}

// left returns how many bytes there can still be.
func (r *Reader) left() int64 {
	if r.src.Size < 0 {
		return noEnd - r.src.Pos
	}
	return max(r.src.Size-r.src.Pos, 0)
}

// lacks makes the error for a count, at an offset, of items that cannot all be there.
func (r *Reader) lacks(at int64, count uint64, of string) error {
	left := "no file is that long"
	if r.src.Size >= 0 {
		left = stream.Decimal(r.left()) + " bytes are left"
	}
	return fail(at, file.ErrTruncated, stream.Decimal(count)+of+", "+left)
}

// number reads a number of so many bytes.
func (r *Reader) number(bytes int) (uint64, error) {
	var b [8]byte
	err := r.src.Full(b[:bytes])
	return binary.LittleEndian.Uint64(b[:]), err
}

// expect reads a number that must be this one. The error is at the first byte that differs, and what makes its text from
// the number that is there instead.
func (r *Reader) expect(bytes int, want uint64, what func(got uint64) string) error {
	at := r.src.Pos
	got, err := r.number(bytes)
	for i := range r.src.Pos - at {
		if byte(got>>(8*i)) != byte(want>>(8*i)) {
			return fail(at+i, file.ErrFormat, what(got))
		}
	}
	return err
}

// Names returns the names in the order of the tensors: those that Next returns.
func (r *Reader) Names() []string {
	names := make([]string, 0, len(r.names))
	for i, name := range r.names {
		if r.last[name] == i {
			names = append(names, name)
		}
	}
	return names
}

// Next goes to the next tensor, over what was not read of the last one. It returns io.EOF after the last one. The header's
// shape is the caller's to keep. After an error every call returns it again.
func (r *Reader) Next() (h file.Header, err error) {
	if r.src == nil {
		return file.Header{}, errNotMade
	}
	for r.src.Err == nil {
		if err = r.src.Skip(); err != nil {
			break
		}
		if r.next == len(r.names) {
			err = r.finish()
			break
		}
		name := r.names[r.next]
		if h, err = r.header(name); err != nil {
			break
		}
		r.src.Left = h.Size
		r.next++
		if r.last[name] == r.next-1 {
			return h, nil
		}
	}
	if err != nil {
		r.src.Err = err
	}
	return file.Header{}, r.src.Err
}

// header reads a tensor's header field by field, so that the error is about the first wrong one.
func (r *Reader) header(name string) (h file.Header, err error) {
	base, about := r.src.Pos, "tensor "+stream.Quote(name)+": "
	err = r.expect(8, tensorMagic, func(uint64) string { return about + "a tensor starts with 3f a1 b4 96 f0 40 5e dd" })
	if err != nil {
		return h, err
	}
	if _, err := r.number(8); err != nil { // reserved
		return h, err
	}
	err = r.expect(4, cpu, func(got uint64) string { return about + "its device has to be the CPU (1), not " + stream.Decimal(got) })
	if err != nil {
		return h, err
	}
	if _, err := r.number(4); err != nil { // device id
		return h, err
	}
	dims, err := r.number(4)
	if err == nil {
		err = checkDims(base, name, int64(int32(dims)))
	}
	if err != nil {
		return h, err
	}
	typ, err := r.number(4)
	t := dtype.Type{Code: uint8(typ), Bits: uint8(typ >> 8), Lanes: uint16(typ >> 16)}
	if err == nil {
		err = checkType(base, name, t)
	}
	if err != nil {
		return h, err
	}
	h = file.Header{Name: name, Type: r.opts.typeOf(t), Shape: make([]int64, dims)}
	for i := range h.Shape {
		d, err := r.number(8)
		if err != nil {
			return h, err
		}
		h.Shape[i] = int64(d)
	}
	return h, r.place(&h, base)
}

// place checks a tensor's shape against its size, and both against the file.
func (r *Reader) place(h *file.Header, base int64) error {
	about := "tensor " + stream.Quote(h.Name) + ": "
	size, err := checkShape(base, h.Name, h.Type, h.Shape)
	if err != nil {
		return err
	}
	err = r.expect(8, uint64(size), func(got uint64) string {
		return about + "its shape takes " + stream.Decimal(size) + " bytes, its data " + stream.Decimal(int64(got))
	})
	if err != nil {
		return err
	}
	h.Offset, h.Size = r.src.Pos, size
	switch left := r.left(); {
	case size <= left:
		return nil
	case r.src.Size >= 0:
		return fail(r.src.Size, file.ErrTruncated, about+stream.Decimal(left)+" of "+stream.Decimal(size)+" bytes are there")
	default:
		return fail(h.Offset-8, file.ErrFormat, about+"no file is that long")
	}
}

// finish checks what follows the last tensor.
func (r *Reader) finish() error {
	if !r.opts.Strict {
		return io.EOF
	}
	at, left := r.src.Pos, ""
	if r.src.Size >= 0 {
		left = stream.Decimal(r.left()) + " "
	}
	switch ended, err := r.src.Ended(); {
	case err != nil:
		return err
	case ended:
		return io.EOF
	}
	return fail(at, file.ErrFormat, left+"bytes after the last tensor")
}

// Read reads the data of the tensor that Next returned. It returns io.EOF at their end, and also before the first Next.
func (r *Reader) Read(b []byte) (int, error) {
	if r.src == nil {
		return 0, errNotMade
	}
	return r.src.Read(b)
}

// Trailing returns how many bytes follow the last tensor, once Next has returned io.EOF. Where the size of the file is
// unknown it reads on to its end.
func (r *Reader) Trailing() (int64, error) {
	switch {
	case r.src == nil:
		return 0, errNotMade
	case r.src.Err == nil:
		return 0, invalid("there are more tensors")
	case !errors.Is(r.src.Err, io.EOF):
		return 0, r.src.Err
	}
	n, err := r.src.Rest()
	if r.src.Size < 0 {
		r.passed += n
		n = r.passed
	}
	return n, err
}

// Info describes a dictionary as a whole.
type Info struct {
	Size     int64 // of the dictionary in bytes
	Trailing int64 // bytes after it
}

// Scan reads the headers of all tensors. Their data are passed over by seeking where r can do that (an [io.SectionReader]
// makes such a reader of any io.ReaderAt), and read where it cannot. Names and headers that take more than 64 MiB of memory
// are [file.ErrTooLarge].
func Scan(r io.Reader, opts Options) ([]file.Header, Info, error) {
	p, err := NewReader(r, opts)
	if err != nil {
		return nil, Info{}, err
	}
	var headers []file.Header
	for {
		h, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.charge(h.Offset, headerCost+8*int64(len(h.Shape)))
		}
		if err != nil {
			return nil, Info{}, err
		}
		headers = append(headers, h)
	}
	size := p.src.Pos
	trailing, err := p.Trailing()
	if err != nil {
		return nil, Info{}, err
	}
	return headers, Info{size, trailing}, nil
}
