// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"io"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ file.Writer = (*Writer)(nil)

// Writer writes one array as a stream.
type Writer struct{ out stream.Sink }

// NewWriter writes the header. The elements are written little-endian in the order that the header says; one of big-endian
// elements is [fault.ErrInvalid].
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if w == nil || h.BigEndian {
		return nil, fault.Fail("npy: NewWriter", fault.ErrInvalid, "no output, or a header of big-endian elements")
	}
	size, err := h.check()
	if err != nil {
		return nil, err
	}
	fail := place{}.fail
	p := &Writer{stream.Sink{Counter: stream.Counter{W: w}, Left: size, Fail: fail}}
	if _, err := p.out.Write(h.text()); err != nil {
		return nil, fail(p.out.N, err, "")
	}
	return p, nil
}

// Write writes elements. More than there are is [file.ErrFormat], and none of it is written.
func (w *Writer) Write(b []byte) (int, error) { return w.out.WriteData("npy: Writer.Write", b) }

// Close ends the file. While elements are missing it is [file.ErrTruncated], and writing may go on. A second Close does
// nothing.
func (w *Writer) Close() error { return w.out.Close() }
