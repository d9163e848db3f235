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

// arrayFile is an open .npy file.
type arrayFile struct {
	path string
	file *os.File
	npy  *npy.Reader
	npy.Header
	size int64 // of the data, in bytes
	grow bool  // there is a file of that size, so that the header's claim can be trusted
}

// openArray opens a file and checks its header. The elements count as progress when they are read.
func openArray(path string, p *progress) (*arrayFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	size := int64(-1)
	if st.Mode().IsRegular() {
		size = st.Size()
		p.expect(size)
	}
	r, err := npy.NewReader(io.TeeReader(f, p), size)
	if err != nil {
		_ = f.Close()
		if _, known := formatOf(path, "", ""); known == nil {
			return nil, fmt.Errorf("%w; sublet params get takes an array out of a file of several", inFile(path, err))
		}
		return nil, inFile(path, err)
	}
	a := &arrayFile{path: path, file: f, npy: r, Header: r.Header(), grow: size >= 0}
	_, a.size, _ = a.Type.Bytes(a.Shape)
	return a, nil
}

// read returns the elements, little-endian, in the file's order. With cast they become float32, and the largest relative change of
// one is returned.
func (a *arrayFile) read(ctx context.Context, cast bool) (data []byte, change float64, err error) {
	var all bytes.Buffer
	if a.grow {
		all.Grow(int(a.size))
	}
	c := &castWriter{w: &all, from: a.Type}
	var to io.Writer = &all
	if cast && a.Type != dtype.Float32 {
		to = c
	}
	if err := pour(ctx, to, a.npy, a.size); err != nil {
		return nil, 0, inFile(a.path, err)
	}
	return all.Bytes(), c.change, nil
}

// close closes what was only read.
func (a *arrayFile) close() {
	if a != nil {
		_ = a.file.Close()
	}
}
