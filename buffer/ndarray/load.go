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

// LoadOption is an option of [Load] and [LoadParams].
type LoadOption func(*loader)

// OnHost puts the arrays into Go memory, from where the device gets them when a kernel first needs them. Without it they
// are put into memory of the device.
func OnHost() LoadOption { return func(l *loader) { l.onHost = true } }

// Limit bounds the bytes of all arrays together: more is [file.ErrTooLarge], before memory is taken for it. Without it
// no array may be larger than the device's largest buffer, [ErrLimit], also on the host.
func Limit(bytes int64) LoadOption { return func(l *loader) { l.limit, l.limited = bytes, true } }

// Format passes options of package params to [LoadParams].
func Format(opts ...params.Option) LoadOption {
	return func(l *loader) { l.format = append(l.format, opts...) }
}

const (
	pieceSize = 1 << 20  // what is read or written at a time
	provenMax = 32 << 20 // what is read before memory is taken for all that a header claims
)

type loader struct {
	onHost   bool
	byPieces bool // also where the memory could be mapped
	limit    int64
	limited  bool
	format   []params.Option

	dev    *gpu.Device
	r      file.Reader
	filler buffer.Filler
}

func loadOptions(opts []LoadOption) *loader {
	l := &loader{limit: math.MaxInt64}
	for _, o := range opts {
		if o != nil {
			o(l)
		}
	}
	return l
}

// Load reads all tensors of a file, one after the other, straight to where they stay: beside them it needs some 20 MiB, on the
// host 32 MiB. What fails closes everything that it made. A file that ends early is [file.ErrTruncated], whose data do not
// fit its shape [file.ErrFormat].
func Load(ctx context.Context, dev *gpu.Device, r file.Reader, opts ...LoadOption) (*Params, error) {
	const op = "Load"
	if dev == nil || r == nil {
		return nil, fail(op, ErrInvalid, "nil device or reader")
	}
	l := loadOptions(opts)
	l.dev, l.r = dev, r
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
			return nil, fail(op, ErrSize, strconv.Quote(h.Name))
		}
	}
	if h.Size > l.limit {
		return nil, fail(op, file.ErrTooLarge, strconv.Quote(h.Name), " of ", strconv.FormatInt(h.Size, 10), " bytes")
	}
	a, err := placement{}.make(op, l.dev, h.Type, shape, true, func(size int) (*buffer.Buffer, error) {
		if int64(size) != h.Size {
			return nil, fail(op, file.ErrFormat, strconv.Quote(h.Name), ": ", strconv.FormatInt(h.Size, 10), " bytes for ", text(shape), " of ", h.Type.String())
		}
		if l.onHost {
			return l.toHost(ctx, size)
		}
		return l.toDevice(ctx, size)
	})
	l.limit -= h.Size
	return a, err
}

// toDevice reads into the memory itself where the CPU can reach it, else by way of pieces.
func (l *loader) toDevice(ctx context.Context, size int) (*buffer.Buffer, error) {
	fill, alloc := l.pieces, buffer.New
	if !l.byPieces && unified(l.dev) {
		fill, alloc = l.mapped, buffer.Map
	}
	b, err := alloc(l.dev, size)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, b); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// unified reports whether the CPU reaches the device's own memory. Discrete GPUs can map memory too, but then it is not
// where they compute fast.
func unified(dev *gpu.Device) bool {
	kind := dev.Info().Kind
	return dev.Has(gpu.FeatureMappable) && (kind == gpu.KindIntegrated || kind == gpu.KindCPU)
}

func (l *loader) mapped(ctx context.Context, b *buffer.Buffer) error {
	return b.Update(ctx, 0, b.Size(), false, func(mem []byte) error { return l.full(ctx, mem) })
}

func (l *loader) pieces(ctx context.Context, b *buffer.Buffer) error {
	return l.filler.Fill(ctx, b, func(piece []byte) error { return l.full(ctx, piece) })
}

// toHost reads into the memory itself. A short file with a large claim costs no more than what it holds and provenMax.
func (l *loader) toHost(ctx context.Context, size int) (*buffer.Buffer, error) {
	if !l.limited && uint64(size) > l.dev.Limits().MaxBufferSize {
		return nil, fail("Load", ErrLimit, itoa(size), " bytes")
	}
	mem := make([]byte, min(size, provenMax))
	if err := l.full(ctx, mem); err != nil {
		return nil, err
	}
	if n := len(mem); n < size {
		all := make([]byte, size)
		copy(all, mem)
		if err := l.full(ctx, all[n:]); err != nil {
			return nil, err
		}
		mem = all
	}
	return buffer.Wrap(l.dev, gpu.HostBytes(mem), nil)
}

// full fills b from the tensor's data. Unlike io.ReadFull it does not wait for ever on a reader that has nothing to say.
func (l *loader) full(ctx context.Context, b []byte) error {
	for empty := 0; len(b) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := l.r.Read(b[:min(len(b), 8*pieceSize)])
		if n < 0 || n > len(b) {
			return fail("Load", ErrInvalid, "the reader returns an impossible count")
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
