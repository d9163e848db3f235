// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// device keeps the tables that ids point into as the next list will see them. What is queued holds the memory and the
// kernels themselves, so an id may be freed and given away while earlier work still runs.
type device struct {
	info driver.AdapterInfo
	lost chan struct{}

	mu      sync.Mutex
	objects driver.Objects
	buffers map[driver.BufferID]buffer
	kernels map[driver.KernelID]*driver.Kernel
	sets    map[driver.BindingsID][]driver.Binding
	used    uint64 // bytes of own buffers
	queue   queue
}

type buffer struct {
	bytes    []byte
	imported bool
}

func newDevice(info driver.AdapterInfo) *device {
	d := &device{
		info:    info,
		lost:    make(chan struct{}),
		objects: driver.Objects{Info: info},
		buffers: map[driver.BufferID]buffer{},
		kernels: map[driver.KernelID]*driver.Kernel{},
		sets:    map[driver.BindingsID][]driver.Binding{},
	}
	d.queue.init(&d.mu)
	return d
}

func (d *device) Info() driver.AdapterInfo { return d.info }

// ready is Objects.Usable for calls that may wait. A context that has ended fails them whatever there is to wait for.
func (d *device) ready(ctx context.Context, op string) error {
	return cmp.Or(d.objects.Usable(op), alive(ctx, op))
}

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.AddBuffer(id, size, mappable, false); err != nil {
		return err
	}
	if limit := d.info.Limits.MaxBufferSize; size > limit-d.used {
		d.objects.DropBuffer(id)
		return fail("NewBuffer", fault.ErrNoMemory, num(size)+" bytes beside the "+num(d.used)+" in use, the budget is "+num(limit))
	}
	d.used += size
	d.buffers[id] = buffer{bytes: allocate(size)}
	return nil
}

// allocate makes the memory of words, not of bytes, so that a reference may use it as any element type.
func allocate(size uint64) []byte {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), int(size))
}

// importAlign is the alignment of the smallest element type of WGSL.
const importAlign = 4

func (d *device) ImportBuffer(id driver.BufferID, handle any) (uint64, error) {
	const op = "ImportBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Usable(op); err != nil {
		return 0, err
	}
	b, ok := handle.([]byte)
	if !ok {
		return 0, fail(op, fault.ErrForeign, "the Go oracle takes a []byte")
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%importAlign != 0 {
		return 0, fail(op, fault.ErrInvalid, "the bytes do not begin at a multiple of 4")
	}
	size := uint64(len(b))
	if err := d.objects.AddBuffer(id, size, false, true); err != nil {
		return 0, err
	}
	d.buffers[id] = buffer{b[:size:size], true}
	return size, nil
}

// Imported looks for the very bytes.
func (d *device) Imported(handle any) (driver.BufferID, bool) {
	b, ok := handle.([]byte)
	if !ok {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, o := range d.buffers {
		if o.imported && len(o.bytes) == len(b) && unsafe.SliceData(o.bytes) == unsafe.SliceData(b) {
			return id, true
		}
	}
	return 0, false
}

// DestroyBuffer leaves the bytes to the garbage collector.
func (d *device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Usable(op); err != nil {
		return err
	}
	if _, ok := handle.([]byte); !ok {
		return fail(op, fault.ErrForeign, "the Go oracle takes a []byte")
	}
	return nil
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
	if !d.objects.DropBuffer(id) {
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
	if err := d.objects.AddKernel(id, k); err != nil {
		return err
	}
	own := *k
	d.kernels[id] = &own
	return nil
}

func (d *device) FreeKernel(id driver.KernelID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects.DropKernel(id) {
		delete(d.kernels, id)
	}
}

func (d *device) Submit(l *driver.CommandList) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := cmp.Or(d.objects.Usable("Submit"), d.stageable("Submit", l)); err != nil {
		return err
	}
	if err := d.objects.Check(l); err != nil {
		return err
	}
	d.push(d.record(l))
	d.throttle()
	return nil
}

func (d *device) Read(ctx context.Context, t driver.Transfer) error {
	return d.run(ctx, "Read", func(j *job) error {
		foreign, ok := t.Host.Foreign.(copier)
		if t.Host.Foreign != nil && !ok {
			return fail("Read", fault.ErrUnsupported, "the Go oracle reads into Go memory only")
		}
		if err := d.objects.CheckRead(t); err != nil {
			return err
		}
		if n := t.Span(); n > 0 {
			src := d.span(t.Buffer, t.Offset, uint64(n))
			store := func(at int, row []byte) { copy(t.Host.Mem()[at:], row) }
			if ok {
				store = func(at int, row []byte) { foreign.Store(t.Host.Offset+at, row) }
			}
			j.steps = []step{{do: func() { copyRows(store, src, t) }}}
		}
		return nil
	})
}

func copyRows(store func(at int, row []byte), src []byte, t driver.Transfer) {
	for i := range t.Count {
		at := i * t.Pitch
		store(t.HostOffset+at, src[at:at+t.Width])
	}
}

func (d *device) Wait(ctx context.Context) error {
	return d.run(ctx, "Wait", func(*job) error { return nil })
}

// run queues a job that prepare completes under the lock, and waits for it.
func (d *device) run(ctx context.Context, op string, prepare func(*job) error) error {
	j := new(job)
	d.mu.Lock()
	err := d.ready(ctx, op)
	if err == nil {
		err = prepare(j)
	}
	if err == nil {
		d.push(j)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.await(ctx, op, j)
}

// Map notes the mapping before it waits, so that no list that names the buffer can slip in between.
func (d *device) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	const op = "Map"
	var b []byte
	noted := false
	err := d.run(ctx, op, func(*job) error {
		if err := d.objects.Map(id, offset, size); err != nil {
			return err
		}
		b, noted = d.buffers[id].bytes, true
		return nil
	})
	if !noted {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	same := unsafe.SliceData(d.buffers[id].bytes) == unsafe.SliceData(b)
	if err == nil && !same {
		return nil, fail(op, fault.ErrClosed, "the buffer was freed meanwhile")
	}
	if err != nil {
		if same {
			_ = d.objects.Unmap(id) // fails only where a mapping no longer matters: the device is closed or lost
		}
		return nil, err
	}
	return b[offset:][:size:size], nil
}

func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects.Unmap(id)
}

func (d *device) Lost() <-chan struct{} { return d.lost }

func (d *device) LostReason() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects.Reason()
}

// Close drops what has not run yet and waits for the command that is running: after it nothing touches imported bytes
// or the destination of a Read any more.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects.Close() {
		d.settle(fault.ErrClosed)
		d.buffers, d.kernels, d.sets, d.used = nil, nil, nil, 0
	}
	return nil
}

func num(v uint64) string { return strconv.FormatUint(v, 10) }
