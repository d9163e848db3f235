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

// stageable refuses host data that cannot be taken over: memory that is not Go's, and more of it than the device may
// ever hold.
func (d *device) stageable(l *driver.CommandList) error {
	if l == nil {
		return nil // Objects says what is wrong with it
	}
	left := d.limit
	for _, h := range l.Data {
		if _, copies := h.Foreign.(copier); h.Foreign != nil && !copies {
			return fail("Submit", fault.ErrUnsupported, "the Go oracle writes from Go memory only")
		}
		n := uint64(len(h.Mem()))
		if h.Foreign != nil {
			n = uint64(max(h.Size, 0))
		}
		if n > left {
			return fail("Submit", fault.ErrNoMemory, "the host data of one list exceeds ", d.limit, " bytes")
		}
		left -= n
	}
	return nil
}

// record queues a checked list as steps with their operands, so that neither the caller's list nor the tables are needed
// any more.
func (d *device) record(l *driver.CommandList) {
	data := make([][]byte, len(l.Data))
	for i, h := range l.Data {
		data[i] = slices.Clone(h.Mem())
		if m, ok := h.Foreign.(copier); ok {
			data[i] = make([]byte, (h.Size+3)&^3)
			m.Load(h.Offset, data[i][:h.Size])
		}
	}
	params := slices.Clone(l.Params)
	for c := range l.All() {
		switch w := c.Words; c.Op {
		case driver.OpWrite:
			src := data[w[3]]
			dst := d.span(w[0], c.U64(1), uint64(len(src)))
			d.push(&step{staged: uint64(len(src)), do: func() { copy(dst, src) }})
		case driver.OpCopy:
			dst, src := d.span(w[0], c.U64(1), c.U64(6)), d.span(w[3], c.U64(4), c.U64(6))
			d.push(&step{do: func() { copy(dst, src) }})
		case driver.OpClear:
			dst := d.span(w[0], c.U64(1), c.U64(3))
			d.push(&step{do: func() { clear(dst) }})
		case driver.OpBind:
			d.sets[driver.BindingsID(w[0])] = c.Bindings()
		case driver.OpUnbind:
			delete(d.sets, driver.BindingsID(w[0]))
		case driver.OpDispatch:
			d.dispatch(w, params)
		}
	}
}

func (d *device) dispatch(w []uint32, blocks []byte) {
	groups, at := [3]uint32(w[2:5]), uint64(w[5])
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 {
		return
	}
	k, set := d.kernels[driver.KernelID(w[0])], d.sets[driver.BindingsID(w[1])]
	var params []byte
	if k.Layout.HasParams() {
		end := min(at+driver.MaxParams, uint64(len(blocks)))
		params = blocks[at:end:end]
	}
	storage := make([][]byte, len(set))
	for i, b := range set {
		storage[i] = d.span(uint32(b.Buffer), b.Offset, b.Size)
	}
	d.push(&step{label: k.Label + " (" + k.Entry + ")", do: func() { k.Reference(groups, params, storage) }})
}

// span returns a part of a buffer, clipped so that nothing after it can be reached.
func (d *device) span(id uint32, offset, size uint64) []byte {
	return d.buffers[driver.BufferID(id)].bytes[offset : offset+size : offset+size]
}
