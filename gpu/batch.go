// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"encoding/binary"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/pointers"
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

// use notes that the batch in progress uses b.
func (d *Device) use(b *Buffer) { *b.used() = d.batch.epoch + 1 }

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
	if len(b.list.Words) > 0 {
		if err = d.drv.Submit(&b.list); err == nil {
			d.stats.Submissions++
			d.sets.settle()
		} else {
			d.withdraw()
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
	if src.Size == 0 {
		return nil
	}
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
// known, so each set is forgotten by a list of its own, which fails where there is none. A driver may report an error of
// earlier work at any submission; the second try is then the one that forgets.
func (d *Device) withdraw() {
	list := &d.batch.single
	for _, id := range d.sets.withdraw() {
		list.Unbind(id)
		if d.drv.Submit(list) != nil {
			_ = d.drv.Submit(list) // the caller gets the error of the refused list
		}
		list.Reset()
	}
}

// set is a binding set: the layout and what is bound.
type set struct {
	id      driver.BindingsID
	key     string
	layout  driver.Layout
	entries []driver.Binding
}

// setCache finds the binding set for a layout and buffers, so that a kernel launched again on the same buffers binds
// nothing anew.
type setCache struct {
	byKey map[string]*set
	byBuf map[driver.BufferID][]*set
	ids   idTable[driver.BindingsID]
	fresh []*set              // defined by the list in progress
	gone  []driver.BindingsID // forgotten by it
	key   []byte              // scratch
}

// maxSets bounds the cache; beyond it everything is forgotten and made again as needed.
const maxSets = 4096

// find returns the set with these entries, or nil. Then c.key is the key of a new one.
func (c *setCache) find(layout driver.Layout, entries []driver.Binding) *set {
	key := binary.LittleEndian.AppendUint64(c.key[:0], uint64(layout))
	for _, e := range entries {
		key = binary.LittleEndian.AppendUint32(key, uint32(e.Buffer))
		key = binary.LittleEndian.AppendUint64(key, e.Offset)
		key = binary.LittleEndian.AppendUint64(key, e.Size)
	}
	c.key = key
	return c.byKey[string(key)]
}

// add defines the set that was not found in the list.
func (c *setCache) add(l *driver.CommandList, layout driver.Layout, entries []driver.Binding) *set {
	if len(c.byKey) >= maxSets {
		for _, s := range c.byKey {
			c.drop(l, s)
		}
	}
	if c.byKey == nil {
		c.byKey, c.byBuf = map[string]*set{}, map[driver.BufferID][]*set{}
	}
	s := &set{c.ids.take(), string(c.key), layout, slices.Clone(entries)}
	c.byKey[s.key] = s
	for _, e := range entries {
		if !slices.Contains(c.byBuf[e.Buffer], s) {
			c.byBuf[e.Buffer] = append(c.byBuf[e.Buffer], s)
		}
	}
	c.fresh = append(c.fresh, s)
	l.Bind(s.id, layout, s.entries)
	return s
}

// dropBuffer unbinds every set that names the buffer.
func (c *setCache) dropBuffer(l *driver.CommandList, id driver.BufferID) {
	for _, s := range append([]*set(nil), c.byBuf[id]...) {
		c.drop(l, s)
	}
}

// drop unbinds a set.
func (c *setCache) drop(l *driver.CommandList, s *set) {
	c.remove(s)
	l.Unbind(s.id)
	c.gone = append(c.gone, s.id)
}

// remove takes a set out of the cache.
func (c *setCache) remove(s *set) {
	delete(c.byKey, s.key)
	for _, e := range s.entries {
		list := pointers.Remove(c.byBuf[e.Buffer], s)
		if c.byBuf[e.Buffer] = list; len(list) == 0 {
			delete(c.byBuf, e.Buffer)
		}
	}
	c.ids.give(s.id)
}

// settle notes that the driver has executed the list in progress.
func (c *setCache) settle() {
	clear(c.fresh)
	c.fresh, c.gone = c.fresh[:0], c.gone[:0]
}

// withdraw notes that the driver has refused the list in progress, and returns the sets of which it is not known whether the
// driver has them. Their ids are free.
func (c *setCache) withdraw() []driver.BindingsID {
	unknown := slices.Clone(c.gone)
	for _, s := range c.fresh {
		if c.byKey[s.key] == s {
			c.remove(s)
			unknown = append(unknown, s.id)
		}
	}
	c.settle()
	return unknown
}
