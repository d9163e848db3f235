// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

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
func (d *Device) touch(b *Buffer) { *b.used() = d.batch.epoch + 1 }

// queued reports whether the batch in progress uses b, or another Buffer of the same imported one.
func (d *Device) queued(b *Buffer) bool { return *b.used() == d.batch.epoch+1 }

func (b *Buffer) used() *uint64 {
	if b.imported != nil {
		return &b.imported.epoch
	}
	return &b.epoch
}

// added counts a command and flushes a batch that is full.
func (d *Device) added() error {
	d.batch.commands++
	if d.batch.commands >= flushCommands || len(d.batch.list.Params) >= flushParams {
		return d.flush()
	}
	return nil
}

// flush hands the batch to the driver. A batch that the driver refuses is dropped whole.
func (d *Device) flush() error {
	b := &d.batch
	var err error
	if !b.list.Empty() {
		if err = d.drv.Submit(&b.list); err == nil {
			d.stats.Submissions++
			d.sets.settle()
		} else {
			err = cmp.Or(err, d.withdraw())
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

// withdraw takes the binding sets back that a refused list defined or forgot. Whether the driver got as far as that is not
// known, so that each is forgotten by itself, which fails where there is none. The error is that of work queued earlier,
// of which the driver may tell at any submission.
func (d *Device) withdraw() (err error) {
	list := &d.batch.single
	for _, id := range d.sets.withdraw() {
		list.Unbind(id)
		if first := d.drv.Submit(list); first != nil && d.drv.Submit(list) == nil {
			err = cmp.Or(err, first)
		}
		list.Reset()
	}
	return err
}

// set is a binding set: the layout and what is bound.
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
	fresh  []*set              // defined by the list in progress
	gone   []driver.BindingsID // forgotten by it
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
	for _, e := range entries {
		if named := c.byBuf[e.Buffer]; len(named) == 0 || named[len(named)-1] != s {
			c.byBuf[e.Buffer] = append(named, s)
		}
	}
	c.count++
	c.fresh = append(c.fresh, s)
	l.Bind(s.id, layout, s.entries)
	return s.id
}

// drop unbinds every set that names the buffer.
func (c *setCache) drop(l *driver.CommandList, id driver.BufferID) {
	named := c.byBuf[id]
	delete(c.byBuf, id)
	for _, s := range named {
		c.remove(s)
		c.unbind(l, s)
	}
}

// remove takes a set out of the cache. Other buffers that it names may live on, and forget it too.
func (c *setCache) remove(s *set) {
	without(c.byHash, hashSet(s.layout, s.entries), s)
	for _, e := range s.entries {
		without(c.byBuf, e.Buffer, s)
	}
	c.ids.give(s.id)
	c.count--
}

func (c *setCache) unbind(l *driver.CommandList, s *set) {
	l.Unbind(s.id)
	c.gone = append(c.gone, s.id)
}

// without takes a set out of a list of sets, and the list, once it is empty, out of its table.
func without[K comparable](table map[K][]*set, key K, s *set) {
	list := table[key]
	at := slices.Index(list, s)
	switch {
	case at < 0: // taken out already, or a buffer that is named twice
	case len(list) == 1:
		delete(table, key)
	default:
		table[key] = slices.Delete(list, at, at+1)
	}
}

func (c *setCache) unbindAll(l *driver.CommandList) {
	for _, ss := range c.byHash {
		for _, s := range ss {
			c.unbind(l, s)
			c.ids.give(s.id)
		}
	}
	c.byHash, c.byBuf, c.count = nil, nil, 0
}

// settle says that the driver has executed the list in progress.
func (c *setCache) settle() {
	clear(c.fresh)
	c.fresh, c.gone = c.fresh[:0], c.gone[:0]
}

// withdraw says that the driver has refused the list in progress, and returns the sets of which it is not known whether the
// driver has them. Their ids are free.
func (c *setCache) withdraw() []driver.BindingsID {
	unknown := slices.Clone(c.gone)
	for _, s := range c.fresh {
		if slices.Contains(c.byHash[hashSet(s.layout, s.entries)], s) {
			c.remove(s)
			unknown = append(unknown, s.id)
		}
	}
	c.settle()
	return unknown
}
