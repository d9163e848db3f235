// SPDX-License-Identifier: Apache-2.0

package gpu

import "github.com/sublet-gpu/sublet/gpu/driver"

// A batch leaves by itself when it holds that many commands or that many bytes of parameters. Large enough to make the
// cost of a submission small, small enough that a GPU starts while the rest is still being recorded.
const (
	flushCommands = 256
	flushParams   = 192 << 10
)

// batch collects the commands of a device between two submissions.
type batch struct {
	list     driver.CommandList
	commands int
	epoch    uint64            // number of the batch being collected, from 1
	freed    []driver.BufferID // buffers to destroy once the batch has left
	kernels  []driver.KernelID // and kernels
	single   driver.CommandList
}

// touch notes that the batch in progress uses b.
func (d *Device) touch(b *Buffer) { b.epoch = d.batch.epoch + 1 }

// queued reports whether the batch in progress uses b.
func (d *Device) queued(b *Buffer) bool { return b.epoch == d.batch.epoch+1 }

// added counts a command and flushes a batch that is full.
func (d *Device) added() error {
	d.batch.commands++
	if d.batch.commands >= flushCommands || len(d.batch.list.Params) >= flushParams {
		return d.flush()
	}
	return nil
}

// flush hands the batch to the driver. A batch that the driver refuses is dropped whole, and what the refusal leaves
// unknown, the binding sets, is forgotten.
func (d *Device) flush() error {
	b := &d.batch
	var err error
	if !b.list.Empty() {
		if err = d.drv.Submit(&b.list); err == nil {
			d.stats.Submissions++
		} else {
			d.sets.reset()
		}
		b.list.Reset()
		b.commands = 0
		b.epoch++
	}
	for _, id := range b.freed {
		d.drv.FreeBuffer(id)
		d.buffers.give(id)
	}
	b.freed = b.freed[:0]
	for _, id := range b.kernels {
		d.freeKernel(id)
	}
	b.kernels = b.kernels[:0]
	return err
}

// write sends host memory at once: ahead of the batch where the batch does not use the buffer, else with it. Nothing of
// the caller's memory is kept.
func (d *Device) write(b *Buffer, offset uint64, src driver.Host) error {
	list := &d.batch.single
	if d.queued(b) {
		list = &d.batch.list
	}
	list.Write(b.id, offset, src)
	d.stats.BytesUp += uint64(src.Size)
	if list == &d.batch.list {
		return d.flush()
	}
	err := d.drv.Submit(list)
	list.Reset()
	return err
}

// setKey identifies a binding set: the layout and what is bound.
type set struct {
	id      driver.BindingsID
	layout  driver.Layout
	entries []driver.Binding
}

// setCache finds the binding set for a layout and buffers, so that a kernel launched again on the same buffers binds
// nothing anew.
type setCache struct {
	byHash map[uint64][]*set
	byBuf  map[driver.BufferID][]*set
	ids    idTable[driver.BindingsID]
	count  int
}

// maxSets bounds the cache; beyond it everything is forgotten and made again as needed.
const maxSets = 4096

func hashSet(layout driver.Layout, entries []driver.Binding) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(layout) * prime
	for _, e := range entries {
		h = (h ^ uint64(e.Buffer) ^ e.Offset<<20 ^ e.Size<<40) * prime
		h ^= h >> 29
	}
	return h
}

func sameEntries(a, b []driver.Binding) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// find returns the set's id, and defines it in the list if it is new.
func (c *setCache) find(l *driver.CommandList, layout driver.Layout, entries []driver.Binding) driver.BindingsID {
	h := hashSet(layout, entries)
	for _, s := range c.byHash[h] {
		if s.layout == layout && sameEntries(s.entries, entries) {
			return s.id
		}
	}
	if c.count >= maxSets {
		c.unbindAll(l)
	}
	if c.byHash == nil {
		c.byHash, c.byBuf = map[uint64][]*set{}, map[driver.BufferID][]*set{}
	}
	s := &set{c.ids.take(), layout, append([]driver.Binding(nil), entries...)}
	c.byHash[h] = append(c.byHash[h], s)
	for i, e := range entries {
		if i == 0 || e.Buffer != entries[i-1].Buffer {
			c.byBuf[e.Buffer] = append(c.byBuf[e.Buffer], s)
		}
	}
	c.count++
	l.Bind(s.id, layout, s.entries)
	return s.id
}

// drop unbinds every set that names the buffer.
func (c *setCache) drop(l *driver.CommandList, id driver.BufferID) {
	for _, s := range c.byBuf[id] {
		c.remove(l, s)
	}
	delete(c.byBuf, id)
}

func (c *setCache) remove(l *driver.CommandList, s *set) {
	h := hashSet(s.layout, s.entries)
	for i, t := range c.byHash[h] {
		if t == s {
			c.byHash[h] = append(c.byHash[h][:i:i], c.byHash[h][i+1:]...)
			if len(c.byHash[h]) == 0 {
				delete(c.byHash, h)
			}
			l.Unbind(s.id)
			c.ids.give(s.id)
			c.count--
			return
		}
	}
}

func (c *setCache) unbindAll(l *driver.CommandList) {
	for _, ss := range c.byHash {
		for _, s := range ss {
			l.Unbind(s.id)
			c.ids.give(s.id)
		}
	}
	c.byHash, c.byBuf, c.count = nil, nil, 0
}

// reset forgets the sets without unbinding them. Their ids are not used again, since the driver may still hold some.
func (c *setCache) reset() { c.byHash, c.byBuf, c.count = nil, nil, 0 }
