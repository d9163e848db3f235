// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"context"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
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

// headers describes the arrays as a file has them, without offsets: what the maker of a [file.Writer] wants.
func (p *Params) headers() ([]file.Header, error) {
	headers := make([]file.Header, 0, p.Len())
	for name, a := range p.All() {
		if _, err := a.container("Save"); err != nil {
			return nil, err
		}
		h := file.Header{Name: name, Type: a.t, Shape: make([]int64, len(a.shape)), Offset: -1, Size: int64(a.bytes())}
		for i, d := range a.shape {
			h.Shape[i] = int64(d)
		}
		headers = append(headers, h)
	}
	return headers, nil
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
	headers, err := p.headers()
	if err != nil {
		return err
	}
	writer, err := params.NewWriter(w, headers, opts)
	if err != nil {
		return err
	}
	if err := Save(ctx, writer, p); err != nil {
		return err
	}
	return writer.Close()
}

// Save writes the arrays' data, in C order whatever their strides, to a writer that was made with p's [Params.Headers]. It
// does not close it. Contiguous arrays pass in pieces; of others a copy is made first.
func Save(ctx context.Context, w file.Writer, p *Params) error {
	const op = "Save"
	if w == nil {
		return fail(op, buffer.ErrNil, "nil writer")
	}
	var piece []byte
	for _, a := range p.All() {
		n := a.Size()
		if !a.IsContiguous() {
			data, err := a.packed(ctx, op, a.layout)
			if err == nil {
				err = write(w, data)
			}
			if err != nil {
				return err
			}
			continue
		}
		for done := 0; done < n; {
			size := min(pieceSize, n-done)
			piece = slices.Grow(piece[:0], size)[:size]
			r := buffer.Region{Offset: a.offset + done, Width: size, Pitch: size, Count: 1}
			err := a.read(op, func(b *buffer.Buffer) error { return b.Read(ctx, r, gpu.HostBytes(piece), 0) })
			if err == nil {
				err = write(w, piece)
			}
			if err != nil {
				return err
			}
			done += size
		}
	}
	return nil
}

// write is w.Write, with an error if that writes less and has none itself.
func write(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}
