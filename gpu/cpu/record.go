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
func (d *device) stageable(op string, l *driver.CommandList) error {
	if l == nil {
		return nil // Objects says what is wrong with it
	}
	left := d.info.Limits.MaxBufferSize
	for _, h := range l.Data {
		n := uint64(len(h.Bytes))
		_, copies := h.Foreign.(copier)
		if copies {
			n = uint64(max(h.Size, 0))
		}
		switch {
		case h.Foreign != nil && !copies:
			return fail(op, fault.ErrUnsupported, "the Go oracle writes from Go memory only")
		case n > left:
			return fail(op, fault.ErrNoMemory, "the host data of one list exceeds "+num(d.info.Limits.MaxBufferSize)+" bytes")
		}
		left -= n
	}
	return nil
}

// recorder turns a checked list into steps with their operands, so that neither the caller's list nor the tables are needed
// any more.
type recorder struct {
	d      *device
	list   *driver.CommandList
	params []byte
	data   [][]byte // the caller's host data, copied when a command first names it
	job    *job
}

func (d *device) record(l *driver.CommandList) *job {
	r := recorder{d: d, list: l, params: slices.Clone(l.Params), data: make([][]byte, len(l.Data)), job: &job{}}
	for c := range l.All() {
		r.command(c)
	}
	return r.job
}

func (r *recorder) command(c driver.Command) {
	switch w := c.Words; c.Op {
	case driver.OpWrite:
		src := r.stage(w[3])
		r.copy(r.d.span(driver.BufferID(w[0]), c.U64(1), uint64(len(src))), src)
	case driver.OpCopy:
		r.copy(r.d.span(driver.BufferID(w[0]), c.U64(1), c.U64(6)), r.d.span(driver.BufferID(w[3]), c.U64(4), c.U64(6)))
	case driver.OpClear:
		dst := r.d.span(driver.BufferID(w[0]), c.U64(1), c.U64(3))
		r.step("", func() { clear(dst) })
	case driver.OpBind:
		r.d.sets[driver.BindingsID(w[0])] = c.Bindings()
	case driver.OpUnbind:
		delete(r.d.sets, driver.BindingsID(w[0]))
	case driver.OpDispatch:
		r.dispatch(r.d.kernels[driver.KernelID(w[0])], r.d.sets[driver.BindingsID(w[1])], [3]uint32(w[2:5]), w[5])
	}
}

func (r *recorder) step(label string, do func()) {
	r.job.steps = append(r.job.steps, step{label, do})
}

func (r *recorder) copy(dst, src []byte) {
	r.step("", func() { copy(dst, src) })
}

func (r *recorder) stage(i uint32) []byte {
	if r.data[i] == nil {
		h := r.list.Data[i]
		r.data[i] = slices.Clone(h.Mem())
		if m, ok := h.Foreign.(copier); ok {
			r.data[i] = make([]byte, h.Size)
			m.Load(h.Offset, r.data[i])
		}
		r.job.staged += uint64(h.Size)
	}
	return r.data[i]
}

func (r *recorder) dispatch(k *driver.Kernel, set []driver.Binding, groups [3]uint32, at uint32) {
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 {
		return
	}
	var params []byte
	if k.Layout.HasParams() {
		end := min(uint64(at)+driver.MaxParams, uint64(len(r.params)))
		params = r.params[at:end:end]
	}
	storage := make([][]byte, len(set))
	for i, b := range set {
		storage[i] = r.d.span(b.Buffer, b.Offset, b.Size)
	}
	r.step(k.Label+" ("+k.Entry+")", func() { k.Reference(groups, params, storage) })
}

// span returns a part of a buffer, clipped so that nothing after it can be reached.
func (d *device) span(id driver.BufferID, offset, size uint64) []byte {
	return d.buffers[id].bytes[offset : offset+size : offset+size]
}
