// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// memory is what a matrix is made of: new memory of zeros if nothing is set.
type memory struct {
	mapped bool // new memory that the CPU can reach

	host    gpu.Host
	isHost  bool
	copied  bool           // the host memory, to new memory
	numbers []Any          // become the host memory
	wrapper *buffer.Buffer // becomes the buffer of host memory that is not copied

	buf    *buffer.Buffer // of the library's
	handle any            // of a GPU buffer
}

// memoryOf sorts what a caller calls memory.
func memoryOf[T Elem](src any) memory {
	switch s := src.(type) {
	case []T:
		if numbers, ok := src.([]Any); ok {
			return memory{numbers: numbers, isHost: true}
		}
		return memory{host: hostOf(s), isHost: true}
	case gpu.Host:
		return memory{host: s, isHost: true}
	case *buffer.Buffer:
		return memory{buf: s}
	}
	return memory{handle: src}
}

// anew reports whether the matrix gets memory of its own.
func (mem *memory) anew() bool {
	return mem.copied || !mem.isHost && mem.buf == nil && mem.handle == nil
}

// acquire returns a buffer of at least that many bytes.
func (mem *memory) acquire(op string, dev *gpu.Device, size int) (*buffer.Buffer, error) {
	host := mem.host
	if mem.isHost && host.Foreign == nil && host.Size > size {
		host = host.Part(0, size) // memory of other sorts stays whole
	}
	b, err := mem.buf, error(nil)
	switch {
	case mem.isHost && host.Size < size:
		return nil, fail(op, buffer.ErrShort, itoa(host.Size), " bytes, the layout needs ", itoa(size))
	case mem.copied:
		b, err = buffer.FromHost(dev, host)
	case mem.wrapper != nil:
		b, err = mem.wrapper, mem.wrapper.InitWrap(dev, host, nil)
	case mem.isHost:
		b, err = buffer.Wrap(dev, host, nil)
	case b != nil && b.Device() != dev:
		return nil, fail(op, gpu.ErrForeign, "a buffer of another device")
	case b != nil && b.Shares() == 0:
		return nil, fail(op, gpu.ErrClosed, "the buffer")
	case b != nil:
		b.Share()
	case mem.handle != nil:
		b, err = buffer.WrapDevice(dev, mem.handle, nil)
	case mem.mapped:
		b, err = buffer.Map(dev, size)
	default:
		b, err = buffer.New(dev, size)
	}
	if err == nil && b.Size() < size {
		err = fail(op, buffer.ErrShort, itoa(b.Size()), " bytes, the layout needs ", itoa(size))
		return nil, firstError(err, b.Close())
	}
	return b, err
}

// newCore makes a matrix. Its release function is called from here on only, and never if there is an error.
func newCore(op string, dev *gpu.Device, o *Options, rows, cols int, mem *memory, from *origin) (core, error) {
	if mem.numbers != nil {
		mem.host = packed(o.Type, mem.numbers)
	}
	switch {
	case mem.isHost && mem.host.Foreign == nil && mem.host.Bytes == nil && rows != 0 && cols != 0:
		return core{}, fail(op, buffer.ErrNil, "for ", itoa(rows), "x", itoa(cols))
	case mem.buf != nil && (o.Release != nil || o.Destroy):
		return core{}, fail(op, gpu.ErrInvalid, "Release or Destroy of a buffer that has an owner")
	}
	anew, zeros := mem.anew(), mem.anew() && !mem.copied
	l, err := o.layout(op, rows, cols, zeros)
	if err != nil {
		return core{}, err
	}
	m := core{Layout: l, t: o.Type, typed: true, dev: dev, room: l.Span(), origin: from, fixed: !anew || mem.mapped, external: !anew}
	if o.Padded {
		m.room = l.Major() * l.Stride
	}
	if m.buf, err = mem.acquire(op, dev, (l.Offset+m.room)*m.t.Size()); err != nil {
		return core{}, err
	}
	if anew {
		err = o.unreleased(op)
	}
	if err == nil && o.Padded && !zeros {
		err = m.clearPads(op)
	}
	if err != nil {
		return core{}, firstError(err, m.buf.Close())
	}
	if release := o.Release; o.Destroy && mem.handle != nil {
		m.buf.SetRelease(destroying(dev, mem.handle, release))
	} else if release != nil {
		m.buf.SetRelease(release)
	}
	return m, nil
}

// destroying destroys a GPU buffer before it calls release.
func destroying(dev *gpu.Device, handle any, release func()) func() {
	return func() {
		_ = dev.DestroyBuffer(handle) // a closed device has done so
		if release != nil {
			release()
		}
	}
}

// clearPads sets what is between the end of each row (column) and the next to zero, in memory that is new to the library.
func (m *core) clearPads(op string) error {
	p := *m
	p.Layout = expr.Layout{Rows: m.Major(), Cols: m.Stride - m.Minor(), Offset: m.Offset + m.Minor(), Stride: m.Stride}
	if p.Empty() || m.buf.ClearHost(p.Region(m.t.Size())) {
		return nil
	}
	return p.assign(context.Background(), op, zero(p.dense()))
}

// FromBuffer makes a matrix from memory: a slice of T, [gpu.Host] memory, a [buffer.Buffer] of the device, or the handle of a
// GPU buffer (*wgpu.Buffer natively, GPUBuffer in a page). The options place the matrix in it.
//
//	buffer.DontOwnBuffer     uses the memory itself; External is true
//	buffer.SetValueOnDevice  copies a buffer on its device; External is false
//	0                        copies the CPU's memory to the device; External is false
//
// A copy is contiguous, in the order of the options; RowMajorInput says that only the matrix is column-major. Memory used
// itself is like that of [Wrap] and [WrapBuffer]. Memory that is ReadOnly makes an operand like any other; as a destination it
// is [gpu.ErrReadOnly].
func FromBuffer[T Elem](dev *gpu.Device, rows, cols int, src any, flags buffer.Flags, opts ...Options) (*Dense[T], error) {
	const op = "FromBuffer"
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	return typed[T](fromBuffer(op, dev, o, rows, cols, memoryOf[T](src), flags))
}

func fromBuffer(op string, dev *gpu.Device, o Options, rows, cols int, mem memory, flags buffer.Flags) (core, error) {
	switch {
	case !mem.isHost && mem.buf == nil && mem.handle == nil:
		return core{}, fail(op, buffer.ErrNil)
	case flags == buffer.DontOwnBuffer && mem.numbers != nil:
		return core{}, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case flags == buffer.DontOwnBuffer:
		return newCore(op, dev, &o, rows, cols, &mem, new(origin))
	case flags == buffer.SetValueOnDevice && mem.isHost:
		return core{}, fail(op, gpu.ErrInvalid, "SetValueOnDevice with memory of the CPU")
	case flags == 0 && !mem.isHost:
		return core{}, fail(op, gpu.ErrInvalid, "memory of the device without SetValueOnDevice or DontOwnBuffer")
	case flags != 0 && flags != buffer.SetValueOnDevice:
		return core{}, fail(op, gpu.ErrInvalid, "flags that exclude each other")
	}
	in := o
	turned := o.ColMajor && o.RowMajorInput
	in.ColMajor, in.RowMajorInput, in.Release = o.ColMajor && !turned, false, nil
	mem.copied = mem.isHost
	src, err := newCore(op, dev, &in, rows, cols, &mem, new(origin))
	if err != nil {
		return core{}, err
	}
	if err := o.unreleased(op); err != nil {
		return core{}, firstError(err, src.close())
	}
	if !src.fixed && !turned && src.Offset == 0 && src.Contiguous() {
		return src, nil
	}
	m := src.empty()
	if turned {
		m.Order = expr.ColMajorOrder
	}
	err = m.assign(context.Background(), op, src.node())
	return m, firstError(err, src.close())
}

// SetValueFrom replaces the matrix's size and elements by those of memory; memory and flags are those of [FromBuffer]. With
// buffer.DontOwnBuffer the matrix drops the memory that it has.
//
// A copy goes into the memory that the matrix has. If it does not fit there, an owned matrix gets new memory, and an
// external one is left as it was: [ErrExternalResize]. Memory of somebody else's stays theirs after a copy into it, although
// External says false from then on. A view can be set to other memory and leaves its parent then; it cannot be resized:
// [ErrView]. If the call fails the memory is not taken over: its release function is not called.
func (m *Dense[T]) SetValueFrom(rows, cols int, src any, flags buffer.Flags, opts ...Options) error {
	const op = "SetValueFrom"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if c.dev == nil {
		return fail(op, gpu.ErrInvalid, "the matrix has no device")
	}
	t := typeOf[T]()
	if c.typed {
		t = c.t
	}
	o, err := parse(op, t, opts)
	if err != nil {
		return err
	}
	next, err := fromBuffer(op, c.dev, o, rows, cols, memoryOf[T](src), flags)
	if err != nil {
		return err
	}
	if flags == buffer.DontOwnBuffer {
		return c.become(next)
	}
	if err = firstError(c.setValue(op, &next), next.close()); err == nil {
		c.external = false
	}
	return err
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
		return fail(op, gpu.ErrInvalid, from.t.String(), " to ", to.t.String())
	}
	return to.setValue(op, from)
}

func (m *core) setValue(op string, src *core) error {
	ctx := context.Background()
	switch {
	case src == m || m.buf == nil && src.buf == nil:
		return nil
	case m.buf == nil, m.Rows == src.Rows && m.Cols == src.Cols:
		return m.assign(ctx, op, src.node())
	}
	if err := m.unshared(op, src.Shape()); err != nil {
		return err
	}
	if src.Rows*src.Cols > m.capacity() {
		if m.external {
			return fail(op, ErrExternalResize, src.Shape().String(), " into room for ", itoa(m.capacity()), " elements")
		}
		next := m.empty()
		if err := next.assign(ctx, op, src.node()); err != nil {
			return err
		}
		m.resized()
		return m.become(next)
	}
	next := *m
	next.resize(src.Rows, src.Cols)
	if !next.Empty() {
		if err := next.assign(ctx, op, src.node()); err != nil {
			return err
		}
	}
	m.resize(src.Rows, src.Cols)
	m.resized()
	return nil
}
