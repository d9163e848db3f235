// SPDX-License-Identifier: Apache-2.0

// Package stream reads and writes what the formats of files of tensors have in common.
package stream

import (
	"encoding/binary"
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

// Fail makes a format's error at a byte of a file. The detail is that of [fault.Text].
type Fail func(at int64, err error, detail ...any) error

// Errors makes the errors of a format.
func Errors(format string) Fail {
	return func(at int64, err error, detail ...any) error {
		return &file.Error{Format: format, Offset: at, Detail: fault.Text(detail...), Err: err}
	}
}

// Quote makes a file's bytes fit for a message, and short.
func Quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// Source reads a file and counts its bytes. Read returns the data of one tensor; the other methods return what is
// between the tensors. The first error stays: after it nothing is read. The zero value is an empty file.
type Source struct {
	Pos  int64        // of the next byte, from where the reader stood at first
	Size int64        // of the file from there, -1 if it is unknown
	Left int64        // bytes of the tensor's data that were not read yet
	Last func() error // checks the end of the data before their last bytes are returned; may be nil
	Err  error        // what ended reading
	Fail Fail

	in   io.Reader
	seek io.Seeker // nil where the input cannot seek
}

// NewSource returns a source of a size, or -1.
func NewSource(r io.Reader, size int64, fail Fail) Source {
	return Source{Size: max(size, -1), Fail: fail, in: r}
}

// Measure returns a source of the size that r tells by seeking or by a method Len. A pipe refuses to seek; a device seeks
// and says that nothing is left, as an empty file does: then the size is unknown.
func Measure(r io.Reader, fail Fail) Source {
	s := NewSource(r, -1, fail)
	switch in := r.(type) {
	case io.Seeker:
		at, err := in.Seek(0, io.SeekCurrent)
		if err != nil {
			break // a pipe, for example
		}
		end, err := in.Seek(0, io.SeekEnd)
		if err != nil {
			break // it did not move
		}
		if _, err := in.Seek(at, io.SeekStart); err != nil {
			_ = s.stop(err)
		} else if end > at {
			s.Size, s.seek = end-at, in
		}
	case interface{ Len() int }:
		if n := in.Len(); n > 0 {
			s.Size = int64(n)
		}
	}
	return s
}

// Stop ends reading with an error at a byte, unless there was one before.
func (s *Source) Stop(at int64, err error, detail ...any) error {
	if s.Err == nil {
		s.Err = s.Fail(at, err, detail...)
	}
	return s.Err
}

// stop ends reading with an error of the input, if it is one.
func (s *Source) stop(err error) error {
	switch _, ours := errors.AsType[*file.Error](err); {
	case err == nil:
		return nil
	case ours:
		s.Err = err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.Stop(s.Pos, file.ErrTruncated)
	}
	return s.Stop(s.Pos, err)
}

// Checked is a reader that gives an error in place of a count that there cannot be.
type Checked struct{ io.Reader }

// Read implements [io.Reader].
func (c Checked) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n < 0 || n > len(p) {
		return 0, fault.Fail("Read", fault.ErrInvalid, "the reader returned an impossible count")
	}
	return n, err
}

// input is a source's reader, which counts. It reads at least a byte or returns an error, whatever the reader does.
type input Source

// Read is an io.Reader's.
func (s *input) Read(p []byte) (int, error) {
	for range 100 {
		n, err := Checked{s.in}.Read(p)
		s.Pos += int64(n)
		switch {
		case n > 0 && errors.Is(err, io.EOF): // it comes again
			return n, nil
		case n > 0 || err != nil:
			return n, err
		}
	}
	return 0, io.ErrNoProgress
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
	n, err := (*input)(s).Read(p[:min(int64(len(p)), s.Left)])
	s.Left -= int64(n)
	_ = s.stop(err) // it stays
	if s.Left == 0 && s.Last != nil && s.Err == nil {
		s.Err = s.Last()
	}
	if s.Err != nil && (n == 0 || s.Left == 0) {
		return 0, s.Err
	}
	return n, nil // an error is for the next call
}

// Full fills p.
func (s *Source) Full(p []byte) error {
	if s.Err != nil {
		return s.Err
	}
	_, err := io.ReadFull((*input)(s), p)
	return s.stop(err)
}

// Number reads a little-endian number of up to 8 bytes. Bytes that do not arrive are 0.
func (s *Source) Number(bytes int) uint64 {
	var b [8]byte
	_ = s.Full(b[:bytes]) // the error stays
	return binary.LittleEndian.Uint64(b[:])
}

// Expect reads a number that must be this one. The error is at the first byte that differs, wherever the file ends, and
// what makes its detail from the number that is there instead.
func (s *Source) Expect(bytes int, want uint64, what func(got uint64) string) {
	at := s.Pos
	got := s.Number(bytes)
	for i := range s.Pos - at {
		if byte(got>>(8*i)) != byte(want>>(8*i)) {
			s.Err = s.Fail(at+i, file.ErrFormat, what(got))
			return
		}
	}
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
	n := s.Left
	s.Left = 0
	var err error
	switch {
	case n == 0 || s.Err != nil:
		return s.Err
	case s.seek == nil:
		err = s.pass(n)
	default:
		if _, err = s.seek.Seek(n, io.SeekCurrent); err == nil {
			s.Pos += n
		}
	}
	return s.stop(err)
}

// Rest returns how many bytes follow a place that was read. Where the size is unknown they are passed over to the end.
func (s *Source) Rest(from int64) (int64, error) {
	if s.Size >= 0 {
		return s.Size - from, nil
	}
	if err := s.pass(math.MaxInt64); !errors.Is(err, io.EOF) {
		return 0, s.stop(err)
	}
	return s.Pos - from, nil
}

// pass reads so many bytes and drops them. Package io's way would make a page's program larger.
func (s *Source) pass(n int64) error {
	for b := make([]byte, min(n, 16<<10)); n > 0; {
		k, err := (*input)(s).Read(b[:min(n, int64(len(b)))])
		if err != nil {
			return err
		}
		n -= int64(k)
	}
	return nil
}

// End is an error if anything follows. It reads a byte to see that.
func (s *Source) End() error {
	at := s.Pos
	n, err := (*input)(s).Read(make([]byte, 1))
	switch {
	case n > 0 && s.Size > at:
		return s.Stop(at, file.ErrFormat, s.Size-at, " bytes after what has to be the last")
	case n > 0:
		return s.Stop(at, file.ErrFormat, "bytes after what has to be the last")
	case errors.Is(err, io.EOF):
		return nil
	}
	return s.stop(err)
}

// ReaderFunc is an io.Reader.
type ReaderFunc func(p []byte) (int, error)

// Read calls f.
func (f ReaderFunc) Read(p []byte) (int, error) { return f(p) }

// Blocks reads the blocks that fill returns, until one is empty. An error stays.
func Blocks(fill func() ([]byte, error)) io.Reader {
	var rest []byte
	var end error
	return ReaderFunc(func(p []byte) (int, error) {
		if len(rest) == 0 && len(p) > 0 && end == nil {
			if rest, end = fill(); end == nil && len(rest) == 0 {
				end = io.EOF
			}
		}
		if end != nil {
			return 0, end
		}
		n := copy(p, rest)
		rest = rest[n:]
		return n, nil
	})
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
		n, err = 0, fault.Fail("Read", fault.ErrInvalid, "the reader returned an impossible count")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		in.Err = err
	}
	return n, err
}
