// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"io"
	"math"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Check returns how many bytes the data of each tensor take, for a writer. Offset and Size of the headers do not matter.
func Check(format string, headers []file.Header) (sizes []int64, err error) {
	seen := make(map[string]int, len(headers))
	total := int64(0)
	for i, h := range headers {
		fail := func(err error, detail string) ([]int64, error) {
			return nil, &file.Error{Format: format, Detail: "tensor " + Decimal(i) + ", " + Quote(h.Name) + ": " + detail, Err: err}
		}
		if first, ok := seen[h.Name]; ok {
			return fail(file.ErrDuplicate, "as tensor "+Decimal(first))
		}
		seen[h.Name] = i
		_, size, ok := h.Type.Bytes(h.Shape)
		switch {
		case !ok:
			return fail(file.ErrFormat, "impossible shape")
		case len(h.Shape) > MaxDims:
			return fail(file.ErrTooLarge, Decimal(len(h.Shape))+" dimensions")
		case total > math.MaxInt64-size:
			return fail(file.ErrTooLarge, "the sizes do not add up in 64 bits")
		}
		total += size
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// Counter counts what goes through it.
type Counter struct {
	W io.Writer
	N int64
}

// Write is an io.Writer's, also where W's is not quite.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	n = min(max(n, 0), len(p))
	if c.N += int64(n); err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Writer is the [file.Writer] of all formats.
type Writer struct {
	Out   Counter
	Names []string // of the tensors, for errors; may be nil
	Sizes []int64  // of their data, which add up in 64 bits
	Fail  Fail
	// Start writes what is before the data of a tensor and returns where they go, nil where they are dropped. Without Start
	// they go to Out.
	Start func(i int) (io.Writer, error)
	// End writes what is after the last tensor; may be nil.
	End func() error

	to     io.Writer
	next   int   // index of the tensor that is started next
	data   int64 // bytes missing of the one before it
	left   int64 // bytes missing of all
	err    error // of the output, for good
	closed bool
}

// Begin writes what is before the first tensor.
func (w *Writer) Begin(head []byte) (file.Writer, error) {
	w.to = &w.Out
	for _, n := range w.Sizes {
		w.left += n
	}
	if len(head) > 0 {
		if _, err := w.Out.Write(head); err != nil {
			return nil, w.stop(err)
		}
	}
	return w, nil
}

func (w *Writer) stop(err error) error {
	w.err = w.Fail(w.Out.N, err, "")
	return w.err
}

// start goes on to a tensor that lacks data, over those that have none, or to the end.
func (w *Writer) start() (err error) {
	for w.data == 0 && w.next < len(w.Sizes) {
		if w.Start != nil {
			if w.to, err = w.Start(w.next); err != nil {
				return w.stop(err)
			}
		}
		w.data = w.Sizes[w.next]
		w.next++
	}
	return nil
}

// Write writes the data of the tensors one after the other. More than there are is [file.ErrFormat], and none of it is
// written.
func (w *Writer) Write(p []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.closed:
		return 0, w.Fail(w.Out.N, fault.ErrClosed, "")
	case int64(len(p)) > w.left:
		return 0, w.Fail(w.Out.N, file.ErrFormat, Decimal(len(p))+" bytes of data, "+Decimal(w.left)+" are missing")
	}
	done := 0
	for done < len(p) {
		if err := w.start(); err != nil {
			return done, err
		}
		part := p[done:][:min(int64(len(p)-done), w.data)]
		n, err := len(part), error(nil)
		if w.to != nil {
			n, err = w.to.Write(part)
		}
		done += n
		w.data -= int64(n)
		w.left -= int64(n)
		if err != nil {
			return done, w.stop(err)
		}
	}
	return done, nil
}

// Close ends the file. While data are missing it is [file.ErrTruncated], and writing may go on. A second Close does
// nothing.
func (w *Writer) Close() error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return nil
	case w.left > 0:
		detail := Decimal(w.left) + " bytes of data are missing"
		if i := w.next; w.Names != nil {
			if w.data > 0 {
				i--
			}
			detail += ", from tensor " + Quote(w.Names[i]) + " on"
		}
		return w.Fail(w.Out.N, file.ErrTruncated, detail)
	}
	if err := w.start(); err != nil {
		return err
	}
	if w.End != nil {
		if err := w.End(); err != nil {
			return w.stop(err)
		}
	}
	w.closed = true
	return nil
}
