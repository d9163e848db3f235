// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/gpu"
)

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
	pieceSize   = 1 << 20 // what is read or written at a time
	mappedPiece = 2 << 20 // what is mapped at a time
	trusted     = 8 << 20 // what memory is taken for because a header claims it
	provenSize  = 1 << 20 // what is read before memory is taken for more
)

type loader struct {
	LoadOptions
	dev    *gpu.Device
	left   int64 // of the limit
	r      file.Reader
	filler buffer.Filler
	proof  []byte // for what is read of a large tensor before memory is taken for all of it
	held   []byte // of that, what is not where it stays yet
}

// Load reads all tensors of a file, one after the other, straight to where they stay: beside them it needs some 20 MiB at
// the most. What fails closes everything that it made. A file that ends early is [file.ErrTruncated], whose data do not
// fit its shape [file.ErrFormat].
func Load(ctx context.Context, dev *gpu.Device, r file.Reader, opts LoadOptions) (*Params, error) {
	const op = "Load"
	if dev == nil || r == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil device or reader")
	}
	l := &loader{LoadOptions: opts, dev: dev, r: r, left: opts.Limit}
	if l.Limit == 0 {
		l.left = math.MaxInt64
	}
	p := new(Params)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		var a *Array
		if err == nil && p.has(h.Name) {
			err = fail(op, file.ErrDuplicate, strconv.Quote(h.Name))
		}
		if err == nil {
			a, err = l.tensor(ctx, h)
		}
		if err != nil {
			_ = p.Close()
			return nil, err
		}
		p.put(h.Name, a)
	}
}

func (l *loader) tensor(ctx context.Context, h file.Header) (*Array, error) {
	const op = "Load"
	shape := make([]int, len(h.Shape))
	for i, d := range h.Shape {
		if shape[i] = int(d); int64(shape[i]) != d {
			return nil, fail(op, buffer.ErrSize, strconv.Quote(h.Name))
		}
	}
	if h.Size > l.left {
		return nil, fail(op, file.ErrTooLarge, strconv.Quote(h.Name), " of ", strconv.FormatInt(h.Size, 10), " bytes")
	}
	a, err := Placement{}.make(op, l.dev, h.Type, shape, true, func(size int) (*buffer.Buffer, error) {
		if int64(size) != h.Size {
			return nil, fail(op, file.ErrFormat, strconv.Quote(h.Name), ": ", strconv.FormatInt(h.Size, 10), " bytes for ", text(shape), " of ", h.Type.String())
		}
		if l.OnHost {
			return l.toHost(ctx, size)
		}
		return l.toDevice(ctx, size)
	})
	l.left -= h.Size
	return a, err
}

// toDevice reads into the memory itself where the CPU can reach it, else by way of pieces.
func (l *loader) toDevice(ctx context.Context, size int) (*buffer.Buffer, error) {
	if l.byPieces || !unified(l.dev) {
		return l.filler.New(ctx, l.dev, size, func(piece []byte) error { return l.full(ctx, piece) })
	}
	if err := l.prove(ctx, size); err != nil {
		return nil, err
	}
	b, err := buffer.Map(l.dev, size)
	if err != nil {
		return nil, err
	}
	if err := l.mapped(ctx, b); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// unified reports whether the CPU reaches the device's own memory. Discrete GPUs can map memory too, but then it is not
// where they compute fast.
func unified(dev *gpu.Device) bool {
	kind := dev.Info().Kind
	return dev.Info().Features.Has(gpu.FeatureMappable) && (kind == gpu.KindIntegrated || kind == gpu.KindCPU)
}

// mapped maps so little at a time that it is in the cache, zeroed, when it is read into.
func (l *loader) mapped(ctx context.Context, b *buffer.Buffer) error {
	for done := 0; done < b.Size(); done += mappedPiece {
		err := b.Access(ctx, buffer.Range(done, min(mappedPiece, b.Size()-done)), buffer.Replaces, func(mem []byte) error { return l.full(ctx, mem) })
		if err != nil {
			return err
		}
	}
	return nil
}

// prove reads so much of a large tensor that a short stream which claims to be long takes no memory.
func (l *loader) prove(ctx context.Context, size int) error {
	if size <= trusted {
		return nil
	}
	if l.proof == nil {
		l.proof = make([]byte, provenSize)
	}
	if err := l.full(ctx, l.proof); err != nil {
		return err
	}
	l.held = l.proof
	return nil
}

// toHost reads into the memory itself.
func (l *loader) toHost(ctx context.Context, size int) (*buffer.Buffer, error) {
	if l.Limit == 0 && uint64(size) > l.dev.Info().Limits.MaxBufferSize {
		return nil, fail("Load", gpu.ErrLimit, itoa(size), " bytes")
	}
	if err := l.prove(ctx, size); err != nil {
		return nil, err
	}
	mem := make([]byte, size)
	if err := l.full(ctx, mem); err != nil {
		return nil, err
	}
	return buffer.Wrap(l.dev, gpu.HostBytes(mem), nil)
}

// full fills b from the tensor's data. Unlike io.ReadFull it does not wait for ever on a reader that has nothing to say.
func (l *loader) full(ctx context.Context, b []byte) error {
	n := copy(b, l.held)
	b, l.held = b[n:], l.held[n:]
	for empty := 0; len(b) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := l.r.Read(b[:min(len(b), 8*pieceSize)])
		if n < 0 || n > len(b) {
			return fail("Load", gpu.ErrInvalid, "the reader returns an impossible count")
		}
		b = b[n:]
		switch {
		case len(b) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fail("Load", file.ErrTruncated, itoa(len(b)), " bytes of a tensor are missing")
		case err != nil:
			return err
		case n > 0:
			empty = 0
		default:
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}
