// SPDX-License-Identifier: Apache-2.0

package npy

import "io"

// transposed reads an array in Fortran order as one in C order. It holds the elements in pieces of 1 MiB, made as the data
// arrive, so that a claim allocates nothing.
type transposed struct {
	r       *Reader
	pieces  [][]byte
	strides []int64 // of the file's order, in elements
	index   []int64
	at      int64 // of the element at index, in the file's order
	left    int64 // elements
	out     []byte
	rest    []byte // of out
	err     error
}

const pieceBits = 20

// manyDims tells whether the order matters.
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
	stride := int64(1)
	for _, d := range r.header.Shape {
		t.strides = append(t.strides, stride)
		stride *= d
	}
	return t
}

func (t *transposed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if t.out == nil && t.err == nil {
		t.err = t.load()
	}
	if t.err != nil {
		return 0, t.err
	}
	if len(t.rest) == 0 {
		t.fill()
	}
	if len(t.rest) == 0 {
		t.pieces = nil
		return 0, io.EOF
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *transposed) load() error {
	for n := t.r.data.Left; n > 0; n -= 1 << pieceBits {
		piece := make([]byte, min(n, 1<<pieceBits))
		if _, err := io.ReadFull(t.r, piece); err != nil {
			t.pieces = nil
			return err
		}
		t.pieces = append(t.pieces, piece)
	}
	t.out = make([]byte, 0, 32<<10)
	return nil
}

// fill gathers the next elements, the last index first.
func (t *transposed) fill() {
	size := int64(t.r.header.Type.Size())
	t.out = t.out[:0]
	for t.left > 0 && len(t.out)+int(size) <= cap(t.out) {
		from := t.at * size
		piece := t.pieces[from>>pieceBits][from&(1<<pieceBits-1):]
		t.out = append(t.out, piece[:size]...)
		t.left--
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
	t.rest = t.out
}
