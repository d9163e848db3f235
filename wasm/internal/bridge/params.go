// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"io"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Parameter dictionaries. Arrays are only memory here; JavaScript knows their types and shapes, and they lie in C order without
// gaps. Package ndarray can do much more, and would double what all of this adds to the program.

// Flags of CmdLoad and CmdSave.
const (
	flagStrict = 1 << iota
	flagLastWins
	flagScan // headers only

	flagsEnd
)

func fileOptions(flags uint32) (params.Options, error) {
	if flags >= flagsEnd {
		return params.Options{}, invalid("flags")
	}
	return params.Options{Strict: flags&flagStrict != 0, LastWins: flags&flagLastWins != 0}, nil
}

// long is a number of 64 bits.
func long(w []uint32) int64 { return int64(uint64(w[1])<<32 | uint64(w[0])) }

func (b *Bridge) load(a []uint32) error {
	opts, err := fileOptions(a[2])
	if err != nil {
		return err
	}
	scan, limit := a[2]&flagScan != 0, long(a[3:])
	if limit < 0 {
		limit = math.MaxInt64
	}
	// The message is gone when the function runs.
	f := &flow{size: max(long(a[5:]), -1)}
	return b.begin(a[0], a[1], f, func() (any, error) {
		list, arrays, err := f.fill(scan, limit, opts)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.arrays = arrays; err != nil {
			f.drop()
		}
		return list, err
	})
}

// fill reads the headers and, but for a scan, the data. It returns a description of what there is.
func (f *flow) fill(scan bool, limit int64, opts params.Options) (list []byte, arrays []*buffer.Buffer, err error) {
	r, err := params.NewReader(f, opts)
	if err != nil {
		return nil, nil, err
	}
	var filler buffer.Filler
	var unread error
	full := func(piece []byte) error {
		_, unread = io.ReadFull(r, piece)
		return unread
	}
	for list = []byte{}; ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, arrays, nil
		}
		if err != nil {
			return nil, arrays, err
		}
		list = describe(list, h)
		if scan {
			continue
		}
		err = file.ErrTooLarge
		var buf *buffer.Buffer
		if limit -= h.Size; limit >= 0 {
			buf, err = filler.New(f, f.b.dev, int(h.Size), full)
		}
		switch {
		case unread != nil:
			return nil, arrays, unread
		case err != nil:
			return nil, arrays, &file.Error{Format: "params", Offset: h.Offset, Detail: itoa(int(h.Size)) + " bytes of data", Err: err}
		}
		arrays = append(arrays, buf)
	}
}

// flowOf returns the flow of a handle.
func (b *Bridge) flowOf(handle uint32) (*flow, error) {
	e, err := b.entry(handle)
	if err == nil && e.flow == nil {
		err = invalid("no file")
	}
	if err != nil {
		return nil, err
	}
	return e.flow, nil
}

func (b *Bridge) pass(a []uint32) error {
	object := b.page.Object(a[2])
	f, err := b.flowOf(a[1])
	if err != nil {
		return err
	}
	return f.pass(piece{a[0], object, int(a[3])})
}

// take gives the arrays to handles. If that fails, those that did not get one are closed.
func (b *Bridge) take(a []uint32) error {
	f, err := b.flowOf(a[1])
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over || len(f.arrays) != len(a)-2 {
		return invalid("handles for " + itoa(len(f.arrays)) + " arrays")
	}
	for _, h := range a[2:] {
		buf := f.arrays[0]
		f.arrays = f.arrays[1:]
		if err := b.put(h, entry{a: buf}); err != nil {
			f.drop()
			return err
		}
	}
	b.settle(a[0], nil, nil)
	return nil
}

// array returns the memory of an array.
func (b *Bridge) array(handle uint32) (*buffer.Buffer, error) {
	e, err := b.entry(handle)
	if err == nil && e.a == nil {
		err = invalid("no array")
	}
	if err != nil {
		return nil, err
	}
	return e.a, nil
}

func (b *Bridge) arrayMatrix(a []uint32) error {
	buf, err := b.array(a[1])
	if err != nil {
		return err
	}
	_, opts, err := form(a[2])
	if err != nil {
		return err
	}
	m, err := matrix.FromBuffer[matrix.Any](b.dev, int(a[3]), int(a[4]), buf, buffer.DontOwnBuffer, opts...)
	return b.fill(a[0], m, err)
}

func (b *Bridge) readArray(a []uint32) error {
	object := b.page.Object(a[2])
	buf, err := b.array(a[1])
	switch {
	case err != nil:
		return err
	case int64(a[3]) < int64(buf.Size()):
		return fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(a[3])), " bytes for ", itoa(buf.Size()))
	case buf.Size() == 0:
		b.settle(a[0], nil, nil)
		return nil
	}
	return b.readBuffer(a[0], buf, 0, buf.Size(), object, a[3])
}

// tensor is what a save writes: a part of a buffer, of which it has a share, or memory of the page's.
type tensor struct {
	buf    *buffer.Buffer
	at     int
	object any
}

const (
	savedWords = 3        // of each tensor of a save
	maxText    = 64 << 20 // bytes of the description: some 400,000 tensors
)

func (b *Bridge) save(a []uint32) error {
	text, list := b.page.Object(a[3]), a[5:]
	tensors := make([]tensor, len(list)/savedWords)
	for i := range tensors {
		if list[savedWords*i] == 0 {
			tensors[i].object = b.page.Object(list[savedWords*i+1]) // in any case, so that the page forgets it
		}
	}
	opts, err := fileOptions(a[2])
	if err != nil {
		return err
	}
	if a[4] > maxText || len(list)%savedWords != 0 {
		return invalid("a save of " + itoa(len(list)) + " words")
	}
	c := cursor{make([]byte, a[4])}
	c.rest = c.rest[:b.page.Load(text, 0, c.rest)]
	headers := make([]file.Header, len(tensors))
	for i := range tensors {
		if err == nil {
			headers[i], err = c.header()
			headers[i].Size = int64(list[savedWords*i+2])
		}
		if handle := list[savedWords*i]; err == nil && handle != 0 {
			err = b.memory(&tensors[i], handle, headers[i].Type)
		}
	}
	if err == nil {
		f := &flow{}
		err = b.begin(a[0], a[1], f, func() (any, error) {
			defer forget(tensors)
			return nil, f.save(headers, tensors, opts)
		})
	}
	if err != nil {
		forget(tensors)
	}
	return err
}

// memory takes a share of the memory of an array, or of a matrix without gaps.
func (b *Bridge) memory(t *tensor, handle uint32, typ dtype.Type) error {
	e, err := b.current(handle)
	if err != nil {
		return err
	}
	buf := e.a
	if buf == nil {
		m, err := e.dense()
		if err != nil {
			return err
		}
		buf, t.at = m.Buffer(), m.Offset()*typ.Size()
	}
	t.buf = buf.Share()
	return nil
}

func forget(tensors []tensor) {
	for _, t := range tensors {
		_ = t.buf.Close()
	}
}

// pieceSize is how much passes through this program at a time.
const pieceSize = 1 << 20

func (f *flow) save(headers []file.Header, tensors []tensor, opts params.Options) error {
	w, err := params.NewWriter(f, headers, opts)
	if err != nil {
		return err
	}
	var mem []byte
	for i, t := range tensors {
		size := int(headers[i].Size)
		for at := 0; at < size; at += pieceSize {
			n := min(size-at, pieceSize)
			if len(mem) < n {
				mem = make([]byte, n)
			}
			if t.buf != nil {
				err = t.buf.Read(f, buffer.Region{Offset: t.at + at, Width: n, Pitch: n, Count: 1}, gpu.HostBytes(mem), 0)
			} else {
				err = f.load(t.object, at, mem[:n])
			}
			if err == nil {
				_, err = w.Write(mem[:n])
			}
			if err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if f.have {
		f.used(int64(f.n))
	}
	return nil
}
