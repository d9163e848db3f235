// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Block is what flows through a graph, PTask's datablock: bytes that live on whichever device has them, with signals and whatever
// the program keeps with it. Blocks are reference-counted: each owner of a reference calls [Block.Release], or gives the
// reference away with [Input.Push] or [Port.Set]. The memory then serves for other blocks.
//
// Any number of tasks read a block at once. A task that writes one has the only reference; the graph clones where it has to.
type Block struct {
	t       *Template
	s       *storage // nil for a block that stands for an error
	uid     uint64
	rows    int
	err     error
	refs    atomic.Int32
	signals atomic.Uint32
	open    atomic.Bool // writers share it: [PortConfig.SuppressClones]
	context atomic.Pointer[any]
}

// New makes a block with the template's initial value.
func (t *Template) New() (*Block, error) {
	if err := t.usable("New"); err != nil {
		return nil, err
	}
	return t.block(t.rows), nil
}

func (t *Template) block(rows int) *Block { return t.made(rows, t.newStorage(t.sizeOf(rows))) }

func (t *Template) made(rows int, s *storage) *Block {
	b := &Block{t: t, rows: rows, uid: t.g.uids.Add(1), s: s}
	b.refs.Store(1)
	t.g.live.Add(1)
	return b
}

// failedBlock makes a block that stands for an error.
func (t *Template) failedBlock(err error, s Signals) *Block {
	b := t.made(t.rows, nil)
	b.err = err
	b.signals.Store(uint32(s | Failed))
	return b
}

// From makes a block with a copy of the bytes: as many as the template says or, for a stream of records, whole rows.
func (t *Template) From(data []byte) (*Block, error) {
	if err := t.usable("From"); err != nil {
		return nil, err
	}
	rows, err := t.rowsOf(len(data))
	if err != nil {
		return nil, err
	}
	b := t.block(rows)
	if err := b.s.acquire(context.Background(), hostPlace, write); err != nil {
		b.Release()
		return nil, err
	}
	copy(b.s.host, data)
	return b, nil
}

// Wrap makes a block of the caller's own bytes, which tasks read and write where they are. release, which may be nil, is
// called once, when the last reference is released.
func (t *Template) Wrap(data []byte, release func()) (*Block, error) {
	if err := t.usable("Wrap"); err != nil {
		return nil, err
	}
	rows, err := t.rowsOf(len(data))
	if err != nil {
		return nil, err
	}
	s := &storage{t: t, capacity: len(data), size: len(data), external: true, host: slices.Clip(data), release: release}
	if data == nil {
		s.host = []byte{}
	}
	s.replicas = make([]replica, len(t.g.devices))
	s.valid.Store(bit(hostPlace))
	return t.made(rows, s), nil
}

// FromSlice makes a block with a copy of elements of the template's type.
func FromSlice[T matrix.Elem](t *Template, data []T) (*Block, error) {
	if err := has[T](t, "FromSlice"); err != nil {
		return nil, err
	}
	return t.From(matrix.Host(data).Bytes)
}

// has refuses templates whose elements are not of type T.
func has[T matrix.Elem](t *Template, op string) error {
	if err := t.usable(op); err != nil {
		return err
	}
	if t.raw || t.dtype != dtypeOf[T]() {
		return fail(op, ErrTemplate, "elements of another type than ", t.name, "'s")
	}
	return nil
}

func dtypeOf[T matrix.Elem]() matrix.DType {
	switch any(*new(T)).(type) {
	case int32:
		return matrix.Int32
	case uint32:
		return matrix.Uint32
	case matrix.Half:
		return matrix.Float16
	}
	return matrix.Float32
}

// Retain adds a reference: one more Release is needed. It returns b, or nil if there is no reference any more.
func (b *Block) Retain() *Block {
	if b != nil && b.count(1) > 0 {
		return b
	}
	return nil
}

// Release drops a reference. The last one gives the memory back. Releasing more often does nothing.
func (b *Block) Release() {
	if b == nil || b.count(-1) != 1 {
		return
	}
	b.t.g.live.Add(-1)
	b.destroy(b.context.Load())
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

// guard keeps a callback's panic from the graph.
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

// exclusive refuses blocks that somebody else has, too, for calls that change the block.
func (b *Block) exclusive(op string) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if b.shared() {
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

// Size returns the bytes.
func (b *Block) Size() int {
	if b == nil || b.t == nil {
		return 0
	}
	return b.t.sizeOf(b.rows)
}

// UID returns a number that no other block of the graph has or had.
func (b *Block) UID() uint64 {
	if b == nil {
		return 0
	}
	return b.uid
}

// Err returns the error that the block stands for: what the task failed with that this block was to come from. The block has no
// bytes then, and every access is that error.
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

// SetSignals replaces the signals of a block that nobody else has. [Failed] cannot be set.
func (b *Block) SetSignals(s Signals) error {
	const op = "SetSignals"
	if err := b.exclusive(op); err != nil {
		return err
	}
	if s&^allSignals != 0 || s.Has(Failed) {
		return fail(op, gpu.ErrInvalid, s.String())
	}
	b.signals.Store(uint32(s))
	return nil
}

// Context returns what the program keeps with the block: the argument of [Block.SetContext], or the result of [Format].Create.
func (b *Block) Context() any {
	if b.usable("Context") != nil {
		return nil
	}
	made := b.context.Load()
	if made == nil && b.t.Create != nil {
		var v any
		guard(func() { v = b.t.Create(b) })
		if b.context.CompareAndSwap(nil, &v) {
			return v
		}
		b.destroy(&v) // somebody else was faster
		made = b.context.Load()
	}
	if made == nil {
		return nil
	}
	return *made
}

// SetContext replaces what the program keeps with the block.
func (b *Block) SetContext(v any) {
	if b.usable("SetContext") == nil {
		b.context.Store(&v)
	}
}

func (b *Block) destroy(context *any) {
	if context != nil && b.t.Destroy != nil {
		guard(func() { b.t.Destroy(*context) })
	}
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

// View gives fn the bytes to read, on the host. It waits for a device that has them. The slice is valid while fn runs.
func (b *Block) View(ctx context.Context, fn func([]byte) error) error {
	return b.access(ctx, "View", read, fn)
}

// Update gives fn the bytes to change, of a block that nobody else has.
func (b *Block) Update(ctx context.Context, fn func([]byte) error) error {
	if err := b.exclusive("Update"); err != nil {
		return err
	}
	return b.access(ctx, "Update", update, fn)
}

func (b *Block) access(ctx context.Context, op string, a access, fn func([]byte) error) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if ctx == nil || fn == nil {
		return fail(op, gpu.ErrInvalid, "nil argument")
	}
	b.Retain()
	defer b.Release()
	if err := b.s.acquire(ctx, hostPlace, a); err != nil {
		return err
	}
	return fn(b.s.host[:b.s.size:b.s.size])
}

// Values returns a copy of the elements, which are of type T, with those between rows if the template has a pitch.
func Values[T matrix.Elem](ctx context.Context, b *Block) ([]T, error) {
	const op = "Values"
	if err := b.usable(op); err != nil {
		return nil, err
	}
	if err := has[T](b.t, op); err != nil {
		return nil, err
	}
	var out []T
	err := b.View(ctx, func(mem []byte) error {
		out = make([]T, len(mem)/b.t.elem())
		copy(matrix.Host(out).Bytes, mem)
		return nil
	})
	return out, err
}

// On brings the block to a device and returns its memory there, for kernels that read. It is valid until the block is released.
func (b *Block) On(ctx context.Context, dev *gpu.Device) (*buffer.Buffer, error) {
	return b.on(ctx, "On", dev, read)
}

// UpdateOn is [Block.On] for kernels that write a block that nobody else has. They are queued before the block is given on.
func (b *Block) UpdateOn(ctx context.Context, dev *gpu.Device) (*buffer.Buffer, error) {
	return b.on(ctx, "UpdateOn", dev, update)
}

// ReplaceOn is [Block.UpdateOn] for kernels that write all of the block: what they find is undefined.
func (b *Block) ReplaceOn(ctx context.Context, dev *gpu.Device) (*buffer.Buffer, error) {
	return b.on(ctx, "ReplaceOn", dev, write)
}

func (b *Block) on(ctx context.Context, op string, dev *gpu.Device, a access) (*buffer.Buffer, error) {
	check := b.usable
	if a != read {
		check = b.exclusive
	}
	if err := check(op); err != nil {
		return nil, err
	}
	if ctx == nil || dev == nil {
		return nil, fail(op, gpu.ErrInvalid, "no context or no device")
	}
	place, err := b.t.g.place(op, dev)
	if err != nil {
		return nil, err
	}
	return b.s.buffer(ctx, place, a)
}

// resize gives a new block another number of rows.
func (b *Block) resize(rows int) {
	b.t.recycle(b.s)
	b.rows, b.s = rows, b.t.newStorage(b.t.sizeOf(rows))
}

// clone makes a block with the same content.
func (b *Block) clone() (*Block, error) {
	if b.err != nil {
		return b.t.failedBlock(b.err, b.Signals()), nil
	}
	c := b.t.block(b.rows)
	if err := c.s.copyFrom(b.s); err != nil {
		c.Release()
		return nil, err
	}
	c.signals.Store(b.signals.Load())
	if made := b.context.Load(); made != nil && b.t.Clone != nil {
		guard(func() { c.SetContext(b.t.Clone(*made)) })
	}
	b.t.g.clones.Add(1)
	return c, nil
}

// cloneOrError makes a clone, or a block that says why there is none.
func (b *Block) cloneOrError() *Block {
	c, err := b.clone()
	if err != nil {
		return b.t.failedBlock(err, 0)
	}
	return c
}
