// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// copier is foreign memory that copies itself: a typed array of a page that has no other device.
type copier interface {
	Load(at int, into []byte) int
	Store(at int, from []byte)
}

// stageable refuses host data that cannot be taken over: memory that is not Go's, and more of it than the device may ever hold.
func (d *device) stageable(l *driver.CommandList) error {
	if l == nil {
		return nil // Objects says what is wrong with it
	}
	size := uint64(0)
	for _, h := range l.Data {
		if _, copies := h.Foreign.(copier); h.Foreign != nil && !copies {
			return fail("Submit", fault.ErrUnsupported, "the Go oracle writes from Go memory only")
		}
		if h.Valid() { // Objects refuses others
			size += uint64(h.Size)
		}
		if size > d.limit {
			return fail("Submit", fault.ErrNoMemory, "the host data of one list exceeds ", d.limit, " bytes")
		}
	}
	return nil
}

// record makes a work of a checked list. It needs neither the caller's list nor the tables any more.
func (d *device) record(l *driver.CommandList) *work {
	w := new(work)
	add := func(do func()) { w.commands = append(w.commands, command{do: do}) }
	params := slices.Clone(l.Params)
	for c := range l.All() {
		switch v := c.Words; c.Op {
		case driver.OpWrite:
			src := stage(l.Data[v[3]])
			dst := d.span(v[0], c.U64(1), uint64(len(src)))
			w.staged += uint64(len(src))
			add(func() { copy(dst, src) })
		case driver.OpCopy:
			dst, src := d.span(v[0], c.U64(1), c.U64(6)), d.span(v[3], c.U64(4), c.U64(6))
			add(func() { copy(dst, src) })
		case driver.OpClear:
			dst := d.span(v[0], c.U64(1), c.U64(3))
			add(func() { clear(dst) })
		case driver.OpBind:
			storage := [][]byte{}
			for _, b := range c.Bindings() {
				storage = append(storage, d.span(uint32(b.Buffer), b.Offset, b.Size))
			}
			d.sets[driver.BindingsID(v[0])] = storage
		case driver.OpUnbind:
			delete(d.sets, driver.BindingsID(v[0]))
		case driver.OpDispatch:
			if v[2] > 0 && v[3] > 0 && v[4] > 0 {
				w.commands = append(w.commands, d.dispatch(v, params))
			}
		}
	}
	return w
}

// stage copies host data, with zeros up to a multiple of 4.
func stage(h driver.Host) []byte {
	m, ok := h.Foreign.(copier)
	if !ok {
		return slices.Clone(h.Mem())
	}
	data := make([]byte, (h.Size+3)&^3)
	m.Load(h.Offset, data[:h.Size])
	return data
}

func (d *device) dispatch(w []uint32, blocks []byte) command {
	k, storage := d.kernels[driver.KernelID(w[0])], slices.Clone(d.sets[driver.BindingsID(w[1])])
	var params []byte
	if k.Layout.HasParams() {
		at := int(w[5])
		end := min(at+driver.MaxParams, len(blocks))
		params = blocks[at:end:end]
	}
	groups := [3]uint32(w[2:5])
	return command{k.Label + " (" + k.Entry + ")", func() { k.Reference(groups, params, storage) }}
}

// span returns a part of a buffer, clipped so that nothing after it can be reached.
func (d *device) span(id uint32, offset, size uint64) []byte {
	return d.buffers[driver.BufferID(id)].bytes[offset : offset+size : offset+size]
}
