// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Block is what flows through a graph, PTask's datablock: bytes that live on whichever device has them, with a header, signals,
// a few bytes of metadata and whatever the program keeps with it. It is counted: whoever has one calls [Block.Release]
// when done with it, or gives it away with [Input.Push]. The memory then serves for other blocks.
//
// Blocks are read by any number of tasks at once and written by one that has it to itself; the graph sees to that by cloning.
type Block struct {
	t       *Template
	s       *storage // nil for one that stands for an error
	uid     uint64
	rows    int
	err     error
	refs    atomic.Int32
	signals atomic.Uint32
	open    atomic.Bool // writers share it, as [SuppressClones] has it

	mu   sync.Mutex
	meta []byte
	app  any
	made bool // app was created
}

// New makes a block with the template's initial value.
func (t *Template) New() (*Block, error) {
	if err := t.usable("New"); err != nil {
		return nil, err
	}
	return t.block(t.rows), nil
}

// NewRows makes a block of so many rows, of a stream of records.
func (t *Template) NewRows(rows int) (*Block, error) {
	const op = "NewRows"
	if err := t.usable(op); err != nil {
		return nil, err
	}
	if !fits(t.planes, rows, t.pitch, t.elem()) || rows != t.rows && !t.records {
		return nil, fail(op, ErrTemplate, itoa(rows), " rows of ", t.name)
	}
	return t.block(rows), nil
}

func (t *Template) block(rows int) *Block {
	b := &Block{t: t, rows: rows, uid: t.g.uids.Add(1), s: t.take(t.sizeOf(rows))}
	b.refs.Store(1)
	t.g.live.Add(1)
	return b
}

// failedBlock stands for an error.
func (t *Template) failedBlock(err error) *Block {
	b := &Block{t: t, rows: t.rows, uid: t.g.uids.Add(1), err: err}
	b.refs.Store(1)
	b.signals.Store(uint32(Failed))
	t.g.live.Add(1)
	return b
}

// From makes a block with a copy of the bytes, which are as many as the template says or, of a stream of records, whole rows.
func (t *Template) From(data []byte) (*Block, error) {
	if err := t.usable("From"); err != nil {
		return nil, err
	}
	rows, err := t.rowsOf(len(data))
	if err != nil {
		return nil, err
	}
	b := t.block(rows)
	if err := b.s.acquire(context.Background(), hostPlace, Write); err != nil {
		b.Release()
		return nil, err
	}
	copy(b.s.host, data)
	return b, nil
}

// Wrap makes a block of the caller's own bytes, which tasks read and write where they are. release, which may be nil, is
// called once, when the last holder releases the block.
func (t *Template) Wrap(data []byte, release func()) (*Block, error) {
	if err := t.usable("Wrap"); err != nil {
		return nil, err
	}
	rows, err := t.rowsOf(len(data))
	if err != nil {
		return nil, err
	}
	s := &storage{t: t, room: len(data), n: len(data), odd: true, host: data, release: release}
	if data == nil {
		s.host = []byte{}
	}
	s.sides = make([]side, len(t.g.devices))
	s.valid.Store(bit(hostPlace))
	b := &Block{t: t, rows: rows, uid: t.g.uids.Add(1), s: s}
	b.refs.Store(1)
	t.g.live.Add(1)
	return b, nil
}

// FromSlice makes a block with a copy of elements of the template's type.
func FromSlice[T matrix.Elem](t *Template, data []T) (*Block, error) {
	if err := t.usable("FromSlice"); err != nil {
		return nil, err
	}
	if t.raw || t.dtype != dtypeOf[T]() {
		return nil, fail("FromSlice", ErrTemplate, "elements of another type than ", t.name, "'s")
	}
	return t.From(matrix.Host(data).Bytes)
}

func dtypeOf[T matrix.Elem]() matrix.DType {
	var z T
	switch any(z).(type) {
	case int32:
		return matrix.Int32
	case uint32:
		return matrix.Uint32
	case matrix.Half:
		return matrix.Float16
	}
	return matrix.Float32
}

// Retain adds a holder: one more Release is needed. It returns b, or nil if nobody holds it any more.
func (b *Block) Retain() *Block {
	if b == nil {
		return nil
	}
	for {
		n := b.refs.Load()
		if n <= 0 {
			return nil
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return b
		}
	}
}

// Release drops a hold of the block. The last one gives the memory back. Releasing more often does nothing.
func (b *Block) Release() {
	if b == nil {
		return
	}
	for {
		n := b.refs.Load()
		if n <= 0 {
			return
		}
		if b.refs.CompareAndSwap(n, n-1) {
			if n == 1 {
				b.free()
			}
			return
		}
	}
}

func (b *Block) free() {
	b.t.g.live.Add(-1)
	if destroy := b.t.contexts.Destroy; b.made && destroy != nil {
		guard(func() { destroy(b.app) })
	}
	if b.s != nil {
		b.t.give(b.s)
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

// alone is usable for calls that change the block.
func (b *Block) alone(op string) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if b.refs.Load() > 1 && !b.open.Load() {
		return fail(op, ErrShared, "")
	}
	return nil
}

// Template returns what the block is like.
func (b *Block) Template() *Template {
	if b == nil {
		return nil
	}
	return b.t
}

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

// Refs returns how many holders there are.
func (b *Block) Refs() int {
	if b == nil {
		return 0
	}
	return int(b.refs.Load())
}

// Err returns the error that the block stands for: what a task failed with that this block was to come from. It has no
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

// SetSignals replaces the signals of a block that nobody else holds. [Failed] cannot be set.
func (b *Block) SetSignals(s Signals) error {
	const op = "SetSignals"
	if err := b.alone(op); err != nil {
		return err
	}
	if s&^allSignals != 0 || s.Has(Failed) {
		return fail(op, gpu.ErrInvalid, s.String())
	}
	b.signals.Store(uint32(s))
	return nil
}

// Meta returns a copy of the metadata: a few bytes that go with the block.
func (b *Block) Meta() []byte {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.meta)
}

// SetMeta replaces the metadata of a block that nobody else holds by a copy of the bytes.
func (b *Block) SetMeta(data []byte) error {
	if err := b.alone("SetMeta"); err != nil {
		return err
	}
	b.mu.Lock()
	b.meta = slices.Clone(data)
	b.mu.Unlock()
	return nil
}

// Context returns what the program keeps with the block; see [Contexts].
func (b *Block) Context() any {
	if b.usable("Context") != nil {
		return nil
	}
	b.mu.Lock()
	made, app := b.made, b.app
	b.mu.Unlock()
	create, destroy := b.t.contexts.Create, b.t.contexts.Destroy
	if made || create == nil {
		return app
	}
	guard(func() { app = create(b) })
	b.mu.Lock()
	spare := app
	if made = b.made; made { // somebody else was faster
		app = b.app
	} else {
		b.app, b.made = app, true
	}
	b.mu.Unlock()
	if made && destroy != nil {
		guard(func() { destroy(spare) })
	}
	return app
}

// SetContext replaces what the program keeps with the block.
func (b *Block) SetContext(v any) {
	if b.usable("SetContext") != nil {
		return
	}
	b.mu.Lock()
	b.app, b.made = v, true
	b.mu.Unlock()
}

// State tells where the block stands on a device, or with nil on the host.
func (b *Block) State(dev *gpu.Device) State {
	if b.usable("State") != nil {
		return NoEntry
	}
	place, err := b.t.g.place("State", dev)
	if err != nil {
		return NoEntry
	}
	return b.s.state(place)
}

// View gives fn the bytes to read, on the host. It waits for a device that has them. The slice is dead afterwards.
func (b *Block) View(ctx context.Context, fn func([]byte) error) error {
	return b.access(ctx, "View", Read, fn)
}

// Update gives fn the bytes to change, of a block that nobody else holds.
func (b *Block) Update(ctx context.Context, fn func([]byte) error) error {
	if err := b.alone("Update"); err != nil {
		return err
	}
	return b.access(ctx, "Update", ReadWrite, fn)
}

func (b *Block) access(ctx context.Context, op string, a Access, fn func([]byte) error) error {
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
	return fn(b.s.host[:b.s.n:b.s.n])
}

// Values returns a copy of the elements, which are of type T, with those between rows if the template has a pitch.
func Values[T matrix.Elem](ctx context.Context, b *Block) ([]T, error) {
	const op = "Values"
	if err := b.usable(op); err != nil {
		return nil, err
	}
	if b.t.raw || b.t.dtype != dtypeOf[T]() {
		return nil, fail(op, ErrTemplate, "elements of another type than ", b.t.name, "'s")
	}
	var out []T
	err := b.View(ctx, func(mem []byte) error {
		out = make([]T, len(mem)/b.t.elem())
		copy(matrix.Host(out).Bytes, mem)
		return nil
	})
	return out, err
}

// On makes the block's memory on a device ready for an access and returns it, for kernels of the caller's. It is valid until
// the block is released. To write takes a block that nobody else holds; the caller has queued what he writes before he gives
// the block on.
func (b *Block) On(ctx context.Context, dev *gpu.Device, a Access) (*buffer.Buffer, error) {
	const op = "On"
	check := b.usable
	if a != Read {
		check = b.alone
	}
	if err := check(op); err != nil {
		return nil, err
	}
	if ctx == nil || dev == nil || a > ReadWrite {
		return nil, fail(op, gpu.ErrInvalid, "no device, or unknown access")
	}
	place, err := b.t.g.place(op, dev)
	if err != nil {
		return nil, err
	}
	if err := b.s.acquire(ctx, place, a); err != nil {
		return nil, err
	}
	return b.s.on(place), nil
}

// clone makes a block with the same content.
func (b *Block) clone() (*Block, error) {
	if b.err != nil {
		c := b.t.failedBlock(b.err)
		c.signals.Store(b.signals.Load())
		return c, nil
	}
	c := b.t.block(b.rows)
	if err := c.s.copyFrom(b.s); err != nil {
		c.Release()
		return nil, err
	}
	c.signals.Store(b.signals.Load())
	c.meta = b.Meta()
	b.mu.Lock()
	made, app := b.made, b.app
	b.mu.Unlock()
	if cl := b.t.contexts.Clone; made && cl != nil {
		guard(func() { c.app, c.made = cl(app), true })
	}
	b.t.g.clones.Add(1)
	return c, nil
}
