// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ file.Writer = (*Writer)(nil)

// Writer writes a dictionary as a stream. It is not for several goroutines.
type Writer struct {
	out     stream.Counter
	tensors []tensor
	next    int   // index of the tensor whose header comes next
	data    int64 // bytes missing of the one before it
	left    int64 // bytes missing of all
	buf     []byte
	err     error // of out
	closed  bool
}

// tensor is what is written of a header after its name.
type tensor struct {
	name   string
	typ    dtype.Type
	shape  []int64
	size   int64
	hidden bool // by a later one of the same name
}

// NewWriter checks all headers before it writes the list of names. Offsets in headers do not matter; a Size is either that
// of the shape or 0, which leaves it to the writer. What no [Reader] would accept is refused with the reader's errors;
// their offsets are where the byte would have stood in the file.
func NewWriter(w io.Writer, headers []file.Header, opts ...Option) (*Writer, error) {
	var o options
	if err := o.apply(opts, false); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, invalid("no writer")
	}
	p := &Writer{out: stream.Counter{W: w}}
	if err := p.list(headers, &o); err != nil {
		return nil, err
	}
	if err := p.check(headers); err != nil {
		return nil, err
	}
	if err := p.writeList(); err != nil {
		return nil, err
	}
	return p, nil
}

// list takes the headers over and finds those of the same name.
func (w *Writer) list(headers []file.Header, o *options) error {
	last := make(map[string]int, len(headers))
	at := int64(24)
	for i, h := range headers {
		if first, ok := last[h.Name]; ok {
			if !o.lastWins {
				return duplicate(at+8, h.Name, first, i)
			}
			w.tensors[first].hidden = true
		}
		last[h.Name] = i
		at += 8 + int64(len(h.Name))
		w.tensors = append(w.tensors, tensor{name: h.Name, typ: o.typeOf(h.Type), shape: slices.Clone(h.Shape)})
	}
	return nil
}

// check checks the tensors and sums them up.
func (w *Writer) check(headers []file.Header) error {
	pos := int64(32)
	for _, t := range w.tensors {
		if !t.hidden {
			pos += 8 + int64(len(t.name))
		}
	}
	for i := range w.tensors {
		t := &w.tensors[i]
		f := checkDims(int32(min(len(t.shape), math.MaxInt32)))
		if f == nil {
			f = checkType(t.typ)
		}
		if f == nil {
			t.size, f = checkShape(t.typ, t.shape)
		}
		if f != nil {
			return f.error(pos, t.name)
		}
		header := 40 + 8*int64(len(t.shape))
		if n := headers[i].Size; n != 0 && n != t.size {
			f = &fieldError{header - 8, fault.ErrInvalid, "its shape takes " + decimal(t.size) + " bytes, its header says " + decimal(n)}
			return f.error(pos, t.name)
		}
		if t.size > math.MaxInt64-pos-header || t.size > math.MaxInt64-w.left {
			f = &fieldError{header - 8, file.ErrTooLarge, "no file is that long"}
			return f.error(pos, t.name)
		}
		w.left += t.size
		if !t.hidden {
			pos += header + t.size
		}
	}
	return nil
}

func (w *Writer) writeList() error {
	count := uint64(0)
	for _, t := range w.tensors {
		if !t.hidden {
			count++
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, listMagic)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, count)
	for _, t := range w.tensors {
		if t.hidden {
			continue
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(t.name)))
		b = append(b, t.name...)
		if len(b) >= 32<<10 {
			if _, err := w.emit(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	b = binary.LittleEndian.AppendUint64(b, count)
	_, err := w.emit(b)
	return err
}

// emit writes to the file.
func (w *Writer) emit(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if err != nil {
		w.err = fail(w.out.N, err, "")
	}
	return n, w.err
}

// start goes on to a tensor that lacks data, over those that have none, or to the end.
func (w *Writer) start() error {
	for w.data == 0 && w.next < len(w.tensors) {
		t := &w.tensors[w.next]
		if !t.hidden {
			w.buf = appendTensor(w.buf[:0], t.typ, t.shape, t.size)
			if _, err := w.emit(w.buf); err != nil {
				return err
			}
		}
		w.data = t.size
		w.next++
	}
	return nil
}

// Write writes the data of the tensors one after the other, row by row and little-endian. More than they have is
// [file.ErrFormat], and nothing of it is written. After an error of the writer underneath every call returns it again.
func (w *Writer) Write(b []byte) (int, error) {
	switch {
	case w.out.W == nil:
		return 0, errNotMade
	case w.closed:
		return 0, fail(w.out.N, fault.ErrClosed, "")
	case w.err != nil:
		return 0, w.err
	case int64(len(b)) > w.left:
		return 0, fail(w.out.N, file.ErrFormat, decimal(int64(len(b)))+" bytes of data, the tensors lack "+decimal(w.left))
	}
	done := 0
	for done < len(b) {
		if err := w.start(); err != nil {
			return done, err
		}
		part := b[done:][:min(int64(len(b)-done), w.data)]
		n, err := len(part), error(nil)
		if !w.tensors[w.next-1].hidden {
			n, err = w.emit(part)
		}
		done += n
		w.data -= int64(n)
		w.left -= int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Close writes the headers of the last tensors if those have no data. While data are missing it is [file.ErrTruncated],
// and writing may go on. A second Close does nothing.
func (w *Writer) Close() error {
	switch {
	case w.out.W == nil:
		return errNotMade
	case w.err != nil:
		return w.err
	case w.closed:
		return nil
	case w.left > 0:
		first := w.next
		if w.data > 0 {
			first--
		}
		return fail(w.out.N, file.ErrTruncated, "the tensors from "+stream.Quote(w.tensors[first].name)+" on lack "+decimal(w.left)+" bytes of data")
	}
	if err := w.start(); err != nil {
		return err
	}
	w.closed = true
	return nil
}
