// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// array is what a .npy file holds.
type array struct {
	path string
	npy.Header
	data   []byte  // little-endian, in the order of the file
	change float64 // the largest relative change of an element by a cast
}

// readArray reads a file whose header passes a check. With cast its elements become float32.
func (a *app) readArray(ctx context.Context, path string, cast bool, check func(*array) error) (*array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	if st.Mode().IsRegular() {
		size = st.Size()
	}
	a.progress.enter("reading", size)
	r, err := npy.NewReader(f, size)
	if err != nil {
		if _, known := formatOf(path, "", ""); known == nil {
			return nil, fmt.Errorf("%w; sublet params get takes an array out of a file of several", inFile(path, err))
		}
		return nil, inFile(path, err)
	}
	x := &array{path: path, Header: r.Header()}
	if err := check(x); err != nil {
		return nil, err
	}
	var all bytes.Buffer
	_, n, _ := x.Type.Bytes(x.Shape)
	if size >= 0 { // the header's claim can be trusted
		all.Grow(int(n))
	}
	c := &castWriter{w: &all, from: x.Type}
	var to io.Writer = &all
	if cast && x.Type != dtype.Float32 {
		to, x.Type = c, dtype.Float32
	}
	if err := a.progress.pour(ctx, to, r, n); err != nil {
		return nil, inFile(path, err)
	}
	x.data, x.change, x.BigEndian = all.Bytes(), c.change, false
	return x, nil
}
