// SPDX-License-Identifier: Apache-2.0

package params

import (
	"io"
	"math"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ file.Reader = (*Reader)(nil)

const (
	memoryLimit = 64 << 20 // what names may take in memory: enough for some 400,000
	nameCost    = 80       // what a name takes beside its bytes, about
)

// Reader reads a dictionary as a stream. The zero value is an empty one. It is not for several goroutines.
type Reader struct {
	src   stream.Source
	opts  Options
	names []string
	last  map[string]int // the last index of each name, with LastWins
	next  int            // index of the tensor that Next goes to
	end   int64          // of the last tensor, once Next has got there
}

// NewReader reads the list of names. r stands at the dictionary's first byte, and offsets count from there. If r has a
// method Seek or Len, the claims of the file are checked against its size at once, else as the bytes run out. Headers are
// read in small pieces, and nothing behind the last tensor is. Names that take more than 64 MiB of memory are
// [file.ErrTooLarge].
func NewReader(r io.Reader, opts Options) (*Reader, error) {
	if r == nil {
		return nil, invalid("no reader")
	}
	p := &Reader{src: stream.Measure(r, fail), opts: opts, last: map[string]int{}}
	if p.readList(); p.src.Err != nil {
		return nil, p.src.Err
	}
	return p, nil
}

func (r *Reader) readList() {
	s := &r.src
	s.Expect(8, listMagic, func(got uint64) string {
		if got == mxnetMagic {
			return "this is an MXNet NDArray list, not a dictionary of TVM or CVM"
		}
		return "a dictionary starts with b7 9c 04 05 4f 8d e5 f7"
	})
	s.Number(8) // reserved
	at := s.Pos
	count := s.Number(8)
	switch {
	case r.lacks(at, count, 8, " names"): // each has at least a length
	case count > memoryLimit/nameCost:
		_ = s.Stop(at, file.ErrTooLarge, count, " names")
	default:
		r.readNames(int(count))
	}
	s.Expect(8, count, func(got uint64) string { return fault.Text(count, " names, ", got, " tensors") })
}

func (r *Reader) readNames(count int) {
	s := &r.src
	var buf []byte
	memory := uint64(0)
	for i := range count {
		at := s.Pos
		length := s.Number(8)
		if r.lacks(at, length, 1, " bytes of a name") {
			return
		}
		if memory += length + nameCost; memory > memoryLimit {
			_ = s.Stop(at, file.ErrTooLarge, "names take more than ", memoryLimit, " bytes of memory")
			return
		}
		if buf, _ = s.Bytes(buf, int64(length)); s.Err != nil {
			return
		}
		name := string(buf)
		if first, ok := r.last[name]; ok && !r.opts.LastWins {
			s.Err = duplicate(at+8, name, first, i)
		}
		r.last[name] = i
		r.names = append(r.names, name)
	}
}

// left returns how many bytes there can still be.
func (r *Reader) left() int64 {
	if r.src.Size < 0 {
		return math.MaxInt64 - r.src.Pos
	}
	return max(r.src.Size-r.src.Pos, 0)
}

// lacks ends reading where a file claims, at an offset, more items of so many bytes than can be there.
func (r *Reader) lacks(at int64, count, each uint64, of string) bool {
	if left := r.left(); count > uint64(left)/each {
		_ = r.src.Stop(at, file.ErrTruncated, count, of, ", ", left, " bytes at most are left")
	}
	return r.src.Err != nil
}

// Next goes to the next tensor, over what was not read of the last one. It returns io.EOF after the last one. The header's
// shape is the caller's to keep. After an error every call returns it again.
func (r *Reader) Next() (file.Header, error) {
	if r == nil {
		return file.Header{}, invalid("no reader")
	}
	for r.src.Skip() == nil {
		if r.next == len(r.names) {
			return file.Header{}, r.finish()
		}
		name := r.names[r.next]
		h := r.header(name)
		if r.src.Err != nil {
			break
		}
		r.src.Left = h.Size
		r.next++
		if r.last[name] == r.next-1 {
			return h, nil
		}
	}
	return file.Header{}, r.src.Err
}

// header reads a tensor's header field by field, so that the error is about the first wrong one.
func (r *Reader) header(name string) file.Header {
	s := &r.src
	h := header{file.Header{Name: name}, s.Pos}
	s.Expect(8, tensorMagic, func(uint64) string { return h.about() + "a tensor starts with 3f a1 b4 96 f0 40 5e dd" })
	s.Number(8) // reserved
	s.Expect(4, cpu, func(got uint64) string { return fault.Text(h.about(), "its device has to be the CPU (1), not ", got) })
	s.Number(4) // device id
	dims := int(int32(s.Number(4)))
	r.hold(h.checkDims(dims))
	typ := s.Number(4)
	h.Type = dtype.Type{Code: uint8(typ), Bits: uint8(typ >> 8), Lanes: uint16(typ >> 16)}
	r.hold(h.checkType())
	if s.Err != nil {
		return h.Header
	}
	h.Shape = make([]int64, dims)
	for i := range h.Shape {
		h.Shape[i] = int64(s.Number(8))
	}
	size, err := h.checkShape()
	r.hold(err)
	s.Expect(8, uint64(size), func(got uint64) string {
		return fault.Text(h.about(), "its shape takes ", size, " bytes, its data ", int64(got))
	})
	h.Offset, h.Size = s.Pos, size
	switch left := r.left(); {
	case size <= left:
	case s.Size >= 0:
		_ = s.Stop(s.Size, file.ErrTruncated, h.about(), left, " of ", size, " bytes are there")
	default:
		_ = s.Stop(h.Offset-8, file.ErrFormat, h.about(), "no file is that long")
	}
	return h.Header
}

// hold ends reading with an error, if it is one and the first.
func (r *Reader) hold(err error) {
	if r.src.Err == nil {
		r.src.Err = err
	}
}

// finish checks what follows the last tensor.
func (r *Reader) finish() error {
	if r.end == 0 {
		r.end = r.src.Pos
		if r.opts.Strict && r.src.End() != nil {
			return r.src.Err
		}
	}
	return io.EOF
}

// Read reads the data of the tensor that Next returned. It returns io.EOF at their end, and also before the first Next.
func (r *Reader) Read(b []byte) (int, error) {
	if r == nil {
		return 0, invalid("no reader")
	}
	return r.src.Read(b)
}

// Trailing returns how many bytes follow the last tensor, once Next has returned io.EOF. Where the size of the file is
// unknown it reads on to its end.
func (r *Reader) Trailing() (int64, error) {
	switch {
	case r == nil:
		return 0, invalid("no reader")
	case r.src.Err != nil:
		return 0, r.src.Err
	case r.end == 0:
		return 0, invalid("there are more tensors")
	}
	return r.src.Rest(r.end)
}
