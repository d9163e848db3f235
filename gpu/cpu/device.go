// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/internal/memory"
)

// device keeps the tables that ids point into as the next list will see them. What is queued refers to the memory and the
// kernels themselves, so an id may be freed and given away while earlier work still runs.
type device struct {
	driver.Objects
	limit uint64 // on the bytes of own buffers

	mu      sync.Mutex
	buffers map[driver.BufferID]buffer
	kernels map[driver.KernelID]*driver.Kernel
	sets    map[driver.BindingsID][][]byte
	used    uint64       // bytes of own buffers
	memory  memory.Meter // of those and of host data
	queue   queue
}

type buffer struct {
	bytes    []byte
	imported bool
}

func newDevice(info driver.AdapterInfo) *device {
	d := &device{
		Objects: driver.NewObjects(info),
		limit:   info.Limits.MaxBufferSize,
		buffers: map[driver.BufferID]buffer{},
		kernels: map[driver.KernelID]*driver.Kernel{},
		sets:    map[driver.BindingsID][][]byte{},
	}
	d.queue.init()
	return d
}

// ready reports why a call that may wait should not begin. A context that has ended fails it whatever there is to wait for.
func (d *device) ready(ctx context.Context, op string) error {
	return cmp.Or(d.Usable("cpu: "+op), fault.Ended(ctx, "cpu: "+op))
}

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.AddBuffer(id, size, mappable, false); err != nil {
		return err
	}
	var err error
	if size > d.limit-d.used {
		err = fail("NewBuffer", fault.ErrNoMemory, size, " bytes beside the ", d.used, " in use, the budget is ", d.limit)
	} else {
		err = d.afford("NewBuffer", size)
	}
	if err != nil {
		d.DropBuffer(id)
		return err
	}
	d.used += size
	d.buffers[id] = buffer{bytes: allocate(size)}
	return nil
}

// afford refuses what the system cannot give.
func (d *device) afford(op string, size uint64) error {
	if !d.memory.Affords(size, memory.Reserve, 0) {
		return fail(op, fault.ErrNoMemory, size, " bytes, which the system does not have")
	}
	return nil
}

// allocate makes the memory of words, not of bytes, so that a reference may use it as any element type.
func allocate(size uint64) []byte {
	return host.BytesOf(make([]uint64, (size+7)/8))[:size:size]
}

// imported returns the bytes that a caller's handle stands for.
func (d *device) imported(op string, handle any) ([]byte, error) {
	if err := d.Usable("cpu: " + op); err != nil {
		return nil, err
	}
	b, ok := handle.([]byte)
	if !ok {
		return nil, fail(op, fault.ErrForeign, "the Go oracle takes a []byte")
	}
	return b, nil
}

func (d *device) ImportBuffer(id driver.BufferID, handle any) (driver.BufferID, uint64, error) {
	const op = "ImportBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.imported(op, handle)
	if err != nil {
		return 0, 0, err
	}
	size := uint64(len(b))
	for known, o := range d.buffers {
		if o.imported && len(o.bytes) == len(b) && unsafe.SliceData(o.bytes) == unsafe.SliceData(b) {
			return known, size, nil
		}
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 != 0 { // the alignment of WGSL's smallest element type
		return 0, 0, fail(op, fault.ErrInvalid, "the bytes do not begin at a multiple of 4")
	}
	if err := d.AddBuffer(id, size, false, true); err != nil {
		return 0, 0, err
	}
	d.buffers[id] = buffer{b[:size:size], true}
	return id, size, nil
}

// DestroyBuffer leaves the bytes to the garbage collector.
func (d *device) DestroyBuffer(handle any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.imported("DestroyBuffer", handle)
	for _, o := range d.buffers {
		if err == nil && !o.imported && unsafe.SliceData(o.bytes) == unsafe.SliceData(b) {
			return fail("DestroyBuffer", fault.ErrInvalid, "the buffer is Sublet's own")
		}
	}
	return err
}

// Handle returns the bytes of a buffer. There is no object behind the device.
func (d *device) Handle(id driver.BufferID) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b, ok := d.buffers[id]; ok {
		return b.bytes
	}
	return nil
}

func (d *device) FreeBuffer(id driver.BufferID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.DropBuffer(id) {
		return
	}
	if b := d.buffers[id]; !b.imported {
		d.used -= uint64(len(b.bytes))
	}
	delete(d.buffers, id)
}

func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "NewKernel"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx, op); err != nil {
		return err
	}
	if k != nil && k.Reference == nil {
		return fail(op, fault.ErrUnsupported, "the Go oracle runs the library's own kernels only; open a device with FeatureWGSL")
	}
	if err := d.AddKernel(id, k); err != nil {
		return err
	}
	own := *k
	d.kernels[id] = &own
	return nil
}

func (d *device) FreeKernel(id driver.KernelID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.DropKernel(id) {
		delete(d.kernels, id)
	}
}

func (d *device) Submit(l *driver.CommandList) error {
	d.mu.Lock()
	w, err := d.take(l)
	crowded := d.queue.staged > d.queue.most
	d.mu.Unlock()
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
func (d *device) take(l *driver.CommandList) (*work, error) {
	if err := cmp.Or(d.Usable("cpu: Submit"), d.stageable(l)); err != nil {
		return nil, err
	}
	if err := d.Check(l); err != nil {
		return nil, err
	}
	data := make([][]byte, len(l.Data))
	for i, h := range l.Data {
		var err error
		if data[i], err = stage(h); err != nil {
			return nil, err
		}
	}
	w := d.record(l, data)
	d.enqueue(w)
	return w, nil
}

func (d *device) Read(ctx context.Context, t driver.Transfer) error {
	short := false
	err := d.run(ctx, "Read", func() (func(), error) {
		foreign, ok := t.Host.Foreign.(copier)
		if t.Host.Foreign != nil && !ok {
			return nil, fail("Read", fault.ErrUnsupported, "the Go oracle reads into Go memory only")
		}
		if err := d.CheckRead(t); err != nil || t.Span() == 0 {
			return nothing, err
		}
		src := d.span(uint32(t.Buffer), t.Offset, uint64(t.Span()))
		return func() {
			for i := range t.Count {
				at := t.HostOffset + i*t.Pitch
				row := src[i*t.Pitch:][:t.Width]
				if ok {
					short = foreign.Store(t.Host.Offset+at, row) < len(row) || short
				} else {
					copy(t.Host.Mem()[at:], row)
				}
			}
		}, nil
	})
	if err == nil && short {
		err = gone("Read")
	}
	return err
}

func (d *device) Wait(ctx context.Context) error {
	return d.run(ctx, "Wait", func() (func(), error) { return nothing, nil })
}

// Map notes the mapping before it waits, so that no list that names the buffer can slip in between.
func (d *device) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	const op = "Map"
	var mem []byte // of the buffer, once the mapping is noted
	err := d.run(ctx, op, func() (func(), error) {
		err := d.Objects.Map(id, offset, size)
		if err == nil {
			mem = d.buffers[id].bytes
		}
		return nothing, err
	})
	if mem == nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch same := unsafe.SliceData(d.buffers[id].bytes) == unsafe.SliceData(mem); {
	case err == nil && !same:
		err = fail(op, fault.ErrClosed, "the buffer was freed meanwhile")
	case err != nil && same:
		_ = d.Objects.Unmap(id) // fails only where a mapping no longer matters: the device is closed or lost
	}
	if err != nil {
		return nil, err
	}
	return mem[offset:][:size:size], nil
}

func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Objects.Unmap(id)
}

// Close drops what has not run yet and waits for the command that is running: after it nothing touches imported bytes
// or the destination of a Read any more.
func (d *device) Close() error {
	d.mu.Lock()
	first := d.Objects.Close()
	d.buffers, d.kernels, d.sets, d.used = nil, nil, nil, 0
	d.mu.Unlock()
	if first {
		d.queue.running <- struct{}{}
		<-d.queue.running
	}
	return nil
}
