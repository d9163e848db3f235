// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var _ file.Writer = (*Writer)(nil)

// Writer writes one array as a stream.
type Writer struct {
	out    stream.Counter
	left   int64
	err    error // of the output, for good
	closed bool
}

// NewWriter writes the header. The elements are written little-endian in the order that the header says; one of big-endian
// elements is [driver.ErrInvalid].
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if w == nil || h.BigEndian {
		return nil, driver.Fail("npy: NewWriter", driver.ErrInvalid, "no output, or a header of big-endian elements")
	}
	size, err := h.check()
	if err != nil {
		return nil, err
	}
	p := &Writer{out: stream.Counter{W: w}, left: size}
	if _, err := p.out.Write(h.text()); err != nil {
		return nil, p.fail(err, "")
	}
	return p, nil
}

// Write writes elements. More than there are is [file.ErrFormat], and none of it is written.
func (w *Writer) Write(b []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.out.W == nil || w.closed:
		return 0, driver.Fail("npy: Writer.Write", driver.ErrClosed)
	case int64(len(b)) > w.left:
		return 0, w.fail(file.ErrFormat, "more data than the header tells of")
	}
	n, err := w.out.Write(b)
	w.left -= int64(n)
	if err != nil {
		w.err = w.fail(err, "")
	}
	return n, w.err
}

// Close ends the file. While elements are missing it is [file.ErrTruncated], and writing may go on. A second Close does
// nothing.
func (w *Writer) Close() error {
	switch {
	case w.err != nil:
		return w.err
	case w.left > 0:
		return w.fail(file.ErrTruncated, "data are missing")
	}
	w.closed = true
	return nil
}

func (w *Writer) fail(err error, detail string) error {
	return (place{}).fail(w.out.N, err, detail)
}
