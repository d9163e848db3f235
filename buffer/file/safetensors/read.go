// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

var _ file.Reader = (*Reader)(nil)

const (
	lengthSize = 8 // of the header's length
	maxHeader  = 100_000_000
)

func fail(at int64, err error, detail string) error {
	return &file.Error{Format: "safetensors", Offset: at, Detail: detail, Err: err}
}

// Reader reads a file's tensors in the order of their data, which is not that of the header.
type Reader struct {
	in       io.Reader
	seek     io.Seeker // nil where in cannot
	size     int64     // -1: unknown
	tensors  []file.Header
	metadata map[string]string
	data     stream.Data
	end      int64 // of all data
	done     bool  // the end was looked at
	err      error // of the input
}

// NewReader reads and checks the header. A file that is longer or shorter than the header says is [file.ErrFormat] or
// [file.ErrTruncated]: at once where the size is known, from an io.Seeker, from a Len method or by [Size], and
// otherwise when the end is reached. Where r is an io.Seeker, data that nobody reads are passed over without reading.
// A bool is a byte, and is not looked at.
func NewReader(r io.Reader, opts ...Option) (*Reader, error) {
	c, err := configure(forReader, opts)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, c.invalid("no input")
	}
	s := &Reader{in: r, size: c.size}
	known, seek, err := stream.Measure(r)
	if err != nil {
		return nil, fail(0, err, "")
	}
	if s.seek = seek; s.size < 0 {
		s.size = known
	}
	text, err := s.header(c.maxHeader)
	if err != nil {
		return nil, err
	}
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	s.tensors, s.metadata = p.tensors, p.metadata
	if err := s.arrange(int64(lengthSize + len(text))); err != nil {
		return nil, err
	}
	s.data = stream.Data{R: r, At: int64(lengthSize + len(text)), Fail: fail}
	return s, nil
}

// header reads the length and the text of the header.
func (s *Reader) header(most int64) ([]byte, error) {
	d := stream.Data{R: s.in, Left: math.MaxInt64, Fail: fail}
	var pre [lengthSize]byte
	if err := d.Full(pre[:]); err != nil {
		return nil, err
	}
	n := uint64(0)
	for i, b := range pre {
		n |= uint64(b) << (8 * i)
	}
	switch {
	case n > uint64(most):
		return nil, fail(0, file.ErrTooLarge, "a header of "+strconv.FormatUint(n, 10)+" bytes")
	case s.size >= 0 && int64(n) > s.size-lengthSize:
		return nil, fail(max(s.size, 0), file.ErrTruncated, "a header of "+strconv.FormatUint(n, 10)+" bytes")
	}
	const piece = 64 << 10
	room := min(n, piece)
	if s.size >= 0 {
		room = n // all of it is there
	}
	text := make([]byte, 0, room)
	for uint64(len(text)) < n {
		part := int(min(n-uint64(len(text)), piece))
		text = slices.Grow(text, part)
		if err := d.Full(text[len(text) : len(text)+part]); err != nil {
			return nil, err
		}
		text = text[:len(text)+part]
	}
	return text, nil
}

// arrange puts the tensors into the order of their data, which begin at start, and wants the data to be without holes.
func (s *Reader) arrange(start int64) error {
	slices.SortStableFunc(s.tensors, func(a, b file.Header) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
	end := int64(0)
	for i := range s.tensors {
		h := &s.tensors[i]
		if h.Offset != end {
			return fail(start+min(end, h.Offset), file.ErrFormat, stream.Quote(h.Name)+": its data start at "+
				strconv.FormatInt(h.Offset, 10)+", the last ones end at "+strconv.FormatInt(end, 10))
		}
		if end > math.MaxInt64-start-h.Size {
			return fail(start, file.ErrTooLarge, "the sizes do not add up in 64 bits")
		}
		end += h.Size
		h.Offset += start
	}
	s.end = start + end
	switch {
	case s.size >= 0 && s.size < s.end:
		return fail(s.size, file.ErrTruncated, "of "+strconv.FormatInt(s.end, 10)+" bytes")
	case s.size > s.end:
		return fail(s.end, file.ErrFormat, strconv.FormatInt(s.size-s.end, 10)+" bytes after the last tensor")
	}
	return nil
}

// Metadata returns the texts that the header has under names of their own, nil if it has none.
func (s *Reader) Metadata() map[string]string { return maps.Clone(s.metadata) }

// Next goes to the next tensor. An error of the input stays.
func (s *Reader) Next() (file.Header, error) {
	if s.err == nil {
		s.err = s.skip()
	}
	if s.err == nil && len(s.tensors) == 0 {
		s.err = s.finish()
	}
	if s.err != nil {
		return file.Header{}, s.err
	}
	h := s.tensors[0]
	s.tensors = s.tensors[1:]
	s.data.Left = h.Size
	return h, nil
}

// skip goes over what was not read of a tensor.
func (s *Reader) skip() error {
	if s.data.Left == 0 {
		return nil
	}
	if s.seek != nil {
		if _, err := s.seek.Seek(s.data.Left, io.SeekCurrent); err != nil {
			return fail(s.data.At, err, "")
		}
		s.data.At += s.data.Left
		s.data.Left = 0
		return nil
	}
	_, err := io.Copy(io.Discard, &s.data)
	return err
}

// finish looks for bytes after the last tensor and returns io.EOF if there are none.
func (s *Reader) finish() error {
	if s.done || s.in == nil || s.size >= 0 {
		return io.EOF
	}
	s.done = true
	rest := stream.Data{R: s.in, At: s.end, Left: 1, Fail: fail}
	switch err := rest.Full(make([]byte, 1)); {
	case err == nil:
		return fail(s.end, file.ErrFormat, "bytes after the last tensor")
	case errors.Is(err, file.ErrTruncated):
		return io.EOF
	default:
		return err
	}
}

// Read reads the data of the tensor that Next returned.
func (s *Reader) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.data.Read(p)
}
