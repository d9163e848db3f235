// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"io"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Check returns the headers, with the sizes of their data, for a writer. Offset and Size of those given do not matter.
func Check(fail Fail, given []file.Header) (headers []file.Header, err error) {
	seen := make(map[string]int, len(given))
	total := int64(0)
	for i, h := range given {
		wrong := func(err error, detail ...any) ([]file.Header, error) {
			return nil, fail(0, err, "tensor ", i, ", ", Quote(h.Name), ": ", fault.Text(detail...))
		}
		first, double := seen[h.Name]
		seen[h.Name] = i
		_, size, ok := h.Type.Bytes(h.Shape)
		switch {
		case double:
			return wrong(file.ErrDuplicate, "as tensor ", first)
		case !ok:
			return wrong(file.ErrFormat, "impossible shape")
		case len(h.Shape) > MaxDims:
			return wrong(file.ErrTooLarge, len(h.Shape), " dimensions")
		case total > math.MaxInt64-size:
			return wrong(file.ErrTooLarge, "the sizes do not add up in 64 bits")
		}
		total += size
		h.Shape, h.Size = slices.Clone(h.Shape), size
		headers = append(headers, h)
	}
	return headers, nil
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
	Out     Counter
	Headers []file.Header // whose sizes add up in 64 bits
	Fail    Fail
	// Start writes what is before the data of a tensor and returns where they go. Without Start they go to Out.
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
	for _, h := range w.Headers {
		w.left += h.Size
	}
	if _, err := w.Out.Write(head); err != nil {
		return nil, w.stop(err)
	}
	return w, nil
}

func (w *Writer) stop(err error) error {
	w.err = w.Fail(w.Out.N, err)
	return w.err
}

// start goes on to a tensor that lacks data, over those that have none, or to the end.
func (w *Writer) start() (err error) {
	for w.data == 0 && w.next < len(w.Headers) {
		if w.Start != nil {
			if w.to, err = w.Start(w.next); err != nil {
				return w.stop(err)
			}
		}
		w.data = w.Headers[w.next].Size
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
		return 0, w.Fail(w.Out.N, fault.ErrClosed)
	case int64(len(p)) > w.left:
		return 0, w.Fail(w.Out.N, file.ErrFormat, len(p), " bytes of data, ", w.left, " are missing")
	}
	done := 0
	for done < len(p) {
		if err := w.start(); err != nil {
			return done, err
		}
		part := p[done:][:min(int64(len(p)-done), w.data)]
		n, err := w.to.Write(part)
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
		i := w.next
		if w.data > 0 {
			i--
		}
		return w.Fail(w.Out.N, file.ErrTruncated, w.left, " bytes of data are missing, from tensor ", Quote(w.Headers[i].Name), " on")
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
