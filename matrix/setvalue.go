// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
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
	return typed[T](fromBuffer("FromBuffer", dev, dtypeOf[T](), rows, cols, memoryOf[T](src), flags, opts))
}

// AnyFromBuffer is [FromBuffer] for an element type known at run time, of [gpu.Host] memory, a [buffer.Buffer] or the handle
// of a GPU buffer.
func AnyFromBuffer(dev *gpu.Device, t DType, rows, cols int, src any, flags buffer.Flags, opts ...Option) (*Any, error) {
	return fromBuffer("FromBuffer", dev, t, rows, cols, untyped(src), flags, opts)
}

// memory is what matrices are made from: host memory, a buffer of the library's, or else a handle.
type memory struct {
	host   gpu.Host
	isHost bool
	buf    *buffer.Buffer
	handle any
}

func memoryOf[T Elem](src any) memory {
	if s, ok := src.([]T); ok {
		return memory{host: hostOf(s), isHost: true}
	}
	return untyped(src)
}

func untyped(src any) memory {
	switch s := src.(type) {
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

func fromBuffer(op string, dev *gpu.Device, t DType, rows, cols int, src memory, flags buffer.Flags, opts []Option) (*Any, error) {
	if !src.isHost && src.handle == nil {
		return nil, fail(op, ErrNil)
	}
	switch {
	case flags == buffer.DontOwnBuffer && src.isHost:
		return WrapAny(dev, t, rows, cols, src.host, opts...)
	case flags == buffer.DontOwnBuffer && src.buf != nil:
		return shareAny(op, dev, t, rows, cols, src.buf, opts)
	case flags == buffer.SetValueOnDevice && src.buf != nil:
		return copyOf(op, opts, func(in []Option) (*Any, error) { return shareAny(op, dev, t, rows, cols, src.buf, in) })
	case flags == buffer.DontOwnBuffer:
		return WrapAnyBuffer(dev, t, rows, cols, src.handle, opts...)
	case flags == buffer.SetValueOnDevice && !src.isHost:
		return copyOf(op, opts, func(in []Option) (*Any, error) { return WrapAnyBuffer(dev, t, rows, cols, src.handle, in...) })
	case flags == 0 && src.isHost:
		return copyOf(op, opts, func(in []Option) (*Any, error) { return CopyAny(dev, t, rows, cols, src.host, in...) })
	case flags == buffer.SetValueOnDevice:
		return nil, fail(op, ErrInvalid, "SetValueOnDevice with memory of the CPU")
	case flags == 0:
		return nil, fail(op, ErrInvalid, "memory of the device without SetValueOnDevice or DontOwnBuffer")
	}
	return nil, fail(op, ErrInvalid, "flags that exclude each other")
}

// shareAny makes a matrix of a buffer that somebody else keeps. Who made the buffer has said who frees it, so the options
// cannot.
func shareAny(op string, dev *gpu.Device, t DType, rows, cols int, src *buffer.Buffer, opts []Option) (*Any, error) {
	if p := newPlacement(opts); p.release != nil || p.destroy {
		return nil, fail(op, ErrInvalid, "Release or Destroy of a buffer that has an owner")
	}
	m, err := newAny(op, dev, t, rows, cols, opts, func(size int) (*buffer.Buffer, error) {
		switch {
		case src.Device() != dev:
			return nil, fail(op, ErrForeign, "a buffer of another device")
		case src.Shares() == 0:
			return nil, fail(op, ErrClosed, "the buffer")
		case src.Size() < size:
			return nil, fail(op, ErrShort, itoa(src.Size()), " bytes, the layout needs ", itoa(size))
		}
		return src.Share(), nil
	})
	if err == nil {
		m.fixed, m.external = true, true
	}
	return boxed(m, err)
}

// copyOf makes an owned matrix with the elements of the one that get makes, in the order that the options ask for.
func copyOf(op string, opts []Option, get func(in []Option) (*Any, error)) (*Any, error) {
	in := append(slices.Clip(opts), Release(nil))
	p := newPlacement(opts)
	if p.rowMajorInput {
		in = append(in, rowMajor)
	}
	src, err := get(in)
	if err != nil {
		return nil, err
	}
	if src.buf.Mode() == buffer.Owned && !src.fixed && src.order == p.order && src.offset == 0 && src.contiguous() {
		return src, nil
	}
	m := &Any{t: src.t, dev: src.dev, layout: layout{order: p.order}}
	err = m.assign(op, src.node())
	if cerr := src.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return m, nil
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
	return m.Any().setValueFrom(rows, cols, memoryOf[T](src), flags, opts)
}

// SetValueFrom is [Dense.SetValueFrom] for what [AnyFromBuffer] takes.
func (m *Any) SetValueFrom(rows, cols int, src any, flags buffer.Flags, opts ...Option) error {
	return m.setValueFrom(rows, cols, untyped(src), flags, opts)
}

func (m *Any) setValueFrom(rows, cols int, src memory, flags buffer.Flags, opts []Option) error {
	const op = "SetValueFrom"
	if err := m.usable(op); err != nil {
		return err
	}
	if m.dev == nil {
		return fail(op, ErrInvalid, "the matrix has no device")
	}
	next, err := fromBuffer(op, m.dev, DType(m.t), rows, cols, src, flags, opts)
	if err != nil {
		return err
	}
	if flags == buffer.DontOwnBuffer {
		return m.become(next)
	}
	err = m.setValue(op, next)
	if cerr := next.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		m.external = false
	}
	return err
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
	if err := m.Any().usable(op); err != nil {
		return err
	}
	if err := src.Any().usable(op); err != nil {
		return err
	}
	return m.a.setValue(op, &src.a)
}

// SetValue is [Dense.SetValue]. src may be a part of m.
func (m *Any) SetValue(src *AnyPart) error {
	const op = "SetValue"
	if err := m.usable(op); err != nil {
		return err
	}
	if src == nil {
		return fail(op, ErrNil, "nil matrix")
	}
	if err := src.m.usable(op); err != nil {
		return err
	}
	if src.m.t != m.t {
		return fail(op, ErrInvalid, DType(src.m.t).String(), " to ", DType(m.t).String())
	}
	return m.setValue(op, src.m)
}

func (m *Any) setValue(op string, src *Any) error {
	switch {
	case src == m:
		return nil
	case m.buf == nil && src.buf == nil:
		return nil
	case m.buf == nil, m.rows == src.rows && m.cols == src.cols:
		return m.assign(op, src.node())
	}
	if err := m.unshared(op, src.shape()); err != nil {
		return err
	}
	n := src.node()
	if src.rows*src.cols > m.Capacity() {
		if m.external {
			return fail(op, ErrExternalResize, src.shape().String(), " into room for ", itoa(m.Capacity()), " elements")
		}
		return m.overDevices(op, n, m.renew)
	}
	next := *m
	next.rows, next.cols = src.rows, src.cols
	next.stride = next.minor()
	if !next.empty() {
		if err := next.assign(op, n); err != nil {
			return err
		}
	}
	m.layout = next.layout
	return nil
}
