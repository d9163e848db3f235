// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// flushCommands is the number of commands at which a batch is submitted by itself: large enough to make the cost of a submission small,
// small enough that a GPU starts while the rest is still being recorded.
const flushCommands = 256

// eagerCommands takes the place of flushCommands for a device that computes on the CPU, where a submission costs little more than a goroutine:
// the device computes while the rest is recorded.
const eagerCommands = 64

// enough returns after how many commands a batch of the device is submitted by itself.
func (d *Device) enough() int {
	if RunsNative && d.info.Backend == "wasm" {
		return eagerCommands
	}
	return flushCommands
}

// Limits of a batch that cannot be submitted because the device is busy. Calls that would exceed them wait.
const (
	mostCommands = 16 * flushCommands
	mostStaged   = 64 << 20 // bytes of host memory
)

// refusesLater reports whether the driver may refuse a batch after accepting it: browsers do, and so do drivers that limit loops.
func (d *Device) refusesLater() bool {
	return runtime.GOOS == "js" || d.info.Limits.MaxLoopsPerInvoking > 0
}

// batch collects the commands of a device between two submissions.
type batch struct {
	list     driver.CommandList
	commands int
	launches
	staged int      // bytes of host memory that were copied to go with it
	epoch  uint64   // number of the batch being collected, from 1
	after  []func() // gives back what the batch may name
}

// use records that the batch in progress uses the memory.
func (d *Device) use(m *memory) { m.epoch = d.batch.epoch }

// write records that the batch in progress writes the memory.
func (d *Device) write(m *memory) {
	m.epoch, m.wrote = d.batch.epoch, d.batch.epoch
	if !m.unsettled {
		m.unsettled = true
		d.unsettled = append(d.unsettled, m)
	}
}

// If a batch is refused, at once or later, the memory that it should have written is invalid. So is what batches collected meanwhile
// should have written, as they may have read that memory. Calls that use such memory return the error until all of it is written again.

// refused records that a batch was refused.
func (d *Device) refused(batch uint64, why error) {
	for _, m := range d.unsettled {
		if m.wrote >= batch && m.failed == nil {
			m.failed = why
		}
	}
}

// refusedLater records the error of a batch that had been accepted, and reports whether err is such an error.
func (d *Device) refusedLater(err error) bool {
	r, ok := errors.AsType[driver.Refusal](err)
	switch m := d.memories[r.Buffer]; {
	case !ok:
	case r.Buffer == 0:
		d.refused(r.List, d.blame(&d.sent, cmp.Or(d.short, r.Err)))
	default:
		d.short = r.Err
		if m != nil {
			m.missing.Store(true)
		}
	}
	return ok
}

// settle records that batches with lower numbers cannot be refused any more.
func (d *Device) settle(before uint64) {
	d.unsettled = slices.DeleteFunc(d.unsettled, func(m *memory) bool {
		m.unsettled = m.wrote >= before
		return !m.unsettled
	})
}

// waited records the outcome of a call that waited for all batches with lower numbers, and reports whether it is the error of one of them.
func (d *Device) waited(q *queue, before uint64, err error) (late bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue == q {
		if late = d.refusedLater(err); late {
			_ = d.refusedLater(q.drv.Submit(new(driver.CommandList))) // of nothing: the driver need not say it to others
		} else if err == nil {
			d.short = nil
			d.settle(before)
		}
	}
	return late
}

// queued reports whether the batch in progress uses the memory.
func (d *Device) queued(m *memory) bool { return m.epoch == d.batch.epoch }

// destroy destroys a buffer and forgets the binding sets that contain it.
func (d *Device) destroy(m *memory) {
	for _, s := range d.sets {
		if slices.Contains(s.of, m) {
			d.dropSet(s)
		}
	}
	d.afterBatch(func() {
		if m.shares > 0 || d.memories[m.id] != m { // it was imported again meanwhile
			return
		}
		delete(d.memories, m.id)
		d.drv.FreeBuffer(m.id)
		d.buffers.give(uint32(m.id))
	})
}

// afterBatch calls free after the batch in progress is submitted, which may use what free releases.
func (d *Device) afterBatch(free func()) { d.batch.after = append(d.batch.after, free) }

// set is a binding set, kept for kernels that are launched again on the same buffers.
type set struct {
	id  driver.BindingsID
	key string
	of  []*memory // what it binds
}

// maxSets is how many binding sets are kept. Beyond it all are forgotten, and made again as needed.
const maxSets = 4096

// setKey returns the key of the set of a layout and these entries.
func (d *Device) setKey(layout driver.Layout, entries []driver.Binding) []byte {
	key := binary.LittleEndian.AppendUint64(d.key[:0], uint64(layout))
	for _, e := range entries {
		key = binary.LittleEndian.AppendUint32(key, uint32(e.Buffer))
		key = binary.LittleEndian.AppendUint64(key, e.Offset)
		key = binary.LittleEndian.AppendUint64(key, e.Size)
	}
	d.key = key
	return key
}

// addSet defines the set of these arguments, which is not there yet.
func (d *Device) addSet(key []byte, layout driver.Layout, entries []driver.Binding, args []Arg) *set {
	if len(d.sets) >= maxSets {
		for _, s := range d.sets {
			d.dropSet(s)
		}
	}
	s := &set{id: driver.BindingsID(d.setIDs.take()), key: string(key)}
	d.sets[s.key] = s
	for _, a := range args {
		s.of = append(s.of, a.Buffer.mem)
	}
	d.batch.list.Bind(s.id, layout, entries)
	return s
}

func (d *Device) dropSet(s *set) {
	delete(d.sets, s.key)
	d.batch.list.Unbind(s.id)
	d.setIDs.give(uint32(s.id))
}

// idTable hands out small numbers and takes them back.
type idTable struct {
	last uint32
	free []uint32
}

func (t *idTable) take() uint32 {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		return id
	}
	t.last++
	return t.last
}

func (t *idTable) give(id uint32) { t.free = append(t.free, id) }
