// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Options says where a matrix is in its memory. Without it, or with the zero value, the matrix begins where the memory does, and its
// rows follow each other without gaps. A field that has no meaning for a constructor is [gpu.ErrInvalid], and so are several Options.
type Options struct {
	ColMajor bool // columns lie one after the other, not rows
	Offset   int  // how many elements of the memory come before the first
	Stride   int  // the distance in elements of two rows (columns), at least their length, which it is if 0
	// Aligned demands that the offset is a multiple of 16 bytes and the stride one of 4 elements: [ErrAlignment] otherwise.
	Aligned bool
	// Padded demands a stride of at least the next multiple of 4 elements, [ErrCapacity] otherwise, and memory for whole rows
	// (columns). The elements between the end of a row and the next are set to zero, and stay zero whatever is assigned to the
	// matrix. New memory has such a stride without Stride.
	Padded bool
	// RowMajorInput says that memory which [FromBuffer] copies holds the elements row by row, whatever the order of the matrix.
	RowMajorInput bool
	// Type is the element type of a matrix of type [Any]. Of another it can only be what T is.
	Type DType
	// Release is called once, when the last share of wrapped memory is closed. Memory that is the library's has none.
	Release func()
	// Destroy destroys a wrapped GPU buffer, unmapping it if need be, before Release is called. For host memory it means nothing.
	Destroy bool
}

// alignment is how many elements a vector has.
const alignment = 4

// parse returns the options of a constructor for elements of type t. If t is known it becomes their Type.
func parse(op string, t fuse.Type, opts []Options) (o Options, err error) {
	if len(opts) > 1 {
		return o, fail(op, gpu.ErrInvalid, "more than one Options")
	}
	if len(opts) == 1 {
		o = opts[0]
	}
	switch {
	case o.Type >= fuse.Types:
		return o, fail(op, gpu.ErrInvalid, "unknown element type")
	case t == expr.Untyped:
	case o.Type != fuse.F32 && o.Type != t:
		return o, fail(op, gpu.ErrInvalid, o.Type.String(), " for a matrix of ", t.String())
	default:
		o.Type = t
	}
	return o, nil
}

// unreleased refuses a release function for constructors that make or copy memory.
func (o *Options) unreleased(op string) error {
	if o.Release != nil {
		return fail(op, gpu.ErrInvalid, "Release of memory that is the library's")
	}
	return nil
}

// layout applies the options to a rows x cols matrix, in new or existing memory.
func (o *Options) layout(op string, rows, cols int, anew bool) (expr.Layout, error) {
	l := expr.Layout{Rows: rows, Cols: cols, Offset: o.Offset, ColMajor: o.ColMajor}
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return l, err
	}
	l.Stride = l.Minor()
	padded := shaders.Ceil(l.Minor(), alignment) * alignment
	switch {
	case o.Stride != 0:
		l.Stride = o.Stride
	case o.Padded && anew:
		l.Stride = padded
	}
	var wrong error
	switch n, ok := expr.Elements(max(l.Major(), 1), max(l.Stride, 1)); {
	case o.RowMajorInput && o.ColMajor: // where nothing is turned
		wrong = gpu.ErrInvalid
	case o.Offset < 0 || o.Stride < 0 || l.Stride < l.Minor() && !o.Padded:
		wrong = buffer.ErrStride
	case o.Aligned && (o.Offset*o.Type.Size()%16 != 0 || l.Stride%alignment != 0):
		wrong = ErrAlignment
	case o.Padded && l.Stride < max(padded, l.Minor()): // padded may overflow
		wrong = ErrCapacity
	case !ok || o.Offset > expr.MaxElements-n:
		wrong = gpu.ErrLimit
	default:
		return l, nil
	}
	return l, fail(op, wrong, "offset ", itoa(o.Offset), ", stride ", itoa(l.Stride), " for rows of ", itoa(l.Minor()))
}

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

// memoryOf finds out which kind of memory a caller's value is.
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

// acquire returns the buffer for a matrix of a layout.
func (mem *memory) acquire(op string, m *core) (*buffer.Buffer, error) {
	dev, host, size := m.dev, mem.host, (m.Offset+m.room)*m.t.Size()
	if mem.isHost && host.Foreign == nil && host.Size > size {
		host = host.Part(0, size) // memory of other sorts stays whole
	}
	b, err := mem.buf, error(nil)
	switch {
	case mem.isHost && host.Size < size:
		return nil, m.short(op, host.Size)
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
		return nil, firstError(m.short(op, b.Size()), b.Close())
	}
	return b, named(op, err)
}

// short returns the error for memory with too few bytes.
func (m *core) short(op string, bytes int) error {
	return fail(op, buffer.ErrShort, itoa(bytes/m.t.Size()), " elements, the layout takes ", itoa(m.Offset+m.room))
}

// newCore makes a matrix. If it fails, the release function is never called.
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
	zeros := !mem.isHost && mem.buf == nil && mem.handle == nil
	anew := zeros || mem.copied
	l, err := o.layout(op, rows, cols, zeros)
	if err == nil && anew {
		err = o.unreleased(op) // before any memory is taken
	}
	if err != nil {
		return core{}, err
	}
	m := core{Layout: l, t: o.Type, typed: 1, dev: dev, room: l.Span(), origin: from, wrapped: !anew, external: !anew}
	if o.Padded {
		m.room = l.Major() * l.Stride
	}
	if m.buf, err = mem.acquire(op, &m); err != nil {
		return core{}, err
	}
	if o.Padded && !zeros {
		if err = m.clearPads(op); err != nil {
			return core{}, firstError(err, m.buf.Close())
		}
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

// clearPads sets the gaps between rows (columns) to zero, in memory that is new to the library.
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
// A copy is contiguous, in the order of the options; with RowMajorInput only the matrix is column-major, not the memory. Memory that
// is not copied is used as by [Wrap] and [WrapBuffer]; assigning to ReadOnly memory is [gpu.ErrReadOnly].
func FromBuffer[T Elem](dev *gpu.Device, rows, cols int, src any, flags buffer.Flags, opts ...Options) (*Dense[T], error) {
	const op = "FromBuffer"
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	return typed[T](fromBuffer(op, dev, o, rows, cols, memoryOf[T](src), flags))
}

// sliceType names the type of a slice of elements, "" for other values.
func sliceType(src any) string {
	if gpu.Lean {
		return ""
	}
	switch src.(type) {
	case []float32:
		return "[]float32"
	case []int32:
		return "[]int32"
	case []uint32:
		return "[]uint32"
	case []Half:
		return "[]Half"
	case []float64:
		return "[]float64"
	}
	return ""
}

func fromBuffer(op string, dev *gpu.Device, o Options, rows, cols int, mem memory, flags buffer.Flags) (core, error) {
	switch other := sliceType(mem.handle); {
	case !mem.isHost && mem.buf == nil && mem.handle == nil:
		return core{}, fail(op, buffer.ErrNil)
	case other != "":
		return core{}, fail(op, gpu.ErrInvalid, other, " for a matrix of ", o.Type.String())
	case flags == buffer.DontOwnBuffer && mem.numbers != nil:
		return core{}, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case flags == buffer.DontOwnBuffer:
		return newCore(op, dev, &o, rows, cols, &mem, new(origin))
	case flags != 0 && flags != buffer.SetValueOnDevice, mem.isHost == (flags == buffer.SetValueOnDevice):
		return core{}, fail(op, gpu.ErrInvalid, "copies of host memory have no flags, those of a device's SetValueOnDevice")
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
	if !src.wrapped && !turned && src.Offset == 0 && src.Contiguous() {
		return src, nil
	}
	m := src.empty()
	m.ColMajor = o.ColMajor
	err = m.assign(context.Background(), op, src.node())
	return m, firstError(err, src.close())
}

// SetValueFrom sets the matrix's size and elements from memory; src and flags are those of [FromBuffer]. With buffer.DontOwnBuffer
// the matrix drops its memory and uses src itself.
//
// A copy goes into the memory that the matrix has. If it does not fit, an owned matrix gets new memory, and a wrapped one stays as it
// was: [ErrExternalResize]. Memory that the matrix wraps stays the caller's and is not replaced by larger memory, although External is
// false after a copy. A view can be set to other memory, after which it is no view of its parent any more; it cannot be resized:
// [ErrView]. Views of a matrix that is set to other memory keep the former memory. If the call fails, src's release function is not
// called.
func (m *Dense[T]) SetValueFrom(rows, cols int, src any, flags buffer.Flags, opts ...Options) error {
	const op = "SetValueFrom"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return err
	case c.dev == nil:
		return fail(op, gpu.ErrInvalid, "the matrix has no device")
	}
	t := typeOf[T]()
	if c.typed != 0 {
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

// SetValue copies the size and elements of a matrix, whatever the two layouts and devices. The copy goes into the memory that the
// matrix has; if it does not fit, an owned matrix gets new memory, and an external one stays as it was: [ErrExternalResize]. External
// does not change. Another size is [ErrView] for views and for matrices with views. If a wrapped matrix becomes smaller, the elements
// behind the new ones do not change. src does not change, and may overlap the matrix.
func (m *Dense[T]) SetValue(src *Dense[T]) error {
	const op = "SetValue"
	to, from := m.core(), src.core()
	if err := firstError(to.usable(op), from.usable(op)); err != nil {
		return err
	}
	if to.typed != 0 && from.typed != 0 && to.t != from.t {
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
	return m.resize(op, src.Rows, src.Cols, func(c *core) error {
		if c.Empty() {
			return nil
		}
		return c.assign(ctx, op, src.node())
	})
}

// arrayTypes are the names of the element types among arrays.
var arrayTypes = [...]dtype.Type{
	fuse.F32: dtype.Float32, fuse.I32: dtype.Int32, fuse.U32: dtype.Uint32, fuse.F16: dtype.Float16,
	fuse.I8: dtype.Int8, fuse.U8: dtype.Uint8, fuse.I16: dtype.Int16, fuse.U16: dtype.Uint16, fuse.Bool: dtype.Bool8,
	fuse.C64: dtype.Complex64,
}

// FromArray makes a matrix that shares the memory of an array of two dimensions, or of one, which becomes a row. The memory is released
// when both are closed. The array's type must be T's ([gpu.ErrInvalid]) and its strides those of a matrix stored by rows or by
// columns ([buffer.ErrStride]). Like a wrapped matrix it is never resized.
func FromArray[T Elem](a *ndarray.Array) (*Dense[T], error) {
	const op = "FromArray"
	if a == nil {
		return nil, fail(op, buffer.ErrNil, "nil array")
	}
	t := fuse.Type(slices.Index(arrayTypes[:], a.DType()))
	if t >= fuse.Types || !isAny[T]() && t != typeOf[T]() {
		return nil, fail(op, gpu.ErrInvalid, a.DType().String(), " as a matrix of ", typeOf[T]().String())
	}
	o, shape, err := arrayOptions(op, a, t)
	if err != nil {
		return nil, err
	}
	buf, err := a.Buffer()
	if err != nil {
		return nil, named(op, err)
	}
	m, err := newCore(op, a.Device(), &o, shape[0], shape[1], &memory{buf: buf}, new(origin))
	m.external = buf.Mode() == buffer.External
	return typed[T](m, firstError(err, buf.Close()))
}

// arrayOptions finds the options with the array's strides.
func arrayOptions(op string, a *ndarray.Array, t fuse.Type) (o Options, shape []int, err error) {
	shape, strides := a.Shape(), a.Strides()
	if len(shape) == 1 {
		shape, strides = []int{1, shape[0]}, []int{0, strides[0]}
	}
	switch {
	case len(shape) != 2:
		return o, nil, fail(op, buffer.ErrShape, itoa(len(shape)), " dimensions; a matrix has two, a row one")
	case a.Offset()%t.Size() != 0:
		return o, nil, fail(op, ErrAlignment, "byte offset ", itoa(a.Offset()))
	}
	rows, cols, down, along := shape[0], shape[1], strides[0], strides[1]
	o = Options{Type: t, Offset: a.Offset() / t.Size()}
	switch {
	case rows == 0 || cols == 0 || rows == 1 && (cols == 1 || along == 1):
	case rows > 1 && (along == 1 || cols == 1) && down >= cols:
		o.Stride = down
	case cols > 1 && (down == 1 || rows == 1) && along >= rows:
		o.ColMajor, o.Stride = true, along
	default:
		return o, nil, fail(op, buffer.ErrStride, "strides ", itoa(down), " and ", itoa(along))
	}
	return o, shape, nil
}

// Array returns an array of two dimensions that shares the matrix's memory, which is released when both are closed.
func (m *Dense[T]) Array() (*ndarray.Array, error) {
	const op = "Array"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return nil, err
	case c.buf == nil:
		return nil, fail(op, buffer.ErrNil, "a matrix without memory")
	}
	down, along := c.Steps()
	a, err := ndarray.New(c.buf, arrayTypes[c.t], []int{c.Rows, c.Cols}, []int{down, along}, c.Offset*c.t.Size())
	return a, named(op, err)
}
