// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"context"
	"io"
	"iter"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/gpu"
)

// Params is an ordered list of arrays with names, each name once. The zero value is an empty one. Methods must not be
// called from several goroutines while one of them adds or closes.
type Params struct {
	list  []named
	index map[string]int
}

type named struct {
	name  string
	array *Array
}

// Add appends a share of the array: the caller still closes his. A name that is there already is [file.ErrDuplicate].
func (p *Params) Add(name string, a *Array) error {
	const op = "Params.Add"
	if p == nil {
		return fail(op, buffer.ErrNil, "nil list")
	}
	if p.has(name) {
		return fail(op, file.ErrDuplicate, strconv.Quote(name))
	}
	s, err := a.Share()
	if err != nil {
		return err
	}
	p.put(name, s)
	return nil
}

func (p *Params) has(name string) bool {
	_, ok := p.index[name]
	return ok
}

func (p *Params) put(name string, a *Array) {
	if p.index == nil {
		p.index = map[string]int{}
	}
	p.index[name] = len(p.list)
	p.list = append(p.list, named{name, a})
}

// Get returns the array of that name, which stays the list's, or [ErrName].
func (p *Params) Get(name string) (*Array, error) {
	if p != nil {
		if i, ok := p.index[name]; ok {
			return p.list[i].array, nil
		}
	}
	return nil, fail("Params.Get", ErrName, strconv.Quote(name))
}

// Len returns how many arrays there are.
func (p *Params) Len() int {
	if p == nil {
		return 0
	}
	return len(p.list)
}

// All goes over names and arrays in order.
func (p *Params) All() iter.Seq2[string, *Array] {
	return func(yield func(string, *Array) bool) {
		if p == nil {
			return
		}
		for _, n := range p.list {
			if !yield(n.name, n.array) {
				return
			}
		}
	}
}

// Close closes the arrays and empties the list.
func (p *Params) Close() error {
	if p == nil {
		return nil
	}
	var errs []error
	for _, n := range p.list {
		errs = append(errs, n.array.Close())
	}
	p.list, p.index = nil, nil
	return cmp.Or(errs...)
}

// LoadParams reads a parameter dictionary of TVM or CVM Runtime; see [Load].
func LoadParams(ctx context.Context, dev *gpu.Device, r io.Reader, opts LoadOptions) (*Params, error) {
	reader, err := params.NewReader(r, opts.Format)
	if err != nil {
		return nil, err
	}
	return Load(ctx, dev, reader, opts)
}

// SaveParams writes a parameter dictionary; see [Save].
func SaveParams(ctx context.Context, w io.Writer, p *Params, opts params.Options) error {
	return Save(ctx, p, func(headers []file.Header) (file.Writer, error) { return params.NewWriter(w, headers, opts) })
}

// Save writes the arrays' data, in C order whatever their strides, to the writer that begin makes for their headers, and
// closes it. Contiguous arrays pass in pieces; of others a copy is made first.
func Save(ctx context.Context, p *Params, begin func([]file.Header) (file.Writer, error)) error {
	const op = "Save"
	if begin == nil {
		return fail(op, buffer.ErrNil, "no writer")
	}
	headers := make([]file.Header, 0, p.Len())
	for name, a := range p.All() {
		if _, err := a.container(op); err != nil {
			return err
		}
		headers = append(headers, file.Header{Name: name, Type: a.t, Shape: wide(a.shape), Offset: -1, Size: int64(a.bytes())})
	}
	w, err := begin(headers)
	if err == nil && w == nil {
		err = fail(op, buffer.ErrNil, "no writer")
	}
	if err != nil {
		return err
	}
	out, piece := &stream.Counter{W: w}, make([]byte, pieceSize)
	for _, a := range p.All() {
		if err := a.save(ctx, op, out, piece); err != nil {
			return err
		}
	}
	return w.Close()
}

// save writes the data by way of a piece of memory.
func (a *Array) save(ctx context.Context, op string, w io.Writer, piece []byte) error {
	if !a.contiguous() {
		data, err := a.packed(ctx, op, a.layout)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	n := a.bytes()
	for done := 0; done < n; done += len(piece) {
		piece = piece[:min(len(piece), n-done)]
		r := buffer.Region{Offset: a.offset + done, Width: len(piece), Pitch: len(piece), Count: 1}
		err := a.read(op, func(b *buffer.Buffer) error { return b.Read(ctx, r, gpu.HostBytes(piece), 0) })
		if err == nil {
			_, err = w.Write(piece)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
