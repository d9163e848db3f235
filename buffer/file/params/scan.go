// SPDX-License-Identifier: Apache-2.0

package params

import (
	"errors"
	"io"

	"github.com/sublet-gpu/sublet/buffer/file"
)

// Info describes a dictionary as a whole.
type Info struct {
	Size     int64 // of the dictionary in bytes
	Trailing int64 // bytes after it
}

// Scan reads the headers of all tensors. Their data are passed over by seeking where r can do that (an [io.SectionReader]
// makes such a reader of any io.ReaderAt), and read where it cannot.
func Scan(r io.Reader, opts ...Option) ([]file.Header, Info, error) {
	p, err := NewReader(r, opts...)
	if err != nil {
		return nil, Info{}, err
	}
	const cost = 96 // of a header, without its name and shape
	var headers []file.Header
	for {
		h, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, Info{}, err
		}
		if err := p.charge(h.Offset, cost+8*int64(len(h.Shape))); err != nil {
			return nil, Info{}, err
		}
		headers = append(headers, h)
	}
	size := p.src.pos
	trailing, err := p.Trailing()
	if err != nil {
		return nil, Info{}, err
	}
	return headers, Info{size, trailing}, nil
}
