// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/turn"
	"github.com/sublet-gpu/sublet/matrix"
)

// Block is a unit of data that flows through a graph, PTask's datablock: bytes on the host and on devices, with signals and a value of the
// program's. Blocks are reference-counted: each owner of a reference calls [Block.Release], or passes the reference on with
// [Input.Push] or [Port.Set]. The memory of a released block is reused for other blocks.
//
// Any number of tasks may read a block at once. A task that writes one has the only reference; the graph clones blocks where necessary.
type Block struct {
	t       *Template
	s       *storage // nil for a block that stands for an error
	number  uint64   // in the graph, for traces
	rows    int
	err     error
	refs    atomic.Int32
	signals atomic.Uint32
	open    atomic.Bool // writers share it: [PortConfig.SuppressClones]
	context any
}

// New makes a block with the template's initial value.
func (t *Template) New() (*Block, error) {
	if err := t.usable("New"); err != nil {
		return nil, err
	}
	return t.block(t.rows), nil
}

func (t *Template) block(rows int) *Block {
	return t.made(rows, t.newStorage(t.sizeOf(rows))).create()
}

// create makes the context of a new block.
func (b *Block) create() *Block {
	if b.t.Create != nil {
		guard(func() { b.context = b.t.Create(b) })
	}
	return b
}

func (t *Template) made(rows int, s *storage) *Block {
	b := &Block{t: t, rows: rows, number: t.g.blocks.Add(1), s: s}
	b.refs.Store(1)
	t.g.live.Add(1)
	return b
}

// failedBlock makes a block that carries an error.
func (t *Template) failedBlock(err error, s Signals) *Block {
	b := t.made(t.rows, nil)
	b.err = err
	b.signals.Store(uint32(s | Failed))
	return b
}

// From makes a block with a copy of the bytes: as many as the template says or, for a stream of records, whole rows.
func (t *Template) From(data []byte) (*Block, error) {
	rows, err := t.rowsOf("From", len(data))
	if err != nil {
		return nil, err
	}
	b := t.block(rows)
	if _, err := b.s.acquire(context.Background(), hostPlace, buffer.Replaces); err != nil {
		b.Release()
		return nil, err
	}
	copy(b.s.host, data)
	return b, nil
}

// FromSlice makes a block with a copy of elements of the template's type.
func FromSlice[T matrix.Elem](t *Template, data []T) (*Block, error) {
	const op = "FromSlice"
	if err := has[T](t, op); err != nil {
		return nil, err
	}
	b, err := t.From(matrix.Host(data).Bytes)
	if err != nil {
		return nil, fail(op, err)
	}
	return b, nil
}

// Wrap makes a block of the caller's own bytes, which are copied to a device when it first uses them. Results are copied back when
// they are read on the host, as by [Block.View]; results that were not read before the last reference is released are lost.
// release, which may be nil, is called once, after that.
func (t *Template) Wrap(data []byte, release func()) (*Block, error) {
	rows, err := t.rowsOf("Wrap", len(data))
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = []byte{}
	}
	s := &storage{
		t: t, capacity: len(data), size: len(data), external: true, host: slices.Clip(data), release: release,
		replicas: make([]replica, len(t.g.devices)), turn: turn.New(),
	}
	s.valid.Store(bit(hostPlace))
	return t.made(rows, s).create(), nil
}

// Retain adds a reference: one more Release is needed. It returns b, or nil if the last reference has been released.
func (b *Block) Retain() *Block {
	if b != nil && b.count(1) > 0 {
		return b
	}
	return nil
}

// Release drops a reference. The last one releases the memory. Further calls do nothing.
func (b *Block) Release() {
	if b == nil || b.count(-1) != 1 {
		return
	}
	b.t.g.live.Add(-1)
	if b.context != nil && b.t.Destroy != nil {
		guard(func() { b.t.Destroy(b.context) })
	}
	if b.s != nil {
		b.t.recycle(b.s)
	}
}

// count adds to the references, unless there are none, and returns how many there were.
func (b *Block) count(n int32) int32 {
	for {
		was := b.refs.Load()
		if was <= 0 || b.refs.CompareAndSwap(was, was+n) {
			return was
		}
	}
}

// guard calls a callback and recovers its panic.
func guard(f func()) {
	defer func() { _ = recover() }()
	f()
}

func (b *Block) usable(op string) error {
	switch {
	case b == nil:
		return fail(op, gpu.ErrInvalid, "nil block")
	case b.refs.Load() <= 0:
		return fail(op, gpu.ErrClosed, "the block")
	}
	return b.err
}

// allows refuses to change a block to which there are other references.
func (b *Block) allows(op string, in buffer.Intent) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if in != buffer.Reads && b.shared() {
		return fail(op, ErrShared)
	}
	return nil
}

func (b *Block) shared() bool { return b.refs.Load() > 1 && !b.open.Load() }

// Dims returns the rows and columns of each plane.
func (b *Block) Dims() (rows, cols int) {
	if b == nil || b.t == nil {
		return 0, 0
	}
	return b.rows, b.t.cols
}

// Err returns the error that the block carries: the one of the failed task that should have made it. Such a block has no bytes, and every
// access returns the error.
func (b *Block) Err() error {
	if b == nil {
		return fail("Err", gpu.ErrInvalid, "nil block")
	}
	return b.err
}

// Signals returns the signals.
func (b *Block) Signals() Signals {
	if b == nil {
		return 0
	}
	return Signals(b.signals.Load())
}

// SetSignals replaces the signals of a block with one reference. [Failed] cannot be set.
func (b *Block) SetSignals(s Signals) error {
	const op = "SetSignals"
	if err := b.allows(op, buffer.Writes); err != nil {
		return err
	}
	if !s.settable() {
		return fail(op, gpu.ErrInvalid, s.name())
	}
	b.signals.Store(uint32(s))
	return nil
}

// Context returns the program's value of the block: the result of [Format].Create or Clone.
func (b *Block) Context() any {
	if b.usable("Context") != nil {
		return nil
	}
	return b.context
}

// State returns PTask's word for the block's copy on a device, or with nil on the host: NO_ENTRY without memory there, INVALID if
// it is out of date, SHARED if it is current as others are, EXCLUSIVE if it alone is current.
func (b *Block) State(dev *gpu.Device) string {
	if b.usable("State") == nil {
		if place, err := b.t.g.place("State", dev); err == nil {
			return b.s.state(place)
		}
	}
	return "NO_ENTRY"
}

// View calls fn with the bytes on the host, to read. It waits for a device that has newer ones. The slice is valid while fn runs.
func (b *Block) View(ctx context.Context, fn func([]byte) error) error {
	return b.access(ctx, "View", buffer.Reads, fn)
}

// Update calls fn with the bytes to change, of a block with one reference.
func (b *Block) Update(ctx context.Context, fn func([]byte) error) error {
	return b.access(ctx, "Update", buffer.Writes, fn)
}

func (b *Block) access(ctx context.Context, op string, in buffer.Intent, fn func([]byte) error) error {
	if err := b.allows(op, in); err != nil {
		return err
	}
	if ctx == nil || fn == nil {
		return fail(op, gpu.ErrInvalid, "nil argument")
	}
	b.Retain()
	defer b.Release()
	if _, err := b.s.acquire(ctx, hostPlace, in); err != nil {
		return err
	}
	return fn(b.s.bytes())
}

// Values returns a copy of the elements, which are of type T, with the gaps between rows if the template has a pitch.
func Values[T matrix.Elem](ctx context.Context, b *Block) (out []T, err error) {
	const op = "Values"
	if err := b.usable(op); err != nil {
		return nil, err
	}
	if err := has[T](b.t, op); err != nil {
		return nil, err
	}
	err = b.View(ctx, func(mem []byte) error {
		out = make([]T, len(mem)/b.t.dtype.Size())
		copy(matrix.Host(out).Bytes, mem)
		return nil
	})
	return out, err
}

// On copies the block to a device, if it is not current there, and returns its memory, which is valid until the block is released. Kernels
// may write only a block with one reference, and must be queued before the block is passed on. With an intent to replace the block the
// memory's content is undefined.
func (b *Block) On(ctx context.Context, dev *gpu.Device, in buffer.Intent) (*buffer.Buffer, error) {
	const op = "On"
	if err := b.allows(op, in); err != nil {
		return nil, err
	}
	if ctx == nil || dev == nil || in > buffer.Replaces {
		return nil, fail(op, gpu.ErrInvalid, "no context, no device, or no intent")
	}
	place, err := b.t.g.place(op, dev)
	if err != nil {
		return nil, err
	}
	return b.s.acquire(ctx, place, in)
}

// resize gives a new block another number of rows.
func (b *Block) resize(rows int) {
	b.t.recycle(b.s)
	b.rows, b.s = rows, b.t.newStorage(b.t.sizeOf(rows))
}

// clone makes a block with the same content.
func (b *Block) clone(ctx context.Context) (*Block, error) {
	if b.err != nil {
		return b.t.failedBlock(b.err, b.Signals()), nil
	}
	c := b.t.made(b.rows, b.t.newStorage(b.t.sizeOf(b.rows)))
	if err := c.s.copyFrom(ctx, b.s); err != nil {
		c.Release()
		return nil, err
	}
	c.signals.Store(b.signals.Load())
	if b.context != nil && b.t.Clone != nil {
		guard(func() { c.context = b.t.Clone(b.context) })
	}
	b.t.g.clones.Add(1)
	return c, nil
}
