// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"

	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// transposed reads an array in Fortran order as one in C order. It holds all elements, in memory that grows as they arrive.
type transposed struct {
	r       *Reader
	data    []byte  // nil: not read yet
	strides []int64 // of the file's order, in bytes
	index   []int64 // of the next element
	at      int64   // where it is in data
	left    int64   // elements
	block   []byte
	rest    []byte // what is left of the block
	err     error
}

// manyDims tells whether the order of the elements matters.
func manyDims(shape []int64) bool {
	n := 0
	for _, d := range shape {
		if d == 0 {
			return false
		}
		if d > 1 {
			n++
		}
	}
	return n > 1
}

func newTransposed(r *Reader) *transposed {
	t := &transposed{r: r, left: r.header.Len(), index: make([]int64, len(r.header.Shape))}
	stride := int64(r.header.Type.Size())
	for _, d := range r.header.Shape {
		t.strides = append(t.strides, stride)
		stride *= d
	}
	return t
}

func (t *transposed) read(p []byte) (int, error) {
	if t.data == nil && t.err == nil {
		t.data, t.err = stream.Grow(t.data, int(t.r.src.Left), func(b []byte) error {
			_, err := io.ReadFull(t.r, b)
			return err
		})
	}
	if t.err == nil && len(t.rest) == 0 {
		t.fill()
	}
	if t.err != nil {
		return 0, t.err
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// fill gathers the next elements, the last index first.
func (t *transposed) fill() {
	if t.left == 0 {
		t.data, t.err = nil, io.EOF
		return
	}
	const most = 32 << 10
	size := int64(t.r.header.Type.Size())
	for t.block = t.block[:0]; t.left > 0 && len(t.block) < most; t.left-- {
		t.block = append(t.block, t.data[t.at:][:size]...)
		for k := len(t.index) - 1; k >= 0; k-- {
			t.index[k]++
			t.at += t.strides[k]
			if t.index[k] < t.r.header.Shape[k] {
				break
			}
			t.at -= t.strides[k] * t.index[k]
			t.index[k] = 0
		}
	}
	t.rest = t.block
}
