// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// core is a matrix without its element type of Go's. The zero value is an empty matrix without a device.
type core struct {
	expr.Layout
	t        fuse.Type
	typed    bool // t is known: not yet of the zero value
	fixed    bool // the memory is not ours to replace: assignments never resize
	external bool // what External reports
	view     bool // a part of another matrix
	closed   bool
	dev      *gpu.Device
	buf      *buffer.Buffer // nil: the zero value
	room     int            // of fixed memory: how many elements there are from the first on
	err      error          // a view that could not be made

	origin     *origin
	generation uint32 // of the origin, when a view was taken
	share      *share // of views and aliases; nil: the matrix has a share of its own
	cleanup    *cleanup.Cleanup
}

// origin is what a matrix and the views of it have in common.
type origin struct {
	lent       atomic.Int32  // views that stand in expressions and were not closed
	generation atomic.Uint32 // how often the matrix was resized
}

// share is the share that a view has of its memory. The garbage collector drops it when nobody closed the view.
//
// A matrix that has views cannot be resized. A view that stands in an expression is the expression's: mostly nobody has it
// any more who could close it. Such a view does not count, and is an error once the matrix was resized.
type share struct {
	buf    *buffer.Buffer // nil: the view must not outlive what it was taken from
	origin *origin
	of     *share // the view that the view was taken of
	alias  bool   // which counts until it is closed
	lent   atomic.Bool
	closed atomic.Bool
}

// lend notes that a view, and the views that it was taken of, stand in an expression.
func (s *share) lend() {
	for ; s != nil && s.origin != nil && !s.alias; s = s.of {
		if s.buf != nil && !s.closed.Load() && !s.lent.Swap(true) {
			s.origin.lent.Add(1)
		}
	}
}

func (s *share) close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.lent.Load() {
		s.origin.lent.Add(-1)
	}
	return s.buf.Close()
}

// newCore applies the options and takes the memory from get, which is told the bytes that are needed.
func newCore(op string, dev *gpu.Device, p *placement, rows, cols int, from *origin, get func(int) (*buffer.Buffer, error)) (core, error) {
	if dev == nil {
		return core{}, fail(op, gpu.ErrInvalid, "nil device")
	}
	l, err := p.layout(op, rows, cols)
	if err != nil {
		return core{}, err
	}
	room := l.Span()
	if p.padded {
		room = l.Major() * l.Stride
	}
	buf, err := get((l.Offset + room) * p.t.Size())
	if err != nil {
		return core{}, err
	}
	m := core{Layout: l, t: p.t, typed: true, dev: dev, buf: buf, room: room, origin: from}
	if p.padded && !p.ours {
		if err := m.clearPads(op); err != nil {
			return core{}, firstError(err, buf.Close())
		}
	}
	return m, nil
}

// newOwned makes a matrix of memory that make makes for it.
func newOwned(op string, dev *gpu.Device, p placement, rows, cols int, make func(size int) (*buffer.Buffer, error)) (core, error) {
	if err := p.unreleased(op); err != nil {
		return core{}, err
	}
	p.ours = true
	return newCore(op, dev, &p, rows, cols, new(origin), make)
}

// newCopy makes an owned matrix with a copy of host memory, which holds the elements as the options say.
func newCopy(op string, dev *gpu.Device, p placement, rows, cols int, mem gpu.Host) (core, error) {
	if err := checkNil(op, mem, rows, cols); err != nil {
		return core{}, err
	}
	return newCore(op, dev, &p, rows, cols, new(origin), func(size int) (*buffer.Buffer, error) {
		if err := checkHost(op, mem, size); err != nil {
			return nil, err
		}
		if err := p.unreleased(op); err != nil {
			return nil, err
		}
		return buffer.FromHost(dev, clip(mem, size))
	})
}

// wrapped is what a matrix of host memory needs beside itself, to be one object with it.
type wrapped struct {
	b      buffer.Buffer
	origin origin
}

// newWrap makes an external matrix of host memory.
func newWrap(w *wrapped, dev *gpu.Device, p *placement, rows, cols int, mem gpu.Host) (core, error) {
	const op = "Wrap"
	if err := checkNil(op, mem, rows, cols); err != nil {
		return core{}, err
	}
	m, err := newCore(op, dev, p, rows, cols, &w.origin, func(size int) (*buffer.Buffer, error) {
		if err := checkHost(op, mem, size); err != nil {
			return nil, err
		}
		return &w.b, w.b.InitWrap(dev, clip(mem, size), nil)
	})
	if err == nil {
		m.fix(p.release)
	}
	return m, err
}

// newImport makes a matrix of a GPU buffer that somebody else made.
func newImport(dev *gpu.Device, p placement, rows, cols int, handle any) (core, error) {
	const op = "WrapBuffer"
	if handle == nil {
		return core{}, fail(op, ErrNil)
	}
	m, err := newCore(op, dev, &p, rows, cols, new(origin), func(size int) (*buffer.Buffer, error) {
		b, err := buffer.WrapDevice(dev, handle, nil)
		if err == nil && b.Size() < size {
			return nil, firstError(b.Close(), fail(op, ErrShort, itoa(b.Size()), " bytes, the layout needs ", itoa(size)))
		}
		return b, err
	})
	if err != nil {
		return m, err
	}
	if p.destroy {
		_ = Release(func() { _ = dev.DestroyBuffer(handle) })(&p) // a closed device has done so
	}
	m.fix(p.release)
	return m, nil
}

// newShared makes a matrix of a buffer that somebody else keeps. Who made the buffer has said who frees it, so the options
// cannot.
func newShared(op string, dev *gpu.Device, p placement, rows, cols int, src *buffer.Buffer) (core, error) {
	if p.release != nil || p.destroy {
		return core{}, fail(op, gpu.ErrInvalid, "Release or Destroy of a buffer that has an owner")
	}
	m, err := newCore(op, dev, &p, rows, cols, new(origin), func(size int) (*buffer.Buffer, error) {
		switch {
		case src.Device() != dev:
			return nil, fail(op, gpu.ErrForeign, "a buffer of another device")
		case src.Shares() == 0:
			return nil, fail(op, gpu.ErrClosed, "the buffer")
		case src.Size() < size:
			return nil, fail(op, ErrShort, itoa(src.Size()), " bytes, the layout needs ", itoa(size))
		}
		return src.Share(), nil
	})
	m.fixed, m.external = true, true
	return m, err
}

// fix makes m one of memory that is never replaced. From here on its release function will be called.
func (m *core) fix(release func()) {
	m.fixed, m.external = true, m.buf.Mode() == buffer.External
	if release != nil {
		m.buf.SetRelease(release)
	}
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

// capacity is [Dense.Capacity].
func (m *core) capacity() int {
	switch {
	case m == nil || m.buf == nil:
		return 0
	case m.view:
		return m.Rows * m.Cols
	case m.fixed:
		return m.room
	}
	return m.buf.Size()/m.t.Size() - m.Offset
}

// close drops the matrix's share of its memory.
func (m *core) close() error {
	if m == nil || m.closed {
		return nil
	}
	m.closed = true
	m.cleanup.Stop()
	return m.drop()
}

// drop drops the share of the memory.
func (m *core) drop() error {
	if m.share != nil {
		return m.share.close()
	}
	return m.buf.Close()
}

// usable refuses nil and closed matrices, views that could not be made, and views of what was resized since.
func (m *core) usable(op string) error {
	switch {
	case m == nil:
		return fail(op, ErrNil, "nil matrix")
	case m.err != nil:
		return m.err
	case m.closed:
		return fail(op, gpu.ErrClosed, "the matrix")
	case m.view && m.origin != nil && m.origin.generation.Load() != m.generation:
		return fail(op, ErrView, "the matrix that this is a view of was resized")
	}
	return nil
}

// node is the matrix as an operand.
func (m *core) node() *node { return exec.Leaf(m.dev, m, m.dense()) }

// dense is the matrix as kernels see it.
func (m *core) dense() exec.Dense { return exec.Dense{Layout: m.Layout, Type: m.t, Buf: m.buf} }

// Current implements [exec.Source].
func (m *core) Current() (exec.Dense, error) { return m.dense(), m.usable("Assign") }
