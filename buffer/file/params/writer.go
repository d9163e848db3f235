// SPDX-License-Identifier: Apache-2.0

package params

import (
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// tensor is a header as it is written, with its size.
type tensor struct {
	header
	hidden bool // by a later one of the same name
}

// NewWriter checks all headers before it writes the list of names. Offsets in headers do not matter; a Size is either that
// of the shape or 0, which leaves it to the writer. What no [Reader] would accept is refused with the reader's errors;
// their offsets are where the byte would have stood in the file.
func NewWriter(w io.Writer, headers []file.Header, opts Options) (file.Writer, error) {
	if w == nil {
		return nil, invalid("no writer")
	}
	tensors, err := list(headers, opts)
	if err != nil {
		return nil, err
	}
	out := &stream.Writer{Out: stream.Counter{W: w}, Fail: fail}
	for _, t := range tensors {
		out.Headers = append(out.Headers, t.Header)
	}
	out.Start = func(i int) (io.Writer, error) {
		if tensors[i].hidden {
			return io.Discard, nil
		}
		_, err := out.Out.Write(appendTensor(nil, &tensors[i].Header))
		return &out.Out, err
	}
	return out.Begin(head(tensors))
}

// list copies and checks the headers, sets their sizes, and finds those of the same name.
func list(headers []file.Header, opts Options) ([]tensor, error) {
	last := make(map[string]int, len(headers))
	tensors := make([]tensor, 0, len(headers))
	at := int64(24)
	for i, h := range headers {
		if first, ok := last[h.Name]; ok {
			if !opts.LastWins {
				return nil, duplicate(at+8, h.Name, first, i)
			}
			tensors[first].hidden = true
		}
		last[h.Name] = i
		at += 8 + int64(len(h.Name))
		h.Shape = slices.Clone(h.Shape)
		tensors = append(tensors, tensor{header: header{Header: h}})
	}
	pos, total := int64(len(head(tensors))), int64(0)
	for i := range tensors {
		t := &tensors[i]
		t.base = pos
		size, err := t.checkShape()
		length := headSize + 8*len(t.Shape)
		switch err := cmp.Or(t.checkDims(len(t.Shape)), t.checkType(), err); {
		case err != nil:
			return nil, err
		case t.Size != 0 && t.Size != size:
			return nil, t.wrong(length-8, fault.ErrInvalid, "its shape takes ", size, " bytes, its header says ", t.Size)
		case size > math.MaxInt64-pos-int64(length) || size > math.MaxInt64-total:
			return nil, t.wrong(length-8, file.ErrTooLarge, "no file is that long")
		}
		t.Size = size
		total += size
		if !t.hidden {
			pos += int64(length) + size
		}
	}
	return tensors, nil
}

// head returns the bytes before the first tensor.
func head(tensors []tensor) []byte {
	var names []byte
	count := uint64(0)
	for _, t := range tensors {
		if !t.hidden {
			count++
			names = binary.LittleEndian.AppendUint64(names, uint64(len(t.Name)))
			names = append(names, t.Name...)
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, listMagic)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, count)
	return binary.LittleEndian.AppendUint64(append(b, names...), count)
}
