// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// The contract of this file is that of CNTK's matrices with external buffers, as Microsoft's "External Buffer in Matrix
// class" has it. A matrix has a flag, [Dense.External], that tells whether it uses somebody else's memory, and a release
// function that tells who frees it. They are independent: no call frees foreign memory, whatever the flag says.

// FromBuffer makes a matrix from memory: a slice of T, [gpu.Host] memory, a [buffer.Buffer] of the device, or the handle of a
// GPU buffer (*wgpu.Buffer natively, GPUBuffer in a page). The options place the matrix in it.
//
//	buffer.DontOwnBuffer     uses the memory itself; External is true
//	buffer.SetValueOnDevice  copies a buffer on its device; External is false
//	0                        copies the CPU's memory to the device; External is false
//
// A copy is contiguous, in the order of the options; [RowMajorInput] says that only the matrix is column-major.
func FromBuffer[T Elem](dev *gpu.Device, rows, cols int, src any, flags buffer.Flags, opts ...Option) (*Dense[T], error) {
	const op = "FromBuffer"
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	return typed[T](fromBuffer(op, dev, p, rows, cols, memoryOf[T](p.t, src), flags))
}

// memory is what matrices are made from: host memory, a buffer of the library's, or else a handle.
type memory struct {
	host   gpu.Host
	isHost bool
	copied bool // of numbers of type Any
	buf    *buffer.Buffer
	handle any
}

func memoryOf[T Elem](t fuse.Type, src any) memory {
	switch s := src.(type) {
	case []T:
		return memory{host: packed(t, s), isHost: true, copied: isAny[T]()}
	case gpu.Host:
		return memory{host: s, isHost: true}
	case *buffer.Buffer:
		if s == nil {
			return memory{}
		}
		return memory{buf: s, handle: s}
	}
	return memory{handle: src}
}

func fromBuffer(op string, dev *gpu.Device, p placement, rows, cols int, src memory, flags buffer.Flags) (core, error) {
	if !src.isHost && src.handle == nil {
		return core{}, fail(op, ErrNil)
	}
	switch {
	case flags == buffer.DontOwnBuffer && src.copied:
		return core{}, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case flags == buffer.DontOwnBuffer && src.isHost:
		return newWrap(new(wrapped), dev, &p, rows, cols, src.host)
	case flags == buffer.DontOwnBuffer && src.buf != nil:
		return newShared(op, dev, p, rows, cols, src.buf)
	case flags == buffer.SetValueOnDevice && src.buf != nil:
		return copyOf(op, p, func(in placement) (core, error) { return newShared(op, dev, in, rows, cols, src.buf) })
	case flags == buffer.DontOwnBuffer:
		return newImport(dev, p, rows, cols, src.handle)
	case flags == buffer.SetValueOnDevice && !src.isHost:
		return copyOf(op, p, func(in placement) (core, error) { return newImport(dev, in, rows, cols, src.handle) })
	case flags == 0 && src.isHost:
		return copyOf(op, p, func(in placement) (core, error) { return newCopy(op, dev, in, rows, cols, src.host) })
	case flags == buffer.SetValueOnDevice:
		return core{}, fail(op, gpu.ErrInvalid, "SetValueOnDevice with memory of the CPU")
	case flags == 0:
		return core{}, fail(op, gpu.ErrInvalid, "memory of the device without SetValueOnDevice or DontOwnBuffer")
	}
	return core{}, fail(op, gpu.ErrInvalid, "flags that exclude each other")
}

// copyOf makes an owned matrix with the elements of the one that get makes, in the order that the options ask for.
func copyOf(op string, p placement, get func(in placement) (core, error)) (core, error) {
	in := p
	if in.release = nil; in.rowMajorInput {
		in.order = expr.RowMajorOrder
	}
	src, err := get(in)
	if err != nil {
		return core{}, err
	}
	if err := p.unreleased(op); err != nil {
		return core{}, firstError(err, src.close())
	}
	if src.buf.Mode() == buffer.Owned && !src.fixed && src.Order == p.order && src.Offset == 0 && src.Contiguous() {
		return src, nil
	}
	m := core{t: src.t, typed: true, dev: src.dev, Layout: expr.Layout{Order: p.order}}
	err = m.assign(context.Background(), op, src.node())
	return m, firstError(err, src.close())
}

// SetValueFrom replaces the matrix's size and elements by those of memory; see [FromBuffer] for what that may be.
//
//	buffer.DontOwnBuffer     the matrix drops its memory and uses this one; External is true
//	buffer.SetValueOnDevice  copies a buffer on its device; External is false
//	0                        copies the CPU's memory; External is false
//
// A copy goes into the memory that the matrix has. If it does not fit there, an owned matrix gets new memory, and an
// external one is left as it was: [ErrExternalResize]. Memory of somebody else's stays his after a copy into it, although
// External says false from then on. A view can be set to other memory and leaves its parent then; it cannot be resized:
// [ErrView].
func (m *Dense[T]) SetValueFrom(rows, cols int, src any, flags buffer.Flags, opts ...Option) error {
	const op = "SetValueFrom"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if c.dev == nil {
		return fail(op, gpu.ErrInvalid, "the matrix has no device")
	}
	if c.typed {
		opts = with(opts, sameType(DType(c.t)))
	}
	p, err := placementOf[T](op, opts)
	if err != nil {
		return err
	}
	next, err := fromBuffer(op, c.dev, p, rows, cols, memoryOf[T](p.t, src), flags)
	if err != nil {
		return err
	}
	if flags == buffer.DontOwnBuffer {
		return c.become(next)
	}
	err = firstError(c.setValue(op, &next), next.close())
	if err == nil {
		c.external = false
	}
	return err
}

// sameType is [OfType], and refuses another type that was chosen before.
func sameType(t DType) Option {
	return func(p *placement) error {
		if p.hasType && p.t != fuse.Type(t) {
			return fail("OfType", gpu.ErrInvalid, DType(p.t).String(), " to ", t.String())
		}
		return OfType(t)(p)
	}
}

// Rebind makes the matrix one of other memory, as [SetValueFrom] does with buffer.DontOwnBuffer: Blaze's reset. If that
// fails the matrix keeps what it has and the memory is not taken over: its release function is not called.
func (m *Dense[T]) Rebind(rows, cols int, src any, opts ...Option) error {
	return m.SetValueFrom(rows, cols, src, buffer.DontOwnBuffer, opts...)
}

// SetValue copies a matrix, its size included, whatever the two layouts and devices. It goes into the memory that the
// matrix has; if it does not fit there, an owned matrix gets new memory, and an external one is left as it was:
// [ErrExternalResize]. External stays what it is. Views and matrices with views keep their size: [ErrView].
func (m *Dense[T]) SetValue(src *Dense[T]) error {
	const op = "SetValue"
	to, from := m.core(), src.core()
	if err := firstError(to.usable(op), from.usable(op)); err != nil {
		return err
	}
	if to.typed && from.typed && to.t != from.t {
		return fail(op, gpu.ErrInvalid, DType(from.t).String(), " to ", DType(to.t).String())
	}
	return to.setValue(op, from)
}

func (m *core) setValue(op string, src *core) error {
	ctx := context.Background()
	switch {
	case src == m:
		return nil
	case m.buf == nil && src.buf == nil:
		return nil
	case m.buf == nil, m.Rows == src.Rows && m.Cols == src.Cols:
		return m.assign(ctx, op, src.node())
	}
	if err := m.unshared(op, src.Shape()); err != nil {
		return err
	}
	n := src.node()
	if src.Rows*src.Cols > m.capacity() {
		if m.external {
			return fail(op, ErrExternalResize, src.Shape().String(), " into room for ", itoa(m.capacity()), " elements")
		}
		return m.overDevices(ctx, op, n, m.renew)
	}
	next := *m
	next.Rows, next.Cols = src.Rows, src.Cols
	next.Stride = next.Minor()
	if !next.Empty() {
		if err := next.assign(ctx, op, n); err != nil {
			return err
		}
	}
	m.Layout = next.Layout
	m.resized()
	return nil
}
