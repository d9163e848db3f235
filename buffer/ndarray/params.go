// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"context"
	"io"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/gpu"
)

// Params is an ordered list of arrays with names, as a file has them. The arrays are the list's to close.
type Params []Param

// Param is an array with a name.
type Param struct {
	Name  string
	Array *Array
}

// Get returns the first array of that name, which stays the list's, or [ErrName].
func (p Params) Get(name string) (*Array, error) {
	for _, one := range p {
		if one.Name == name {
			return one.Array, nil
		}
	}
	return nil, fail("Get", ErrName, strconv.Quote(name))
}

// Close closes the arrays.
func (p Params) Close() error {
	var errs []error
	for _, one := range p {
		errs = append(errs, one.Array.Close())
	}
	return cmp.Or(errs...)
}

// LoadParams reads a parameter dictionary of TVM or CVM Runtime; see [Load].
func LoadParams(ctx context.Context, dev *gpu.Device, r io.Reader, opts LoadOptions) (Params, error) {
	reader, err := params.NewReader(r, opts.Format)
	if err != nil {
		return nil, err
	}
	return Load(ctx, dev, reader, opts)
}

// SaveParams writes a parameter dictionary; see [Save].
func SaveParams(ctx context.Context, w io.Writer, p Params, opts params.Options) error {
	return Save(ctx, p, func(headers []file.Header) (file.Writer, error) { return params.NewWriter(w, headers, opts) })
}

// Save writes the arrays' data, in C order whatever their strides, to the writer that begin makes for their headers, and
// closes it. Contiguous arrays pass in pieces; of others a copy is made first.
func Save(ctx context.Context, p Params, begin func([]file.Header) (file.Writer, error)) error {
	const op = "Save"
	if begin == nil {
		return fail(op, buffer.ErrNil, "no writer")
	}
	headers := make([]file.Header, 0, len(p))
	for _, one := range p {
		a := one.Array
		if _, err := a.container(op); err != nil {
			return err
		}
		headers = append(headers, file.Header{Name: one.Name, Type: a.t, Shape: wide(a.shape), Offset: -1, Size: int64(a.bytes())})
	}
	w, err := begin(headers)
	if err == nil && w == nil {
		err = fail(op, buffer.ErrNil, "no writer")
	}
	if err != nil {
		return err
	}
	out, piece := &stream.Counter{W: w}, make([]byte, pieceSize)
	for _, one := range p {
		if err := one.Array.save(ctx, op, out, piece); err != nil {
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
