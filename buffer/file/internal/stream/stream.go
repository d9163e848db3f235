// SPDX-License-Identifier: Apache-2.0

// Package stream is what the readers and writers of several file formats do alike.
package stream

import (
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// MaxDims is how many dimensions a tensor may have: NumPy's limit, and PyTorch's.
const MaxDims = 64

// Check returns how many bytes the data of each tensor take, and of all together, for a writer. Offset and Size of the
// headers are not looked at.
func Check(format string, headers []file.Header) (sizes []int64, total int64, err error) {
	seen := make(map[string]int, len(headers))
	for i, h := range headers {
		fail := func(err error, detail string) error {
			return &file.Error{Format: format, Detail: "tensor " + strconv.Itoa(i) + ", " + Quote(h.Name) + ": " + detail, Err: err}
		}
		if first, ok := seen[h.Name]; ok {
			return nil, 0, fail(file.ErrDuplicate, "as tensor "+strconv.Itoa(first))
		}
		seen[h.Name] = i
		_, size, ok := h.Type.Bytes(h.Shape)
		switch {
		case !ok:
			return nil, 0, fail(file.ErrFormat, "impossible shape")
		case len(h.Shape) > MaxDims:
			return nil, 0, fail(file.ErrTooLarge, strconv.Itoa(len(h.Shape))+" dimensions")
		case total > math.MaxInt64-size:
			return nil, 0, fail(file.ErrTooLarge, "the sizes do not add up in 64 bits")
		}
		total += size
		sizes = append(sizes, size)
	}
	return sizes, total, nil
}

// Measure returns how many bytes are left of an input, or -1 where it does not know, and the input as a seeker where that
// works. A pipe refuses to seek; a device seeks and says that nothing is left, as an empty file does. After an error the
// input stands nobody knows where.
func Measure(r io.Reader) (size int64, seek io.Seeker, err error) {
	switch in := r.(type) {
	case io.Seeker:
		at, err := in.Seek(0, io.SeekCurrent)
		if err != nil {
			return -1, nil, nil //nolint:nilerr // a pipe, for example
		}
		end, err := in.Seek(0, io.SeekEnd)
		if err != nil {
			return -1, nil, nil //nolint:nilerr // it did not move
		}
		if _, err := in.Seek(at, io.SeekStart); err != nil {
			return -1, nil, err
		}
		if end > at {
			return end - at, in, nil
		}
	case interface{ Len() int }:
		if n := in.Len(); n > 0 {
			return int64(n), nil, nil
		}
	}
	return -1, nil, nil
}

// Some reads at least a byte or returns an error, whatever the input does.
func Some(r io.Reader, p []byte) (int, error) {
	for range 100 {
		n, err := r.Read(p)
		switch {
		case n < 0 || n > len(p):
			return 0, errCount
		case n > 0 || err != nil:
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

var errCount = fault.Fail("Read", fault.ErrInvalid, "the reader returned an impossible count")

// Data reads the data of one tensor.
type Data struct {
	R    io.Reader
	At   int64 // bytes read of whatever Fail counts from
	Left int64
	// Fail makes the format's error at a byte.
	Fail func(at int64, err error, detail string) error
	// End is called, if it is not nil, after the last byte was read and before it is handed on: what it finds wrong counts
	// for all data.
	End func() error
	err error
}

// Read is an io.Reader's. An early end is [file.ErrTruncated], and errors stay.
func (d *Data) Read(p []byte) (int, error) {
	switch {
	case d.err != nil:
		return 0, d.err
	case d.Left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := Some(d.R, p[:min(int64(len(p)), d.Left)])
	d.At += int64(n)
	d.Left -= int64(n)
	if err != nil && (n == 0 || !errors.Is(err, io.EOF)) { // an end beside data comes again
		d.err = d.wrap(err)
	}
	if d.Left == 0 && d.err == nil {
		d.err = d.finish()
	}
	if d.err != nil && d.Left == 0 {
		return 0, d.err
	}
	if n > 0 {
		return n, nil // the error is for the next call
	}
	return 0, d.err
}

// Finish checks the end of data that nobody needs to read because there are none.
func (d *Data) Finish() error {
	if d.Left == 0 && d.err == nil {
		d.err = d.finish()
	}
	return d.err
}

func (d *Data) finish() error {
	if d.End == nil {
		return nil
	}
	end := d.End
	d.End = nil
	return end()
}

// Full fills b, where b is the format's own and not a tensor's data.
func (d *Data) Full(b []byte) error {
	_, err := io.ReadFull(d, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d.wrap(io.EOF)
	}
	return err
}

func (d *Data) wrap(err error) error {
	if errors.Is(err, io.EOF) {
		return d.Fail(d.At, file.ErrTruncated, "")
	}
	if _, ok := errors.AsType[*file.Error](err); ok {
		return err
	}
	return d.Fail(d.At, err, "")
}

// Counter counts what goes through it.
type Counter struct {
	W io.Writer
	N int64
}

// Write is an io.Writer's, also where W's is not quite.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	n = min(max(n, 0), len(p))
	if c.N += int64(n); err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Sink writes the data that come after a format's header, as [file.Writer] wants it. The header goes to Counter.
type Sink struct {
	Counter
	Left int64 // bytes of data that are missing
	// Fail makes the format's error at a byte.
	Fail   func(at int64, err error, detail string) error
	err    error // of the output, for good
	closed bool
}

// WriteData is a [file.Writer]'s Write, which has the name op in an error.
func (s *Sink) WriteData(op string, p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.W == nil || s.closed:
		return 0, fault.Fail(op, fault.ErrClosed)
	case int64(len(p)) > s.Left:
		return 0, s.Fail(s.N, file.ErrFormat, "more data than the header tells of")
	}
	n, err := s.Write(p)
	s.Left -= int64(n)
	if err != nil {
		s.err = s.Fail(s.N, err, "")
	}
	return n, s.err
}

// Close is a [file.Writer]'s.
func (s *Sink) Close() error {
	switch {
	case s.err != nil:
		return s.err
	case s.Left > 0:
		return s.Fail(s.N, file.ErrTruncated, "data are missing")
	}
	s.closed = true
	return nil
}

// Quote makes a file's bytes fit for a message, and short.
func Quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
