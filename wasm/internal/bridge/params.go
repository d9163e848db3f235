// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
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

func fileOptions(flags uint32) params.Options {
	if flags >= flagsEnd {
		page.Invalid("flags")
	}
	return params.Options{Strict: flags&flagStrict != 0, LastWins: flags&flagLastWins != 0}
}

func (b *Bridge) load(a []uint32) {
	r := b.Read(a[2:])
	flags := r.Word()
	opts, scan, limit := fileOptions(flags), flags&flagScan != 0, int64(r.Int())
	if limit < 0 {
		limit = math.MaxInt64
	}
	b.begin(a[0], a[1], max(int64(r.Int()), -1), func(f *flow) any { return f.fill(scan, limit, opts) })
}

// fill reads the headers and, but for a scan, the data. It returns a description of what there is.
func (f *flow) fill(scan bool, limit int64, opts params.Options) []byte {
	r := page.Must(params.NewReader(f, opts))
	var filler buffer.Filler
	var unread error
	full := func(piece []byte) error {
		_, unread = io.ReadFull(r, piece)
		return unread
	}
	for list := []byte{}; ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		page.Check(err)
		list = describe(list, h)
		if scan {
			continue
		}
		err = file.ErrTooLarge
		var buf *buffer.Buffer
		if limit -= h.Size; limit >= 0 {
			buf, err = filler.New(f.ctx, f.b.dev, int(h.Size), full)
		}
		page.Check(unread)
		if err != nil {
			page.Check(&file.Error{Format: "params", Offset: h.Offset, Detail: itoa(int(h.Size)) + " bytes of data", Err: err})
		}
		f.arrays = append(f.arrays, buf)
	}
}

func (b *Bridge) pass(a []uint32) {
	p := &piece{ticket: a[0], object: b.Object(a[2]), size: int(a[3])}
	as[*flow](b.entry(a[1])).pass(p)
}

// take gives the arrays to handles. If that fails, those that did not get one are closed.
func (b *Bridge) take(a []uint32) {
	f := as[*flow](b.entry(a[1]))
	f.mu.Lock()
	whole := f.over && len(f.arrays) == len(a)-2
	f.mu.Unlock()
	if !whole {
		page.Invalid("handles for " + itoa(len(a)-2) + " arrays")
	}
	defer f.drop()
	for _, h := range a[2:] {
		buf := f.arrays[0]
		f.arrays = f.arrays[1:]
		b.put(h, &entry{value: buf})
	}
	b.Settle(a[0], nil, nil)
}

func (b *Bridge) arrayMatrix(a []uint32) {
	o := form(a[2])
	m := page.Must(matrix.FromBuffer[matrix.Any](b.dev, int(a[3]), int(a[4]), as[*buffer.Buffer](b.entry(a[1])), buffer.DontOwnBuffer, o))
	b.put(a[0], &entry{value: m})
}

func (b *Bridge) readArray(a []uint32) {
	object, buf := b.Object(a[2]), as[*buffer.Buffer](b.entry(a[1]))
	b.read(a[0], buf, 0, buf.Size(), object, a[3], nil)
}

// savedArray is what a save writes: a part of a buffer, of which it has a share, or memory of the page's.
type savedArray struct {
	buf    *buffer.Buffer
	at     int
	object any
}

const (
	savedWords = 3        // of each tensor of a save
	maxText    = 64 << 20 // bytes of the description: some 400,000 tensors
)

func (b *Bridge) save(a []uint32) {
	text, list := b.Object(a[3]), a[5:]
	tensors := make([]savedArray, len(list)/savedWords)
	for i := range tensors {
		if list[savedWords*i] == 0 {
			tensors[i].object = b.Object(list[savedWords*i+1]) // in any case, so that the page forgets it
		}
	}
	opts := fileOptions(a[2])
	if a[4] > maxText || len(list)%savedWords != 0 {
		page.Invalid("a save of " + itoa(len(list)) + " words")
	}
	c := make(cursor, a[4])
	c = c[:b.Load(text, 0, c)]
	headers := make([]file.Header, len(tensors))
	err := page.Guard(func() {
		for i := range tensors {
			headers[i] = c.header()
			headers[i].Size = int64(list[savedWords*i+2])
			if handle := list[savedWords*i]; handle != 0 {
				b.share(&tensors[i], handle, headers[i].Type)
			}
		}
		b.begin(a[0], a[1], 0, func(f *flow) any {
			defer forget(tensors)
			f.save(headers, tensors, opts)
			return nil
		})
	})
	if err != nil {
		forget(tensors)
		page.Check(err)
	}
}

// share takes a share of the memory of an array, or of a matrix without gaps.
func (b *Bridge) share(t *savedArray, handle uint32, typ dtype.Type) {
	e := b.current(handle)
	buf, ok := e.value.(*buffer.Buffer)
	if !ok {
		m := as[*anyDense](e)
		buf, t.at = m.Buffer(), m.Offset()*typ.Size()
	}
	t.buf = buf.Share()
}

func forget(tensors []savedArray) {
	for _, t := range tensors {
		_ = t.buf.Close()
	}
}

// pieceSize is how much passes through this program at a time.
const pieceSize = 1 << 20

func (f *flow) save(headers []file.Header, tensors []savedArray, opts params.Options) {
	w := page.Must(params.NewWriter(f, headers, opts))
	mem := make([]byte, pieceSize)
	for i, t := range tensors {
		size := int(headers[i].Size)
		for at := 0; at < size; at += pieceSize {
			part := mem[:min(size-at, pieceSize)]
			if t.buf != nil {
				region := buffer.Region{Offset: t.at + at, Width: len(part), Pitch: len(part), Count: 1}
				page.Check(t.buf.Read(f.ctx, region, gpu.HostBytes(part), 0))
			} else {
				page.Check(f.load(t.object, at, part))
			}
			page.Must(w.Write(part))
		}
	}
	page.Check(w.Close())
	if f.now != nil {
		f.used(int64(f.now.n))
	}
}

// The page and this program describe tensors to each other as bytes, one after the other, numbers little-endian:
//
//	u32 length, name
//	u8 type code, u8 bits, u16 lanes
//	u8 dimensions, i64 for each
//	to the page only: i64 offset in the file, i64 size in bytes

// describe appends the description of a tensor.
func describe(b []byte, h file.Header) []byte {
	le := binary.LittleEndian
	b = append(le.AppendUint32(b, uint32(len(h.Name))), h.Name...)
	b = le.AppendUint16(append(b, h.Type.Code, h.Type.Bits), h.Type.Lanes)
	b = append(b, byte(len(h.Shape)))
	for _, d := range h.Shape {
		b = le.AppendUint64(b, uint64(d))
	}
	return le.AppendUint64(le.AppendUint64(b, uint64(h.Offset)), uint64(h.Size))
}

// cursor reads descriptions.
type cursor []byte

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(*c)) {
		page.Invalid("a description that ends early")
	}
	b := (*c)[:n]
	*c = (*c)[n:]
	return b
}

// number reads so many bytes.
func (c *cursor) number(size uint64) (n uint64) {
	for i, b := range c.take(size) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

// header reads the description of a tensor.
func (c *cursor) header() (h file.Header) {
	h.Name = string(c.take(c.number(4)))
	h.Type = dtype.Type{Code: uint8(c.number(1)), Bits: uint8(c.number(1)), Lanes: uint16(c.number(2))}
	for range c.number(1) {
		h.Shape = append(h.Shape, int64(c.number(8)))
	}
	return h
}
