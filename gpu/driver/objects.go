// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/rules"
)

// Objects remembers what a device holds and checks every request against it, so that all drivers refuse the same
// mistakes with the same errors and none reaches the platform. It is not safe for concurrent use: a driver calls it
// under its own lock.
type Objects struct {
	Info    AdapterInfo   // of the device
	buffers []bufferState // by id
	kernels []kernelState
	sets    []setState
	undo    []undoSet // what the list at hand has replaced
	lost    bool
	closed  bool
	reason  string // of the loss
}

type bufferState struct {
	size     uint64 // 0: there is none
	age      uint32 // tells a buffer from an earlier one with the same id
	mappable bool
	mapped   bool
}

type kernelState struct {
	layout Layout
	live   bool
}

type setState struct {
	layout  Layout
	live    bool
	entries []Binding
	ages    []uint32 // of the entries' buffers
}

type undoSet struct {
	id  BindingsID
	old setState
}

// maxID keeps a wrong id from growing the tables, which are indexed by id, beyond some tens of megabytes.
const maxID = 1 << 20

// free wants an id that names nothing and may name something.
func free[ID ~uint32](op string, id ID, used bool) error {
	if id == 0 || uint32(id) >= maxID || used {
		return fault.Fail(op, fault.ErrInvalid, "id ", num(uint64(id)), " is not free")
	}
	return nil
}

func num(v uint64) string { return strconv.FormatUint(v, 10) }

// Usable reports why nothing can be done any more: closed or lost.
func (o *Objects) Usable(op string) error {
	if !o.closed && !o.lost {
		return nil
	}
	return o.usable("driver: " + op)
}

func (o *Objects) usable(op string) error {
	switch {
	case o.closed:
		return fault.Fail(op, fault.ErrClosed)
	case o.lost:
		return fault.Fail(op, fault.ErrDeviceLost, o.reason)
	}
	return nil
}

// SetLost makes every later request fail with fault.ErrDeviceLost and the reason.
func (o *Objects) SetLost(reason string) { o.lost, o.reason = true, reason }

// Reason returns the reason of the loss, or "".
func (o *Objects) Reason() string { return o.reason }

// Close makes every later request fail with fault.ErrClosed. It reports whether this was the first call.
func (o *Objects) Close() bool {
	first := !o.closed
	o.closed = true
	return first
}

// within reports whether id indexes s. As an int, an id of 1<<31 and more would be negative on 32-bit machines.
func within[ID ~uint32, T any](id ID, s []T) bool { return uint64(id) < uint64(len(s)) }

func grow[T any](s []T, id uint32) []T {
	for uint64(len(s)) <= uint64(id) {
		s = append(s, make([]T, max(16, len(s)))...)
	}
	return s
}

// AddBuffer checks and notes a new buffer. imported buffers may have any size the platform gave them.
func (o *Objects) AddBuffer(id BufferID, size uint64, mappable, imported bool) error {
	const op = "driver: NewBuffer"
	if err := cmp.Or(o.usable(op), free(op, id, o.BufferSize(id) != 0)); err != nil {
		return err
	}
	switch {
	case size == 0 || (size%4 != 0 && !imported):
		return fault.Fail(op, fault.ErrInvalid, "size "+num(size)+" is not a positive multiple of 4")
	case size > o.Info.Limits.MaxBufferSize && !imported:
		return fault.Fail(op, fault.ErrLimit, num(size)+" bytes, the largest buffer has "+num(o.Info.Limits.MaxBufferSize))
	case mappable && !o.Info.Features.Has(FeatureMappable):
		return fault.Fail(op, fault.ErrUnsupported, "mappable storage")
	}
	o.buffers = grow(o.buffers, uint32(id))
	b := &o.buffers[id]
	*b = bufferState{size: size, age: b.age + 1, mappable: mappable}
	return nil
}

// DropBuffer forgets a buffer. It reports whether there was one.
func (o *Objects) DropBuffer(id BufferID) bool {
	if o.BufferSize(id) == 0 {
		return false
	}
	o.buffers[id] = bufferState{age: o.buffers[id].age}
	return true
}

// BufferSize returns the size of a live buffer, or 0.
func (o *Objects) BufferSize(id BufferID) uint64 {
	if within(id, o.buffers) {
		return o.buffers[id].size
	}
	return 0
}

// AddKernel checks and notes a kernel.
func (o *Objects) AddKernel(id KernelID, k *Kernel) error {
	const op = "driver: NewKernel"
	if err := o.usable(op); err != nil {
		return err
	}
	if k == nil {
		return fault.Fail(op, fault.ErrInvalid, "nil kernel")
	}
	if err := free(op, id, within(id, o.kernels) && o.kernels[id].live); err != nil {
		return err
	}
	switch {
	case k.Source == "" || k.Entry == "":
		return fault.Fail(op, fault.ErrInvalid, "a kernel needs a source and an entry point")
	case k.Layout.params() > 1:
		return fault.Fail(op, fault.ErrInvalid, "more than one parameter block")
	case k.Layout.Storage() > int(o.Info.Limits.MaxStorageBuffers):
		return fault.Fail(op, fault.ErrLimit,
			num(uint64(k.Layout.Storage())), " storage bindings, the device has ", num(uint64(o.Info.Limits.MaxStorageBuffers)))
	}
	o.kernels = grow(o.kernels, uint32(id))
	o.kernels[id] = kernelState{k.Layout, true}
	return nil
}

// DropKernel forgets a kernel. It reports whether there was one.
func (o *Objects) DropKernel(id KernelID) bool {
	if !within(id, o.kernels) || !o.kernels[id].live {
		return false
	}
	o.kernels[id] = kernelState{}
	return true
}

// Map checks a mapping and notes it.
func (o *Objects) Map(id BufferID, offset, size uint64) error {
	const op = "driver: Map"
	if err := o.usable(op); err != nil {
		return err
	}
	b, err := o.buffer(op, id)
	if err != nil {
		return err
	}
	if !b.mappable {
		return fault.Fail(op, fault.ErrUnsupported, "the buffer is not mappable")
	}
	if size == 0 || size%4 != 0 || offset%8 != 0 || offset > b.size || size > b.size-offset {
		return fault.Fail(op, fault.ErrInvalid, num(size)+" bytes at "+num(offset)+" of "+num(b.size))
	}
	b.mapped = true
	return nil
}

// Unmap checks and notes the end of a mapping.
func (o *Objects) Unmap(id BufferID) error {
	if err := o.usable("driver: Unmap"); err != nil {
		return err
	}
	if !within(id, o.buffers) || !o.buffers[id].mapped {
		return fault.Fail("driver: Unmap", fault.ErrInvalid, "the buffer is not mapped")
	}
	o.buffers[id].mapped = false
	return nil
}

func (o *Objects) buffer(op string, id BufferID) (*bufferState, error) {
	if o.BufferSize(id) == 0 {
		return nil, fault.Fail(op, fault.ErrClosed, "buffer "+num(uint64(id)))
	}
	b := &o.buffers[id]
	if b.mapped {
		return nil, fault.Fail(op, fault.ErrMapped, "buffer "+num(uint64(id)))
	}
	return b, nil
}

// CheckRead checks a transfer to the host.
func (o *Objects) CheckRead(t Transfer) error {
	const op = "driver: Read"
	if err := o.usable(op); err != nil {
		return err
	}
	b, err := o.buffer(op, t.Buffer)
	if err != nil {
		return err
	}
	n := uint64(t.Span())
	switch {
	case t.Count < 0 || t.Width < 0 || t.HostOffset < 0 || t.Count > 1 && t.Pitch < t.Width:
		return fault.Fail(op, fault.ErrInvalid, "negative or overlapping rows")
	case t.Count > 1 && t.Pitch > math.MaxInt/t.Count:
		return fault.Fail(op, fault.ErrInvalid, "overflow")
	case t.Offset > b.size || n > b.size-t.Offset:
		return fault.Fail(op, fault.ErrInvalid, "beyond the end of the buffer")
	case t.HostOffset > t.Host.Size || n > uint64(t.Host.Size-t.HostOffset):
		return fault.Fail(op, fault.ErrInvalid, "host memory too short")
	case !t.Host.Valid():
		return fault.Fail(op, fault.ErrInvalid, "host memory shorter than it says")
	case t.Host.ReadOnly:
		return fault.Fail(op, fault.ErrReadOnly, "the destination")
	}
	return nil
}

// Check checks a whole list and, if it is right, notes the binding sets that it defines and forgets.
func (o *Objects) Check(l *CommandList) error {
	if err := o.usable("driver: Submit"); err != nil {
		return err
	}
	if l == nil {
		return fault.Fail("driver: Submit", fault.ErrInvalid, "nil command list")
	}
	for c := range l.All() {
		if err := o.check(l, c); err != nil {
			for _, u := range slices.Backward(o.undo) {
				o.sets[u.id] = u.old
			}
			o.undo = o.undo[:0]
			return err
		}
	}
	clear(o.undo)
	o.undo = o.undo[:0]
	return nil
}

func (o *Objects) check(l *CommandList, c Command) error {
	switch w := c.Words; c.Op {
	case OpWrite:
		return o.checkWrite(l, c)
	case OpCopy:
		if w[0] == w[3] {
			return fault.Fail("driver: Copy", fault.ErrInvalid, "within one buffer")
		}
		if err := o.checkRange("driver: Copy", BufferID(w[0]), c.U64(1), c.U64(6)); err != nil {
			return err
		}
		return o.checkRange("driver: Copy", BufferID(w[3]), c.U64(4), c.U64(6))
	case OpClear:
		return o.checkRange("driver: Clear", BufferID(w[0]), c.U64(1), c.U64(3))
	case OpBind:
		return o.checkBind(c)
	case OpUnbind:
		if !within(w[0], o.sets) || !o.sets[w[0]].live {
			return fault.Fail("driver: Unbind", fault.ErrInvalid, "no such binding set")
		}
		o.replace(BindingsID(w[0]), setState{})
		return nil
	case OpDispatch:
		return o.checkDispatch(l, w)
	}
	return fault.Fail("driver: Submit", fault.ErrInvalid, "malformed command list")
}

func (o *Objects) replace(id BindingsID, s setState) {
	o.undo = append(o.undo, undoSet{id, o.sets[id]})
	o.sets[id] = s
}

func (o *Objects) checkWrite(l *CommandList, c Command) error {
	i := c.Words[3]
	if uint64(i) >= uint64(len(l.Data)) {
		return fault.Fail("driver: Write", fault.ErrInvalid, "no such host data")
	}
	h := l.Data[i]
	if !h.Valid() {
		return fault.Fail("driver: Write", fault.ErrInvalid, "host memory shorter than it says")
	}
	size := uint64(h.Size)
	if h.Foreign != nil {
		size = (size + 3) &^ 3 // nobody above the driver can fill it up
	}
	return o.checkRange("driver: Write", BufferID(c.Words[0]), c.U64(1), size)
}

// checkRange wants a live, unmapped buffer that has the range.
func (o *Objects) checkRange(op string, id BufferID, offset, size uint64) error {
	b, err := o.buffer(op, id)
	if err != nil {
		return err
	}
	return rules.Range(op, offset, size, b.size)
}

func (o *Objects) checkBind(c Command) error {
	const op = "driver: Bind"
	id, entries := BindingsID(c.Words[0]), c.Bindings()
	if err := free(op, id, within(id, o.sets) && o.sets[id].live); err != nil {
		return err
	}
	n := len(entries)
	if n > MaxBindings || len(c.Words) != 3+5*n {
		return fault.Fail(op, fault.ErrInvalid, "malformed entries")
	}
	s := setState{layout: Layout(c.U64(1)), live: true, entries: entries, ages: make([]uint32, n)}
	var sizes [MaxBindings]uint64
	for i, e := range entries {
		b, err := o.buffer(op, e.Buffer)
		if err != nil {
			return err
		}
		s.ages[i], sizes[i] = b.age, b.size
	}
	if err := o.Info.Limits.CheckBindings(op, s.layout, s.entries, sizes[:n]); err != nil {
		return err
	}
	o.sets = grow(o.sets, uint32(id))
	o.replace(id, s)
	return nil
}

func (o *Objects) checkDispatch(l *CommandList, w []uint32) error {
	const op = "driver: Dispatch"
	k, id, groups, params := w[0], w[1], [3]uint32(w[2:5]), w[5]
	if !within(k, o.kernels) || !o.kernels[k].live {
		return fault.Fail(op, fault.ErrClosed, "kernel "+num(uint64(k)))
	}
	if !within(id, o.sets) || !o.sets[id].live {
		return fault.Fail(op, fault.ErrInvalid, "no binding set "+num(uint64(id)))
	}
	s := &o.sets[id]
	if s.layout != o.kernels[k].layout {
		return fault.Fail(op, fault.ErrInvalid, "the binding set has another layout than the kernel")
	}
	for i, e := range s.entries {
		b, err := o.buffer(op, e.Buffer)
		if err != nil {
			return err
		}
		if b.age != s.ages[i] {
			return fault.Fail(op, fault.ErrClosed, "buffer "+num(uint64(e.Buffer))+" was replaced")
		}
	}
	if err := rules.Groups(op, groups, o.Info.Limits.MaxGroups); err != nil {
		return err
	}
	if s.layout.HasParams() && (params%paramsAlign != 0 || !within(params, l.Params)) {
		return fault.Fail(op, fault.ErrInvalid, "no parameter block at "+num(uint64(params)))
	}
	return nil
}
