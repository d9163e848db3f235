// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ file.Reader = (*Reader)(nil)

const (
	lengthSize = 8 // of the header's length
	maxHeader  = 100_000_000
)

var fail = stream.Errors("safetensors")

// Reader reads a file's tensors in the order of their data, which is not that of the header. The zero value is an empty file.
type Reader struct {
	src      stream.Source
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
	s := &Reader{src: stream.Measure(r, fail)}
	text, err := headerOf(&s.src)
	if err != nil {
		return nil, err
	}
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	s.tensors, s.metadata = p.tensors, p.metadata
	if err := s.arrange(); err != nil {
		return nil, err
	}
	return s, nil
}

// headerOf reads the length and the text of the header.
func headerOf(src *stream.Source) ([]byte, error) {
	n := src.Number(lengthSize)
	switch {
	case src.Err != nil:
		return nil, src.Err
	case n > maxHeader:
		return nil, fail(0, file.ErrTooLarge, "a header of ", n, " bytes")
	case src.Size >= 0 && int64(n) > src.Size-lengthSize:
		return nil, src.Stop(src.Size, file.ErrTruncated, "a header of ", n, " bytes")
	}
	return src.Bytes(nil, int64(n))
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
			return fail(start+min(end, h.Offset), file.ErrFormat, stream.Quote(h.Name), ": its data start at ", h.Offset,
				", the last ones end at ", end)
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
		return fail(size, file.ErrTruncated, "of ", end, " bytes")
	case size > end:
		return fail(end, file.ErrFormat, size-end, " bytes after the last tensor")
	}
	return nil
}

// Metadata returns the texts that the header has under names of their own, nil if it has none.
func (s *Reader) Metadata() map[string]string {
	if s == nil {
		return nil
	}
	return maps.Clone(s.metadata)
}

// Next goes to the next tensor. An error of the input stays.
func (s *Reader) Next() (file.Header, error) {
	if s == nil {
		return file.Header{}, errNoReader
	}
	if err := s.src.Skip(); err != nil {
		return file.Header{}, err
	}
	if len(s.tensors) == 0 {
		if s.src.Size < 0 && s.src.End() != nil {
			return file.Header{}, s.src.Err
		}
		return file.Header{}, io.EOF
	}
	h := s.tensors[0]
	s.tensors = s.tensors[1:]
	s.src.Left = h.Size
	return h, nil
}

// Read reads the data of the tensor that Next returned.
func (s *Reader) Read(p []byte) (int, error) {
	if s == nil {
		return 0, errNoReader
	}
	return s.src.Read(p)
}

var errNoReader = fault.Fail("safetensors: Read", fault.ErrInvalid, "no reader")
