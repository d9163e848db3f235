// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
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
		r := buffer.Range(a.offset+done, len(piece))
		err := a.read(ctx, op, func(b *buffer.Buffer) error { return b.Read(ctx, r, gpu.HostBytes(piece), 0) })
		if err == nil {
			_, err = w.Write(piece)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LoadOptions are choices of [Load] and [LoadParams].
type LoadOptions struct {
	// OnHost puts the arrays into Go memory, from where the device gets them when a kernel first needs them. Without it they
	// are put into memory of the device.
	OnHost bool
	// Limit, if it is not 0, bounds the bytes of all arrays together: more is [file.ErrTooLarge], before memory is taken for
	// it. Without it no array may be larger than the device's largest buffer, [gpu.ErrLimit], also on the host.
	Limit int64
	// Format is for [LoadParams].
	Format params.Options

	byPieces bool // for tests: load as to memory that cannot be mapped
}

const (
	pieceSize   = 1 << 20 // what is written at a time, and read before memory is taken for more than is trusted
	mappedPiece = 2 << 20 // what is mapped at a time, so little that it is in the cache, zeroed, when it is read into
	trusted     = 8 << 20 // what memory is taken for because a header claims it
)

type loader struct {
	LoadOptions
	dev    *gpu.Device
	left   int64 // of the limit
	src    stream.Source
	filler buffer.Filler
	held   []byte // what was read of a large tensor before memory was taken for all of it
}

// Load reads all tensors of a file, one after the other, straight to where they stay: beside them it needs some 20 MiB at
// the most. What fails closes everything that it made. A file that ends early is [file.ErrTruncated], whose data do not
// fit its shape [file.ErrFormat].
func Load(ctx context.Context, dev *gpu.Device, r file.Reader, opts LoadOptions) (Params, error) {
	const op = "Load"
	if ctx == nil || dev == nil || r == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil context, device or reader")
	}
	l := &loader{LoadOptions: opts, dev: dev, left: opts.Limit}
	if l.Limit == 0 {
		l.left = math.MaxInt64
	}
	l.src = stream.NewSource(r, -1, func(_ int64, err error, detail ...any) error { return fail(op, err, detail...) })
	p, seen := Params{}, map[string]bool{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		var a *Array
		if err == nil && seen[h.Name] {
			err = fail(op, file.ErrDuplicate, strconv.Quote(h.Name))
		}
		if err == nil {
			a, err = l.tensor(ctx, h)
		}
		if err != nil {
			_ = p.Close()
			return nil, err
		}
		seen[h.Name] = true
		p = append(p, Param{h.Name, a})
	}
}

func (l *loader) tensor(ctx context.Context, h file.Header) (*Array, error) {
	const op = "Load"
	name := strconv.Quote(h.Name)
	shape := make([]int, len(h.Shape))
	for i, d := range h.Shape {
		if shape[i] = int(d); int64(shape[i]) != d {
			return nil, fail(op, buffer.ErrSize, name)
		}
	}
	if h.Size > l.left {
		return nil, fail(op, file.ErrTooLarge, name, " of ", h.Size, " bytes")
	}
	l.left -= h.Size
	return Placement{}.make(op, l.dev, h.Type, shape, true, func(size int) (*buffer.Buffer, error) {
		if int64(size) != h.Size {
			return nil, fail(op, file.ErrFormat, name, ": ", h.Size, " bytes for ", text(shape), " of ", h.Type.String())
		}
		if l.OnHost && l.Limit == 0 && uint64(size) > l.dev.Info().Limits.MaxBufferSize {
			return nil, fail(op, gpu.ErrLimit, size, " bytes")
		}
		return l.memory(ctx, size)
	})
}

// memory reads into the memory itself where the CPU can reach it, else by way of pieces. A short stream that claims to be
// long takes none.
func (l *loader) memory(ctx context.Context, size int) (b *buffer.Buffer, err error) {
	if !l.OnHost && (l.byPieces || !unified(l.dev)) {
		return l.filler.New(ctx, l.dev, size, func(piece []byte) error { return l.full(ctx, piece) })
	}
	if size > trusted {
		proof := make([]byte, pieceSize)
		if err := l.full(ctx, proof); err != nil {
			return nil, err
		}
		l.held = proof
	}
	if l.OnHost {
		b, err = buffer.Wrap(l.dev, gpu.HostBytes(make([]byte, size)), nil)
	} else {
		b, err = buffer.Map(l.dev, size)
	}
	for done := 0; done < size && err == nil; done += mappedPiece {
		err = b.Access(ctx, buffer.Range(done, min(mappedPiece, size-done)), buffer.Replaces, func(mem []byte) error { return l.full(ctx, mem) })
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// unified reports whether the CPU reaches the device's own memory. Discrete GPUs can map memory too, but then it is not
// where they compute fast.
func unified(dev *gpu.Device) bool {
	info := dev.Info()
	return info.Features.Has(driver.FeatureMappable) && (info.Kind == driver.KindIntegrated || info.Kind == driver.KindCPU)
}

// full fills b from the tensor's data.
func (l *loader) full(ctx context.Context, b []byte) error {
	n := copy(b, l.held)
	l.held = l.held[n:]
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.src.Full(b[n:])
}
