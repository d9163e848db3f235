// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Objects remembers what a device holds and checks every request against it, so that all drivers refuse the same
// mistakes with the same errors and none reaches the platform. A driver embeds it and calls it under its own lock; what is about
// the device as a whole needs none: Info, Usable, Close, and what has Lost in its name.
type Objects struct {
	info    AdapterInfo
	buffers table     // of *bufferState
	kernels table     // of Layout
	sets    table     // of *setState
	undo    []undoSet // what the list at hand has replaced
	closed  atomic.Bool
	losing  atomic.Bool // SetLost was called
	lost    chan struct{}
	reason  string // of the loss; not written after lost is closed
}

type bufferState struct {
	size     uint64
	mappable bool
	mapped   bool
}

type setState struct {
	layout  Layout
	entries []Binding
	buffers []*bufferState // those of the entries, which others of their ids may have followed
}

type undoSet struct {
	id  uint32
	old any
}

// maxID keeps a wrong id from growing the tables, which are indexed by id, beyond some tens of megabytes.
const maxID = 1 << 20

// table has what an id stands for, nil for nothing. One type for all is a kilobyte less in pages than a generic one.
type table []any

func (t table) at(id uint32) any {
	if uint64(id) < uint64(len(t)) { // as an int, an id of 1<<31 and more would be negative on 32-bit machines
		return t[id]
	}
	return nil
}

func (t *table) put(id uint32, v any) {
	if n := len(*t); int(id) >= n {
		*t = append(*t, make(table, max(16, n, int(id)-n+1))...)
	}
	(*t)[id] = v
}

// remove forgets what there is, and reports whether there was anything.
func (t table) remove(id uint32) bool {
	if t.at(id) == nil {
		return false
	}
	t[id] = nil
	return true
}

// free wants an id that names nothing and may name something.
func (t table) free(op string, id uint32) error {
	if id == 0 || id >= maxID || t.at(id) != nil {
		return fail(op, fault.ErrInvalid, "id ", id, " is not free")
	}
	return nil
}

// NewObjects makes the Objects of a device.
func NewObjects(info AdapterInfo) Objects { return Objects{info: info, lost: make(chan struct{})} }

// orClosed is o, or in place of nil what a closed device has.
func (o *Objects) orClosed() *Objects {
	if o == nil {
		o = &Objects{}
		o.closed.Store(true)
	}
	return o
}

// Info describes the device.
func (o *Objects) Info() AdapterInfo { return o.orClosed().info }

// Lost returns a channel that the first call of [Objects.SetLost] closes.
func (o *Objects) Lost() <-chan struct{} { return o.orClosed().lost }

// LostReason returns the reason of the loss, or "".
func (o *Objects) LostReason() string {
	o = o.orClosed()
	select {
	case <-o.lost:
		return o.reason
	default:
		return ""
	}
}

// SetLost makes every later request fail with fault.ErrDeviceLost and the reason, which is not "". Later calls do nothing.
func (o *Objects) SetLost(reason string) {
	o = o.orClosed()
	if o.losing.Swap(true) {
		return
	}
	if o.lost == nil { // nobody made it with NewObjects
		o.lost = make(chan struct{})
	}
	o.reason = reason
	close(o.lost)
}

// Close makes every later request fail with fault.ErrClosed. It reports whether this was the first call.
func (o *Objects) Close() bool { return !o.orClosed().closed.Swap(true) }

// Usable reports why nothing can be done any more: closed or lost.
func (o *Objects) Usable(op string) error {
	o = o.orClosed()
	switch {
	case o.closed.Load():
		return fail(op, fault.ErrClosed)
	case o.LostReason() != "":
		return fail(op, fault.ErrDeviceLost, o.reason)
	}
	return nil
}

// AddBuffer checks and notes a new buffer. imported ones may be larger than those that a driver makes, but are words like all: some
// platforms neither bind nor copy what is beyond the last whole one.
func (o *Objects) AddBuffer(id BufferID, size uint64, mappable, imported bool) error {
	o = o.orClosed()
	const op = "driver: NewBuffer"
	if err := cmp.Or(o.Usable(op), o.buffers.free(op, uint32(id))); err != nil {
		return err
	}
	switch {
	case size == 0 || size%4 != 0:
		return fail(op, fault.ErrInvalid, "a buffer's size of ", size, " is not a positive multiple of 4")
	case size > o.info.Limits.MaxBufferSize && !imported:
		return fail(op, fault.ErrLimit, size, " bytes, the largest buffer has ", o.info.Limits.MaxBufferSize)
	case mappable && !o.info.Features.Has(FeatureMappable):
		return fail(op, fault.ErrUnsupported, "mappable storage")
	}
	o.buffers.put(uint32(id), &bufferState{size: size, mappable: mappable})
	return nil
}

// DropBuffer forgets a buffer. It reports whether there was one.
func (o *Objects) DropBuffer(id BufferID) bool { return o.orClosed().buffers.remove(uint32(id)) }

// BufferSize returns the size of a live buffer, or 0.
func (o *Objects) BufferSize(id BufferID) uint64 {
	o = o.orClosed()
	if b, ok := o.buffers.at(uint32(id)).(*bufferState); ok {
		return b.size
	}
	return 0
}

// AddKernel checks and notes a kernel.
func (o *Objects) AddKernel(id KernelID, k *Kernel) error {
	o = o.orClosed()
	const op = "driver: NewKernel"
	if err := cmp.Or(o.Usable(op), o.kernels.free(op, uint32(id))); err != nil {
		return err
	}
	switch {
	case k == nil:
		return fail(op, fault.ErrInvalid, "nil kernel")
	case k.Source == "" || k.Entry == "":
		return fail(op, fault.ErrInvalid, "a kernel needs a source and an entry point")
	case k.Layout.params() > 1:
		return fail(op, fault.ErrInvalid, "more than one parameter block")
	case k.Layout.Storage() > int(o.info.Limits.MaxStorageBuffers):
		return fail(op, fault.ErrLimit, k.Layout.Storage(), " storage bindings, the device has ", o.info.Limits.MaxStorageBuffers)
	}
	o.kernels.put(uint32(id), k.Layout)
	return nil
}

// DropKernel forgets a kernel. It reports whether there was one.
func (o *Objects) DropKernel(id KernelID) bool { return o.orClosed().kernels.remove(uint32(id)) }

// Map checks a mapping and notes it.
func (o *Objects) Map(id BufferID, offset, size uint64) error {
	o = o.orClosed()
	const op = "driver: Map"
	b, err := o.buffer(op, uint32(id))
	if err := cmp.Or(o.Usable(op), err); err != nil {
		return err
	}
	switch {
	case !b.mappable:
		return fail(op, fault.ErrUnsupported, "the buffer is not mappable")
	case size == 0 || size%4 != 0 || offset%8 != 0 || offset > b.size || size > b.size-offset:
		return fail(op, fault.ErrInvalid, size, " bytes at ", offset, " of ", b.size)
	}
	b.mapped = true
	return nil
}

// Unmap checks and notes the end of a mapping.
func (o *Objects) Unmap(id BufferID) error {
	o = o.orClosed()
	const op = "driver: Unmap"
	if err := o.Usable(op); err != nil {
		return err
	}
	b, ok := o.buffers.at(uint32(id)).(*bufferState)
	if !ok || !b.mapped {
		return fail(op, fault.ErrInvalid, "the buffer is not mapped")
	}
	b.mapped = false
	return nil
}

// buffer finds a buffer that the device may use.
func (o *Objects) buffer(op string, id uint32) (*bufferState, error) {
	b, ok := o.buffers.at(id).(*bufferState)
	switch {
	case !ok:
		return nil, fail(op, fault.ErrClosed, "buffer ", id)
	case b.mapped:
		return nil, fail(op, fault.ErrMapped, "buffer ", id)
	}
	return b, nil
}

// CheckRead checks a transfer to the host.
func (o *Objects) CheckRead(t Transfer) error {
	o = o.orClosed()
	const op = "driver: Read"
	b, err := o.buffer(op, uint32(t.Buffer))
	if err := cmp.Or(o.Usable(op), err); err != nil {
		return err
	}
	n := uint64(t.Span())
	switch {
	case t.Count < 0 || t.Width < 0 || t.HostOffset < 0 || t.Count > 1 && t.Pitch < t.Width:
		return fail(op, fault.ErrInvalid, "negative or overlapping rows")
	case t.Count > 1 && t.Pitch > math.MaxInt/t.Count:
		return fail(op, fault.ErrInvalid, "overflow")
	case t.Offset > b.size || n > b.size-t.Offset:
		return fail(op, fault.ErrInvalid, n, " bytes at ", t.Offset, " of a buffer of ", b.size)
	case !t.Host.Valid() || t.HostOffset > t.Host.Size || n > uint64(t.Host.Size-t.HostOffset):
		return fail(op, fault.ErrInvalid, n, " bytes to host memory of ", t.Host.Size-t.HostOffset)
	case t.Host.ReadOnly:
		return fail(op, fault.ErrReadOnly, "the destination")
	}
	return nil
}

// Check checks a whole list and, if it is right, notes the binding sets that it defines and forgets.
func (o *Objects) Check(l *CommandList) error {
	o = o.orClosed()
	const op = "driver: Submit"
	if err := o.Usable(op); err != nil {
		return err
	}
	switch {
	case l == nil:
		return fail(op, fault.ErrInvalid, "nil command list")
	case len(l.Params)%4 != 0: // platforms write whole words
		return fail(op, fault.ErrInvalid, len(l.Params), " bytes of parameters are no multiple of 4")
	}
	var err error
	for c := range l.All() {
		if err = o.check(l, c); err != nil {
			for _, u := range slices.Backward(o.undo) {
				o.sets[u.id] = u.old
			}
			break
		}
	}
	clear(o.undo)
	o.undo = o.undo[:0]
	return err
}

func (o *Objects) check(l *CommandList, c Command) error {
	switch w := c.Words; c.Op {
	case OpWrite:
		return o.checkWrite(l, c)
	case OpCopy:
		if w[0] == w[3] {
			return fail("driver: Copy", fault.ErrInvalid, "within one buffer")
		}
		return cmp.Or(o.checkRange("driver: Copy", w[0], c.U64(1), c.U64(6)), o.checkRange("driver: Copy", w[3], c.U64(4), c.U64(6)))
	case OpClear:
		return o.checkRange("driver: Clear", w[0], c.U64(1), c.U64(3))
	case OpBind:
		return o.checkBind(c)
	case OpUnbind:
		if o.sets.at(w[0]) == nil {
			return fail("driver: Unbind", fault.ErrInvalid, "no such binding set")
		}
		o.replace(w[0], nil)
		return nil
	case OpDispatch:
		return o.checkDispatch(l, w)
	case OpTimestamp:
		return o.checkTimestamp(w[0], c.U64(1))
	}
	return fail("driver: Submit", fault.ErrInvalid, "malformed command list")
}

func (o *Objects) checkTimestamp(buffer uint32, offset uint64) error {
	const op = "driver: Timestamp"
	switch {
	case !o.Info().Features.Has(FeatureTimestamps):
		return fail(op, fault.ErrUnsupported, "no timestamps")
	case offset%8 != 0:
		return fail(op, fault.ErrInvalid, "offset ", offset, " is not a multiple of 8")
	}
	return o.checkRange(op, buffer, offset, 8)
}

func (o *Objects) replace(id uint32, s any) {
	o.undo = append(o.undo, undoSet{id, o.sets.at(id)})
	o.sets.put(id, s)
}

func (o *Objects) checkWrite(l *CommandList, c Command) error {
	const op = "driver: Write"
	i := int(c.Words[3])
	if i < 0 || i >= len(l.Data) || !l.Data[i].Valid() {
		return fail(op, fault.ErrInvalid, "no such host data, or less than it says")
	}
	return o.checkRange(op, c.Words[0], c.U64(1), (uint64(l.Data[i].Size)+3)&^3)
}

// checkRange wants a live, unmapped buffer that has the range.
func (o *Objects) checkRange(op string, id uint32, offset, size uint64) error {
	b, err := o.buffer(op, id)
	if err != nil {
		return err
	}
	return CheckRange(op, offset, size, b.size)
}

func (o *Objects) checkBind(c Command) error {
	const op = "driver: Bind"
	id, entries := c.Words[0], c.Bindings()
	if err := o.sets.free(op, id); err != nil {
		return err
	}
	n := len(entries)
	if n > MaxBindings || len(c.Words) != 3+5*n {
		return fail(op, fault.ErrInvalid, "malformed entries")
	}
	s := &setState{layout: Layout(c.U64(1)), entries: entries, buffers: make([]*bufferState, n)}
	var sizes [MaxBindings]uint64
	for i, e := range entries {
		b, err := o.buffer(op, uint32(e.Buffer))
		if err != nil {
			return err
		}
		s.buffers[i], sizes[i] = b, b.size
	}
	if err := o.info.Limits.CheckBindings(op, s.layout, entries, sizes[:n]); err != nil {
		return err
	}
	o.replace(id, s)
	return nil
}

func (o *Objects) checkDispatch(l *CommandList, w []uint32) error {
	const op = "driver: Dispatch"
	kernel, compiled := o.kernels.at(w[0]).(Layout)
	s, bound := o.sets.at(w[1]).(*setState)
	params := w[5]
	switch {
	case !compiled:
		return fail(op, fault.ErrClosed, "kernel ", w[0])
	case !bound:
		return fail(op, fault.ErrInvalid, "no binding set ", w[1])
	case s.layout != kernel:
		return fail(op, fault.ErrInvalid, "the binding set has another layout than the kernel")
	case s.layout.HasParams() && (params%paramsAlign != 0 || uint64(params) >= uint64(len(l.Params))):
		return fail(op, fault.ErrInvalid, "no parameter block at ", params)
	}
	for i, e := range s.entries {
		b, err := o.buffer(op, uint32(e.Buffer))
		if err != nil {
			return err
		}
		if b != s.buffers[i] {
			return fail(op, fault.ErrClosed, "buffer ", uint32(e.Buffer), " was replaced")
		}
	}
	return o.info.Limits.CheckGroups(op, [3]uint32(w[2:5]))
}
