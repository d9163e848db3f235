// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// source reads the fields of a file and knows where it is. Its errors are [*file.Error].
type source struct {
	in    input
	mem   []byte    // for what is read ahead
	buf   []byte    // what is left of that
	seek  io.Seeker // nil where the reader cannot
	pos   int64     // of the next byte, from where the reader stood at first
	known bool      // in.end is the file's size rather than the largest number
}

// input is the reader underneath, up to the end. It holds a reader to its contract, and returns errors by themselves.
type input struct {
	r        io.Reader
	pos, end int64
	err      error // that came with data
}

func (in *input) Read(b []byte) (int, error) {
	b = b[:min(int64(len(b)), in.end-in.pos)]
	if len(b) == 0 {
		return 0, io.EOF
	}
	if in.err != nil {
		return 0, in.err
	}
	n, err := stream.Some(in.r, b)
	in.pos += int64(n)
	if in.err = err; n > 0 {
		return n, nil
	}
	return 0, err
}

// newSource measures r if it can. A size of less than nothing is unknown.
func newSource(r io.Reader, size int64) (*source, error) {
	if r == nil {
		return nil, invalid("no reader")
	}
	s := &source{in: input{r: r, end: math.MaxInt64}}
	found, seek, err := stream.Measure(r)
	if err != nil {
		return nil, fail(0, err, "")
	}
	s.seek = seek
	for _, n := range []int64{size, found} {
		if n >= 0 {
			s.in.end, s.known = min(s.in.end, n), true
		}
	}
	return s, nil
}

// ahead is how much is read at a time where less is wanted.
const ahead = 4 << 10

// read reads some bytes, or returns an error.
func (s *source) read(b []byte) (n int, err error) {
	if len(s.buf) == 0 && len(b) >= ahead {
		n, err = s.in.Read(b)
	} else if err = s.fill(); err == nil {
		n = copy(b, s.buf)
		s.buf = s.buf[n:]
	}
	s.pos += int64(n)
	return n, err
}

// fill reads ahead if nothing is left.
func (s *source) fill() error {
	if len(s.buf) > 0 {
		return nil
	}
	if s.mem == nil {
		s.mem = make([]byte, ahead)
	}
	n, err := s.in.Read(s.mem)
	s.buf = s.mem[:n]
	return err
}

// left returns how many bytes there can still be.
func (s *source) left() int64 { return s.in.end - s.pos }

// wrap places an error of the reader.
func (s *source) wrap(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(s.pos, file.ErrTruncated, "")
	}
	return fail(s.pos, err, "")
}

// full fills b.
func (s *source) full(b []byte) error {
	for len(b) > 0 {
		n, err := s.read(b)
		if err != nil {
			return s.wrap(err)
		}
		b = b[n:]
	}
	return nil
}

func (s *source) u64() (uint64, error) {
	var b [8]byte
	err := s.full(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (s *source) u32() (uint32, error) {
	var b [4]byte
	err := s.full(b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// expect reads bytes that must be these. What it was is for the message, and called with what the field holds instead.
func (s *source) expect(want []byte, what func(got uint64) string) error {
	at := s.pos
	var b [8]byte
	got := b[:len(want)]
	err := s.full(got)
	for i := range got[:s.pos-at] {
		if got[i] != want[i] {
			return fail(at+int64(i), file.ErrFormat, what(binary.LittleEndian.Uint64(b[:])))
		}
	}
	return err
}

// text reads n bytes into b, which grows with what arrives.
func (s *source) text(b []byte, n int64) ([]byte, error) {
	for b = b[:0]; int64(len(b)) < n; {
		at := len(b)
		part := int(min(n-int64(at), max(4<<10, int64(at))))
		b = slices.Grow(b, part)[:at+part]
		if err := s.full(b[at:]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// skip passes over n bytes, or fewer and returns why.
func (s *source) skip(n int64) error {
	if s.seek != nil && n > int64(len(s.buf)) {
		return s.jump(n)
	}
	for n > 0 {
		if err := s.fill(); err != nil {
			return err
		}
		part := min(n, int64(len(s.buf)))
		s.buf = s.buf[part:]
		s.pos += part
		n -= part
	}
	return nil
}

// jump passes over more than what was read ahead.
func (s *source) jump(n int64) error {
	if _, err := s.seek.Seek(n-int64(len(s.buf)), io.SeekCurrent); err != nil {
		return err
	}
	s.pos += n
	s.in.pos, s.in.err, s.buf = s.pos, nil, nil
	return nil
}

// lacks says that a count's items cannot all be there. at is the count's offset.
func (s *source) lacks(at int64, count uint64, of string) error {
	left := "no file is that long"
	if s.known {
		left = decimal(s.left()) + " bytes are left"
	}
	return fail(at, file.ErrTruncated, strconv.FormatUint(count, 10)+of+", "+left)
}
