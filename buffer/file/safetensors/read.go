// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
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
	src      *stream.Source
	tensors  []file.Header // those to come
	metadata map[string]string
}

// NewReader reads and checks the header. A file that is longer or shorter than the header says is [file.ErrFormat] or
// [file.ErrTruncated]: at once where an io.Seeker or a method Len tells the size, and otherwise when the end is reached.
// Where r is an io.Seeker, data that nobody reads are passed over without reading. A bool is a byte of any value.
func NewReader(r io.Reader) (*Reader, error) {
	if r == nil {
		return nil, fault.Fail("safetensors: NewReader", fault.ErrInvalid, "no input")
	}
	src, err := stream.Measure(r, fail)
	if err != nil {
		return nil, err
	}
	text, err := headerOf(src)
	if err != nil {
		return nil, err
	}
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &Reader{src: src, tensors: p.tensors, metadata: p.metadata}
	if err := s.arrange(); err != nil {
		return nil, err
	}
	return s, nil
}

// headerOf reads the length and the text of the header.
func headerOf(src *stream.Source) ([]byte, error) {
	var length [lengthSize]byte
	if err := src.Full(length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeader:
		return nil, fail(0, file.ErrTooLarge, "a header of "+stream.Decimal(n)+" bytes")
	case src.Size >= 0 && int64(n) > src.Size-lengthSize:
		return nil, fail(src.Size, file.ErrTruncated, "a header of "+stream.Decimal(n)+" bytes")
	}
	var text []byte
	if src.Size >= 0 {
		text = make([]byte, 0, n) // all of it is there
	}
	return src.Bytes(text, int64(n))
}

// arrange puts the tensors into the order of their data, which begin at the next byte, and checks that the data have no
// holes.
func (s *Reader) arrange() error {
	slices.SortStableFunc(s.tensors, func(a, b file.Header) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
	start := s.src.Pos
	end := int64(0)
	for i := range s.tensors {
		h := &s.tensors[i]
		if h.Offset != end {
			return fail(start+min(end, h.Offset), file.ErrFormat, stream.Quote(h.Name)+": its data start at "+
				stream.Decimal(h.Offset)+", the last ones end at "+stream.Decimal(end))
		}
		if end > math.MaxInt64-start-h.Size {
			return fail(start, file.ErrTooLarge, "the sizes do not add up in 64 bits")
		}
		end += h.Size
		h.Offset += start
	}
	end += start
	switch size := s.src.Size; {
	case size >= 0 && size < end:
		return fail(size, file.ErrTruncated, "of "+stream.Decimal(end)+" bytes")
	case size > end:
		return fail(end, file.ErrFormat, stream.Decimal(size-end)+" bytes after the last tensor")
	}
	return nil
}

// Metadata returns the texts that the header has under names of their own, nil if it has none.
func (s *Reader) Metadata() map[string]string { return maps.Clone(s.metadata) }

// Next goes to the next tensor. An error of the input stays.
func (s *Reader) Next() (file.Header, error) {
	if s.src == nil {
		return file.Header{}, io.EOF
	}
	if err := s.src.Skip(); err != nil {
		return file.Header{}, err
	}
	if len(s.tensors) == 0 {
		s.src.Err = s.finish()
		return file.Header{}, s.src.Err
	}
	h := s.tensors[0]
	s.tensors = s.tensors[1:]
	s.src.Left = h.Size
	return h, nil
}

// finish returns io.EOF if nothing follows the last tensor.
func (s *Reader) finish() error {
	if s.src.Size >= 0 {
		return io.EOF
	}
	end := s.src.Pos
	ended, err := s.src.Ended()
	if err == nil && !ended {
		err = fail(end, file.ErrFormat, "bytes after the last tensor")
	}
	return cmp.Or(err, io.EOF)
}

// Read reads the data of the tensor that Next returned.
func (s *Reader) Read(p []byte) (int, error) {
	if s.src == nil {
		return 0, io.EOF
	}
	return s.src.Read(p)
}
