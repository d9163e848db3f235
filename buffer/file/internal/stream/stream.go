// SPDX-License-Identifier: Apache-2.0

// Package stream reads and writes what the formats of files of tensors have in common.
package stream

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// MaxDims is how many dimensions a tensor may have: NumPy's limit, and PyTorch's.
const MaxDims = 64

// Fail makes a format's error at a byte of a file.
type Fail func(at int64, err error, detail string) error

// Source reads a file and counts its bytes. Read returns the data of one tensor; the other methods return what is
// between the tensors. Errors are made by Fail, and after one all calls fail.
type Source struct {
	Pos  int64        // of the next byte, from where the reader stood at first
	Size int64        // of the file from there, -1 if it is unknown
	Left int64        // bytes of the tensor's data that were not read yet
	Last func() error // checks the end of the data before their last bytes are returned; may be nil
	Err  error        // what ended reading
	Fail Fail

	in    io.Reader
	ahead *ahead    // in where it reads ahead, else nil
	seek  io.Seeker // nil where the input cannot seek
}

// NewSource returns a source of a size, or -1.
func NewSource(r io.Reader, size int64, fail Fail) *Source {
	return &Source{Size: max(size, -1), Fail: fail, in: guard{r}}
}

// Measure returns a source of the size that r tells by seeking or by a method Len. A pipe refuses to seek; a device seeks
// and says that nothing is left, as an empty file does: then the size is unknown.
func Measure(r io.Reader, fail Fail) (*Source, error) {
	s := NewSource(r, -1, fail)
	switch in := r.(type) {
	case io.Seeker:
		at, err := in.Seek(0, io.SeekCurrent)
		if err != nil {
			return s, nil //nolint:nilerr // a pipe, for example
		}
		end, err := in.Seek(0, io.SeekEnd)
		if err != nil {
			return s, nil //nolint:nilerr // it did not move
		}
		if _, err := in.Seek(at, io.SeekStart); err != nil {
			return nil, s.stop(err)
		}
		if end > at {
			s.Size, s.seek = end-at, in
		}
	case interface{ Len() int }:
		if n := in.Len(); n > 0 {
			s.Size = int64(n)
		}
	}
	return s, nil
}

// ReadAhead makes small reads cheap. The input may be read some way past the last tensor.
func (s *Source) ReadAhead() {
	s.ahead = &ahead{r: s.in, mem: make([]byte, 4<<10)}
	s.in = s.ahead
}

// ahead reads more than is wanted where that is little. Package bufio would make a page's program larger.
type ahead struct {
	r   io.Reader
	mem []byte
	buf []byte // what is left of mem
	err error  // that came with the bytes in mem
}

func (a *ahead) Read(p []byte) (n int, err error) {
	if len(a.buf) == 0 && a.err == nil {
		if len(p) >= len(a.mem) {
			return a.r.Read(p)
		}
		n, a.err = a.r.Read(a.mem)
		a.buf = a.mem[:n]
	}
	if len(a.buf) == 0 {
		err, a.err = a.err, nil
		return 0, err
	}
	n = copy(p, a.buf)
	a.buf = a.buf[n:]
	return n, nil
}

// guard holds a reader to io.Reader's contract: at least a byte or an error, whatever the reader does.
type guard struct{ r io.Reader }

func (g guard) Read(p []byte) (int, error) {
	for range 100 {
		n, err := g.r.Read(p)
		switch {
		case n < 0 || n > len(p):
			return 0, fault.Fail("Read", fault.ErrInvalid, "the reader returned an impossible count")
		case n > 0 || err != nil || len(p) == 0:
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// some reads at least a byte or returns an error of the input.
func (s *Source) some(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.Pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) { // it comes again
		err = nil
	}
	return n, err
}

// stop ends reading with an error of the input.
func (s *Source) stop(err error) error {
	switch _, ours := errors.AsType[*file.Error](err); {
	case ours:
		s.Err = err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.Err = s.Fail(s.Pos, file.ErrTruncated, "")
	default:
		s.Err = s.Fail(s.Pos, err, "")
	}
	return s.Err
}

// Read reads the data of the tensor. An early end is [file.ErrTruncated].
func (s *Source) Read(p []byte) (int, error) {
	switch {
	case s.Err != nil:
		return 0, s.Err
	case s.Left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := s.some(p[:min(int64(len(p)), s.Left)])
	s.Left -= int64(n)
	if err != nil {
		_ = s.stop(err)
	}
	if s.Left == 0 && s.Err == nil {
		s.Err = s.CheckLast()
	}
	if s.Err != nil && (n == 0 || s.Left == 0) {
		return 0, s.Err
	}
	return n, nil // an error is for the next call
}

// CheckLast calls Last once.
func (s *Source) CheckLast() error {
	if s.Last == nil {
		return nil
	}
	last := s.Last
	s.Last = nil
	return last()
}

// Full fills p.
func (s *Source) Full(p []byte) error {
	for len(p) > 0 && s.Err == nil {
		n, err := s.some(p)
		p = p[n:]
		if err != nil {
			return s.stop(err)
		}
	}
	return s.Err
}

// Bytes reads n bytes into p, which grows with what arrives.
func (s *Source) Bytes(p []byte, n int64) ([]byte, error) { return Grow(p, int(n), s.Full) }

// Grow fills a slice of n elements, in the memory of v if that is large enough. It takes no more memory at a time than
// fill has filled before, so that a claim of many elements costs nothing.
func Grow[T any](v []T, n int, fill func([]T) error) ([]T, error) {
	const least = 64 << 10
	for v = v[:0]; len(v) < n; {
		at := len(v)
		part := min(n-at, max(least, at))
		v = slices.Grow(v, part)[:at+part]
		if err := fill(v[at:]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Skip passes over the rest of the tensor's data, by seeking where the input can.
func (s *Source) Skip() error {
	if s.Err != nil || s.Left == 0 {
		return s.Err
	}
	ahead := int64(0)
	if s.ahead != nil {
		ahead = int64(len(s.ahead.buf))
	}
	n := s.Left
	if s.seek == nil || n <= ahead {
		if _, err := s.discard(n); err != nil {
			return s.stop(err)
		}
	} else {
		if _, err := s.seek.Seek(n-ahead, io.SeekCurrent); err != nil {
			return s.stop(err)
		}
		if s.ahead != nil {
			s.ahead.buf, s.ahead.err = nil, nil
		}
		s.Pos += n
	}
	s.Left = 0
	return nil
}

// discard reads n bytes, or fewer and an error of the input. Package io's way would make a page's program larger.
func (s *Source) discard(n int64) (done int64, err error) {
	b := make([]byte, min(n, 16<<10))
	for done < n && err == nil {
		var part int
		part, err = s.some(b[:min(n-done, int64(len(b)))])
		done += int64(part)
	}
	return done, err
}

// Rest returns how many bytes follow. Where the size is unknown they are passed over to the end.
func (s *Source) Rest() (int64, error) {
	if s.Size >= 0 {
		return s.Size - s.Pos, nil
	}
	n, err := s.discard(math.MaxInt64 - s.Pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, s.stop(err)
	}
	return n, nil
}

// Ended reports whether nothing follows. What does follow is read.
func (s *Source) Ended() (bool, error) {
	n, err := s.some(make([]byte, 1))
	switch {
	case n > 0:
		return false, nil
	case errors.Is(err, io.EOF):
		return true, nil
	}
	return false, s.stop(err)
}

// Decimal writes a number.
func Decimal[N int | int64 | uint64](n N) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Quote makes a file's bytes fit for a message, and short.
func Quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// Input keeps an input's own errors, which the archive's packages may replace, and offsets that no input has from it.
type Input struct {
	R    io.ReaderAt
	Size int64
	At   int64 // where the last read began
	Err  error // of R
}

// ReadAt is an io.ReaderAt's, also where that of R is not quite.
func (in *Input) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > in.Size {
		return 0, io.EOF
	}
	in.At = off
	n, err := in.R.ReadAt(p, off)
	if n < 0 || n > len(p) || n < len(p) && err == nil {
		n, err = 0, fault.Fail("npy: NewZipReader", fault.ErrInvalid, "the input returned an impossible count")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		in.Err = err
	}
	return n, err
}

// ReaderFunc is an io.Reader.
type ReaderFunc func(p []byte) (int, error)

// Read calls f.
func (f ReaderFunc) Read(p []byte) (int, error) { return f(p) }
