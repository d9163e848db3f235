// SPDX-License-Identifier: Apache-2.0

package software

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/memory"
)

var _ driver.Device = (*Device)(nil)

// Device is a device of an engine. It keeps the tables that ids point into as the next list will see them. What is queued refers to the
// memory and the kernels themselves, so an id may be freed and given away while earlier work still runs.
type Device struct {
	driver.Objects
	engine   Engine
	watcher  Watcher // nil if the engine is none
	goMemory bool
	limit    uint64 // on the bytes of own buffers

	mu      sync.Mutex
	buffers map[driver.BufferID]buffer
	kernels map[driver.KernelID]kernel
	sets    map[driver.BindingsID][][]byte
	mapped  map[driver.BufferID]*byte // where a buffer's memory begins, between Map and Unmap
	used    uint64                    // bytes of own buffers
	memory  memory.Meter              // of those and of host data
	queue   queue
	refusal error    // is returned until a Submit has returned it
	idle    bool     // closed, and nothing runs any more
	kept    [][]byte // memory that somebody has the handle of
	gone    bool     // the engine is closed
	lent    bool     // somebody has, or had, the handle of a buffer
}

type buffer struct {
	bytes    []byte
	imported bool
	block    *block // nil for memory that is not the engine's
}

// block is memory of the engine.
type block struct {
	refs int  // buffers that it is the memory of
	lent bool // somebody has a handle
}

type kernel struct {
	program Program
	label   string // for errors
	params  bool
}

// New makes a device, which owns the engine.
func New(c Config) *Device {
	d := &Device{
		Objects:  driver.NewObjects(c.Info),
		engine:   c.Engine,
		goMemory: c.GoMemory,
		limit:    c.Info.Limits.MaxBufferSize,
		buffers:  map[driver.BufferID]buffer{},
		kernels:  map[driver.KernelID]kernel{},
		sets:     map[driver.BindingsID][][]byte{},
		mapped:   map[driver.BufferID]*byte{},
		memory:   memory.Meter{Foreign: !c.GoMemory},
	}
	d.watcher, _ = c.Engine.(Watcher)
	d.queue.init(d.name("queued work"), c.Pauses, d.pause)
	return d
}

func (d *Device) name(op string) string { return d.Info().Driver + ": " + op }

func (d *Device) fail(op string, err error, detail ...any) error {
	return fault.Fail(d.name(op), err, fault.Text(detail...))
}

// ready reports why a call that may wait should not begin. A context that has ended fails it whatever there is to wait for.
func (d *Device) ready(ctx context.Context, op string) error {
	return cmp.Or(d.Usable(d.name(op)), fault.Ended(ctx, d.name(op)))
}

// NewBuffer implements [driver.Device].
func (d *Device) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for deadline := time.Now().Add(patience); ; {
		if err := d.AddBuffer(id, size, mappable, false); err != nil {
			return err
		}
		mem, err := d.allocate(size)
		if err == nil {
			d.used += size
			d.buffers[id] = buffer{bytes: mem, block: &block{refs: 1}}
			return nil
		}
		d.DropBuffer(id)
		if !d.freesUntil(deadline) {
			return err
		}
	}
}

// patience is how long NewBuffer waits for memory that was freed, but that queued work still needs. It is short, because callers have
// locks.
const patience = 2 * time.Second

// freesUntil waits without the lock for memory that was freed. It reports whether there was any.
func (d *Device) freesUntil(deadline time.Time) bool {
	frees := d.queue.frees
	if frees == nil {
		return false
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-frees:
		return true
	case <-timer.C:
		return false
	}
}

func (d *Device) allocate(size uint64) ([]byte, error) {
	const op = "NewBuffer"
	if size > d.limit-d.used {
		return nil, d.fail(op, fault.ErrNoMemory, size, " bytes beside the ", d.used, " in use, the budget is ", d.limit)
	}
	if err := d.afford(op, size); err != nil {
		return nil, err
	}
	mem, err := d.engine.Allocate(size)
	if err != nil {
		return nil, d.fail(op, err)
	}
	return mem, nil
}

// afford refuses what the system cannot give.
func (d *Device) afford(op string, size uint64) error {
	if !d.memory.Affords(size, memory.Reserve, 0) {
		return d.fail(op, fault.ErrNoMemory, size, " bytes, which the system does not have")
	}
	return nil
}

// imported returns the buffer that a caller's handle stands for.
func (d *Device) imported(op string, handle any) (buffer, error) {
	if err := d.Usable(d.name(op)); err != nil {
		return buffer{}, err
	}
	b, ok := handle.([]byte)
	if !ok {
		return buffer{}, d.fail(op, fault.ErrForeign, "the driver takes a []byte")
	}
	i := buffer{slices.Clip(b), true, nil}
	for _, o := range d.buffers {
		if same(o.bytes, b) && !o.imported {
			i.block = o.block
		}
	}
	if i.block == nil && !d.goMemory {
		return buffer{}, d.fail(op, fault.ErrForeign, "the driver takes memory of its buffers only")
	}
	return i, nil
}

func same(a, b []byte) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) && len(a) == len(b) }

// ImportBuffer implements [driver.Device].
func (d *Device) ImportBuffer(id driver.BufferID, handle any) (driver.BufferID, uint64, error) {
	const op = "ImportBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.imported(op, handle)
	if err != nil {
		return 0, 0, err
	}
	size := uint64(len(b.bytes))
	for known, o := range d.buffers {
		if o.imported && same(o.bytes, b.bytes) {
			return known, size, nil
		}
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b.bytes)))%4 != 0 { // the alignment of WGSL's smallest element type
		return 0, 0, d.fail(op, fault.ErrInvalid, "the bytes do not begin at a multiple of 4")
	}
	if err := d.AddBuffer(id, size, false, true); err != nil {
		return 0, 0, err
	}
	if b.block != nil {
		b.block.refs++
	}
	d.buffers[id] = b
	return id, size, nil
}

// DestroyBuffer leaves the bytes to the garbage collector.
func (d *Device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.imported(op, handle)
	if err == nil && b.block != nil {
		err = d.fail(op, fault.ErrInvalid, "the buffer is Sublet's own")
	}
	return err
}

// Handle returns the bytes of a buffer. There is no object behind the device.
func (d *Device) Handle(id driver.BufferID) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.buffers[id]
	if !ok {
		return nil
	}
	if b.block != nil {
		b.block.lent, d.lent = true, true
	}
	return b.bytes
}

// FreeBuffer implements [driver.Device].
func (d *Device) FreeBuffer(id driver.BufferID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.DropBuffer(id) {
		return
	}
	d.unmapped(id)
	b, ok := d.buffers[id]
	delete(d.buffers, id)
	if ok && !b.imported {
		d.used -= uint64(len(b.bytes))
	}
	if ok && b.block != nil {
		if b.block.refs--; b.block.refs == 0 {
			free := func() { d.engine.Free(b.bytes) }
			if d.goMemory && !d.gone { // the collector knows who needs it
				free()
			} else {
				d.release(free)
			}
		}
	}
}

// NewKernel implements [driver.Device].
func (d *Device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	if err := d.admit(ctx, id, k); err != nil {
		return err
	}
	p, err := d.engine.Compile(ctx, k)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err = d.AddKernel(id, k); err != nil { // somebody took the id, or the device is closed
		p.Close()
		return err
	}
	d.kernels[id] = kernel{p, strings.TrimPrefix(k.Label+" ("+k.Entry+")", " "), k.Layout.HasParams()}
	return nil
}

// admit checks a kernel without noting it.
func (d *Device) admit(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx, "NewKernel"); err != nil {
		return err
	}
	if err := d.AddKernel(id, k); err != nil {
		return err
	}
	d.DropKernel(id)
	return nil
}

// FreeKernel implements [driver.Device].
func (d *Device) FreeKernel(id driver.KernelID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.DropKernel(id) {
		p := d.kernels[id].program
		delete(d.kernels, id)
		if p != nil {
			d.release(p.Close)
		}
	}
}

// Submit implements [driver.Device].
func (d *Device) Submit(l *driver.CommandList) error {
	d.mu.Lock()
	w, err := d.take(l)
	crowded := d.queue.staged > d.queue.most
	d.mu.Unlock()
	if err == nil {
		d.performBrief(w)
	}
	switch {
	case err != nil:
		return err
	case crowded && d.queue.slice > 0:
		runtime.Gosched() // to wait with a single thread might be to wait for the page, which waits for this
	case crowded:
		<-w.done
	}
	return nil
}

// take enqueues a list.
func (d *Device) take(l *driver.CommandList) (*work, error) {
	if err := d.Usable(d.name("Submit")); err != nil {
		return nil, err
	}
	if err := d.refusal; err != nil {
		d.refusal = nil
		return nil, err
	}
	if err := d.stageable(l); err != nil {
		return nil, err
	}
	if err := d.Check(l); err != nil {
		return nil, err
	}
	data := make([][]byte, len(l.Data))
	for i, h := range l.Data {
		var err error
		if i == 0 && d.direct(l) {
			data[i], err = d.load(h, d.written(l))
		} else {
			data[i], err = d.load(h, make([]byte, (h.Size+3)&^3))
		}
		if err != nil {
			return nil, err
		}
	}
	w := d.record(l, data)
	d.enqueue(w)
	return w, nil
}

// Read implements [driver.Device].
func (d *Device) Read(ctx context.Context, t driver.Transfer) error {
	short := false
	err := d.run(ctx, "Read", func() (func(), uint64, error) {
		foreign := t.Host.Copier()
		if t.Host.Foreign != nil && foreign == nil {
			return nil, 0, d.fail("Read", fault.ErrUnsupported, "host memory that the driver does not know")
		}
		if err := d.CheckRead(t); err != nil || t.Span() == 0 {
			return nothing, 0, err
		}
		src := d.span(uint32(t.Buffer), t.Offset, uint64(t.Span()))
		if d.watcher != nil && t.Count == 1 && t.HostOffset+t.Host.Offset == 0 {
			d.watcher.Reads(src)
		} else {
			d.moved()
		}
		return func() {
			for i := range t.Count {
				at := t.HostOffset + i*t.Pitch
				row := src[i*t.Pitch:][:t.Width]
				if foreign != nil {
					short = foreign.Store(t.Host.Offset+at, row) < len(row) || short
				} else {
					copy(t.Host.Mem()[at:], row)
				}
			}
		}, uint64(t.Count * t.Width), nil
	})
	if err == nil && short {
		err = d.shortened("Read")
	}
	return err
}

// Wait implements [driver.Device].
func (d *Device) Wait(ctx context.Context) error {
	return d.run(ctx, "Wait", func() (func(), uint64, error) { return nothing, 0, nil })
}

// Map notes the mapping before it waits, so that no list that names the buffer can slip in between.
func (d *Device) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	const op = "Map"
	var mem []byte // of the buffer, once the mapping is noted
	err := d.run(ctx, op, func() (func(), uint64, error) {
		err := d.Objects.Map(id, offset, size)
		if err == nil {
			mem = d.buffers[id].bytes
			d.mapped[id] = unsafe.SliceData(mem)
		}
		return nothing, 0, err
	})
	if mem == nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	same := unsafe.SliceData(d.buffers[id].bytes) == unsafe.SliceData(mem)
	if err == nil && !same {
		err = d.fail(op, fault.ErrClosed, "the buffer was freed meanwhile")
	}
	if err != nil {
		if same {
			_ = d.Objects.Unmap(id) // fails only where a mapping no longer matters: the device is closed or lost
		}
		if d.mapped[id] == unsafe.SliceData(mem) {
			d.unmapped(id)
		}
		return nil, err
	}
	return mem[offset:][:size:size], nil
}

// Unmap implements [driver.Device].
func (d *Device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Objects.Unmap(id)
	if err == nil || d.Usable("") != nil { // of a device that is closed or lost, too
		d.unmapped(id)
	}
	return err
}

// unmapped notes that nobody uses a buffer's memory as Map's.
func (d *Device) unmapped(id driver.BufferID) {
	delete(d.mapped, id)
	d.finish()
}

// Close drops what has not run yet and has the command that is running end: after it nothing touches imported bytes
// or the destination of a Read any more. Memory that is mapped stays until Unmap.
func (d *Device) Close() error {
	d.mu.Lock()
	first := d.Objects.Close()
	for _, b := range d.buffers {
		if b.block != nil && b.block.lent {
			d.kept = append(d.kept, b.bytes)
		}
	}
	d.buffers, d.kernels, d.sets, d.used = nil, nil, nil, 0
	d.mu.Unlock()
	if first {
		d.engine.Stop()
		d.queue.running <- struct{}{}
		<-d.queue.running
		d.mu.Lock()
		defer d.mu.Unlock()
		d.idle = true
		d.finish()
	}
	return nil
}

// finish closes the engine of a device that is closed, when nobody uses its memory any more.
func (d *Device) finish() {
	if d.idle && !d.gone && len(d.mapped) == 0 {
		d.gone = true
		d.engine.Close(d.lent, d.kept)
		d.kept = nil
	}
}
