// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Any is a matrix whose element type is known at run time: what files, commands and JavaScript work with. A [Dense] is
// one with a type of Go's; [Dense.Any] returns it. The zero value is an empty float32 matrix. Everything said of Dense
// holds for Any.
type Any struct {
	layout
	t        fuse.Type
	dev      *gpu.Device
	buf      *buffer.Buffer // nil: the zero value
	fixed    bool           // the memory is not ours to replace: assignments never resize
	external bool           // what External reports
	room     int            // of fixed memory: how many elements there are from the first on
	view     bool           // a part of another matrix
	err      error          // a view that could not be made
	closed   bool
	net      runtime.Cleanup // drops the share of a view that nobody closed
}

// NewAny is [New] for an element type known at run time.
func NewAny(dev *gpu.Device, t DType, rows, cols int, opts ...Option) (*Any, error) {
	return boxed(newAny("New", dev, t, rows, cols, ours(opts), func(size int) (*buffer.Buffer, error) {
		return buffer.New(dev, size)
	}))
}

// CopyAny makes an owned matrix with a copy of host memory, which holds the elements as the options say.
func CopyAny(dev *gpu.Device, t DType, rows, cols int, mem gpu.Host, opts ...Option) (*Any, error) {
	const op = "FromSlice"
	if err := checkNil(op, mem, rows, cols); err != nil {
		return nil, err
	}
	return boxed(newAny(op, dev, t, rows, cols, opts, func(size int) (*buffer.Buffer, error) {
		if err := checkHost(op, mem, size); err != nil {
			return nil, err
		}
		return buffer.FromHost(dev, clip(mem, size))
	}))
}

// WrapAny is [Wrap] for host memory and an element type known at run time. In a page mem.Foreign may be a typed array
// given as js.Value.
func WrapAny(dev *gpu.Device, t DType, rows, cols int, mem gpu.Host, opts ...Option) (*Any, error) {
	w := new(struct {
		m Any
		b buffer.Buffer
	})
	if err := w.m.wrap(&w.b, dev, t, rows, cols, mem, opts); err != nil {
		return nil, err
	}
	return &w.m, nil
}

// ShareAny makes a matrix of the memory of a buffer, of which it takes a share; options place it there, and [Release] and
// [Destroy] are not for it. Like a wrapped matrix it is never resized. A buffer that is too small is [ErrShort].
func ShareAny(buf *buffer.Buffer, t DType, rows, cols int, opts ...Option) (*Any, error) {
	const op = "Share"
	if buf == nil {
		return nil, fail(op, ErrClosed, "nil buffer")
	}
	m, err := shareAny(op, buf.Device(), t, rows, cols, buf, opts)
	if err == nil {
		m.external = buf.Mode() == buffer.External
	}
	return m, err
}

// wrap makes m, the zero value, an external matrix of host memory, with b for its buffer.
func (m *Any) wrap(b *buffer.Buffer, dev *gpu.Device, t DType, rows, cols int, mem gpu.Host, opts []Option) error {
	const op = "Wrap"
	if err := checkNil(op, mem, rows, cols); err != nil {
		return err
	}
	made, err := newAny(op, dev, t, rows, cols, opts, func(size int) (*buffer.Buffer, error) {
		if err := checkHost(op, mem, size); err != nil {
			return nil, err
		}
		return b, b.InitWrap(dev, clip(mem, size), nil)
	})
	if err == nil {
		*m = made
		m.fix(opts)
	}
	return err
}

// WrapAnyBuffer is [WrapBuffer] for an element type known at run time.
func WrapAnyBuffer(dev *gpu.Device, t DType, rows, cols int, handle any, opts ...Option) (*Any, error) {
	const op = "WrapBuffer"
	if handle == nil {
		return nil, fail(op, ErrNil)
	}
	m, err := newAny(op, dev, t, rows, cols, opts, func(size int) (*buffer.Buffer, error) {
		b, err := buffer.WrapDevice(dev, handle, nil)
		if err == nil && b.Size() < size {
			return nil, firstError(b.Close(), fail(op, ErrShort, itoa(b.Size()), " bytes, the layout needs ", itoa(size)))
		}
		return b, err
	})
	if err == nil {
		if newPlacement(opts).destroy {
			opts = append(slices.Clip(opts), Release(func() { _ = dev.DestroyBuffer(handle) })) // a closed device has done so
		}
		m.fix(opts)
	}
	return boxed(m, err)
}

// MapAny is [Map] for an element type known at run time.
func MapAny(dev *gpu.Device, t DType, rows, cols int, opts ...Option) (*Any, error) {
	m, err := newAny("Map", dev, t, rows, cols, ours(opts), func(size int) (*buffer.Buffer, error) {
		return buffer.Map(dev, size)
	})
	if err == nil {
		m.fix(nil)
	}
	return boxed(m, err)
}

func boxed(m Any, err error) (*Any, error) {
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// fix makes m one of memory that is never replaced. From here on its release function will be called.
func (m *Any) fix(opts []Option) {
	m.fixed, m.external = true, m.buf.Mode() == buffer.External
	if release := newPlacement(opts).release; release != nil {
		m.buf.SetRelease(release)
	}
}

// newAny applies the options and takes the memory from get, which is told the bytes that are needed.
func newAny(op string, dev *gpu.Device, t DType, rows, cols int, opts []Option, get func(int) (*buffer.Buffer, error)) (Any, error) {
	if dev == nil {
		return Any{}, fail(op, ErrInvalid, "nil device")
	}
	if t > Float16 {
		return Any{}, fail(op, ErrInvalid, "unknown element type")
	}
	p := newPlacement(opts)
	l, err := p.layout(op, rows, cols, fuse.Type(t))
	if err != nil {
		return Any{}, err
	}
	room := l.span()
	if p.padded {
		room = l.major() * l.stride
	}
	buf, err := get((l.offset + room) * t.Size())
	if err != nil {
		return Any{}, err
	}
	m := Any{layout: l, t: fuse.Type(t), dev: dev, buf: buf, room: room}
	if p.padded && !p.ours {
		if err := m.clearPads(op); err != nil {
			return Any{}, firstError(err, buf.Close())
		}
	}
	return m, nil
}

// checkNil comes before all other checks.
func checkNil(op string, mem gpu.Host, rows, cols int) error {
	if mem.Foreign == nil && mem.Bytes == nil && rows != 0 && cols != 0 {
		return fail(op, ErrNil, "for ", itoa(rows), "x", itoa(cols))
	}
	return nil
}

func checkHost(op string, mem gpu.Host, size int) error {
	if mem.Size < size {
		return fail(op, ErrShort, itoa(mem.Size), " bytes, the layout needs ", itoa(size))
	}
	return nil
}

// clip leaves out Go memory behind the last element. Memory of other sorts stays whole.
func clip(mem gpu.Host, size int) gpu.Host {
	if mem.Foreign == nil {
		mem = mem.Part(0, size)
	}
	return mem
}

// Dims returns the number of rows and columns.
func (m *Any) Dims() (rows, cols int) {
	if m == nil {
		return 0, 0
	}
	return m.rows, m.cols
}

// DType returns the element type.
func (m *Any) DType() DType {
	if m == nil {
		return Float32
	}
	return DType(m.t)
}

// Stride returns the distance in elements between two rows, or columns in column-major order.
func (m *Any) Stride() int {
	if m == nil {
		return 0
	}
	return m.stride
}

// Order returns the order of the elements in memory.
func (m *Any) Order() Order {
	if m == nil {
		return RowMajorOrder
	}
	return m.order
}

// Offset returns how many elements of the buffer lie before the first.
func (m *Any) Offset() int {
	if m == nil {
		return 0
	}
	return m.offset
}

// Device returns the matrix's device, nil for the zero value.
func (m *Any) Device() *gpu.Device {
	if m == nil {
		return nil
	}
	return m.dev
}

// Buffer returns the memory, nil for the zero value. It stays the matrix's.
func (m *Any) Buffer() *buffer.Buffer {
	if m == nil {
		return nil
	}
	return m.buf
}

// Mode tells whose memory the matrix uses.
func (m *Any) Mode() buffer.Mode {
	if b := m.Buffer(); b != nil {
		return b.Mode()
	}
	return buffer.Owned
}

// External reports whether the matrix uses somebody else's memory. [Any.SetValueFrom] may change it, the memory staying
// where it is; who frees the memory is another question, which the Release option answers.
func (m *Any) External() bool { return m != nil && m.external }

// Capacity returns how many elements the memory has for the matrix: of memory that is not ours, those of the size that it
// was wrapped with.
func (m *Any) Capacity() int {
	switch {
	case m == nil || m.buf == nil:
		return 0
	case m.view:
		return m.rows * m.cols
	case m.fixed:
		return m.room
	}
	return m.buf.Size()/m.t.Size() - m.offset
}

// Location tells where the current bits are.
func (m *Any) Location() buffer.Location {
	if b := m.Buffer(); b != nil {
		return b.Location()
	}
	return buffer.None
}

// Err returns the error a view was made with, or nil.
func (m *Any) Err() error {
	if m == nil {
		return fail("Err", ErrNil, "nil matrix")
	}
	return m.err
}

// Close drops the matrix's share of its memory; views and aliases keep theirs. Later calls do nothing.
func (m *Any) Close() error {
	if m == nil || m.closed {
		return nil
	}
	m.closed = true
	m.net.Stop()
	return m.buf.Close()
}

// usable refuses nil and closed matrices, and views that could not be made.
func (m *Any) usable(op string) error {
	switch {
	case m == nil:
		return fail(op, ErrNil, "nil matrix")
	case m.err != nil:
		return m.err
	case m.closed:
		return fail(op, ErrClosed, "the matrix")
	}
	return nil
}
