// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"runtime"
	"sync"
	"time"

	"github.com/gogpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/pool"
)

var _ driver.Device = (*device)(nil)

// device is an open or an adopted device. Its lock is held during every call of the library but compilations.
type device struct {
	driver.Objects
	dev    *wgpu.Device
	own    bool
	vulkan bool

	mu       sync.Mutex
	buffers  map[driver.BufferID]*buffer
	kernels  map[driver.KernelID]*wgpu.ComputePipeline
	sets     map[driver.BindingsID]*set
	layouts  map[driver.Layout]*layout
	params   *wgpu.Buffer // holds the parameter blocks of the list at hand
	fresh    []*buffer    // made since the last submission, and not zeroed yet
	last     uint64       // the last submission
	garbage  []garbage    // in the order of the submissions
	staging  pool.Pool    // of *wgpu.Buffer
	compiles sync.WaitGroup
}

type buffer struct {
	*wgpu.Buffer
	imported bool
	fresh    bool // nothing was written to it
}

// garbage is released once a submission is done.
type garbage struct {
	release func()
	after   uint64
}

func newDevice(dev *wgpu.Device, info driver.AdapterInfo, own bool) *device {
	return &device{
		Objects: driver.NewObjects(info),
		dev:     dev,
		own:     own,
		vulkan:  overVulkan(dev),
		buffers: map[driver.BufferID]*buffer{},
		kernels: map[driver.KernelID]*wgpu.ComputePipeline{},
		sets:    map[driver.BindingsID]*set{},
		layouts: map[driver.Layout]*layout{},
	}
}

// lock locks the device for an operation, or says why it cannot go on.
func (d *device) lock(op string) error {
	d.mu.Lock()
	err := d.Usable(name + ": " + op)
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

// lose is how a call goes on in which the library failed half way: what was submitted is not known, so that nothing can be relied on.
func (d *device) lose(op string, err error) error {
	d.SetLost("the library failed: " + err.Error())
	return d.Usable(name + ": " + op)
}

// rescue loses the device where the library panicked.
func (d *device) rescue(op string, err *error) {
	if p := recover(); p != nil {
		d.SetLost("the library panicked: " + fault.Panic(p))
		*err = d.Usable(name + ": " + op)
	}
}

// discard releases something once what was submitted is done.
func (d *device) discard(release func()) { d.garbage = append(d.garbage, garbage{release, d.last}) }

// collect releases what is no longer needed and tells which submissions are done.
func (d *device) collect() (done uint64) {
	done = d.dev.Queue().Poll()
	n := 0
	for ; n < len(d.garbage) && d.garbage[n].after <= done; n++ {
		d.garbage[n].release()
	}
	clear(d.garbage[:n])
	d.garbage = d.garbage[n:]
	return done
}

const usage = wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) (err error) {
	const op = "NewBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	if err := d.AddBuffer(id, size, mappable, false); err != nil {
		return err
	}
	d.collect()
	b, err := d.dev.CreateBuffer(&wgpu.BufferDescriptor{Size: size, Usage: usage})
	if err != nil {
		d.DropBuffer(id)
		return fail(op, fault.ErrNoMemory, err.Error())
	}
	d.buffers[id] = &buffer{Buffer: b, fresh: true}
	d.fresh = append(d.fresh, d.buffers[id])
	return nil
}

// foreign returns the buffer of this device that a caller's handle stands for.
func (d *device) foreign(op string, handle any) (*wgpu.Buffer, error) {
	if err := d.Usable(name + ": " + op); err != nil {
		return nil, err
	}
	b, ok := handle.(*wgpu.Buffer)
	if !ok || b == nil {
		return nil, fail(op, fault.ErrForeign, "not a *wgpu.Buffer of github.com/gogpu/wgpu")
	}
	if !belongs(b, d.dev) {
		return nil, fail(op, fault.ErrForeign, "a buffer of another device")
	}
	return b, nil
}

func (d *device) ImportBuffer(id driver.BufferID, handle any) (known driver.BufferID, size uint64, err error) {
	const op = "ImportBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	b, err := d.foreign(op, handle)
	if err != nil {
		return 0, 0, err
	}
	for known, o := range d.buffers {
		if o.imported && o.Buffer == b {
			return known, b.Size(), nil
		}
	}
	if b.Usage()&usage != usage || b.MapState() != wgpu.MapStateUnmapped {
		return 0, 0, fail(op, fault.ErrInvalid, "a buffer that is mapped, destroyed, or not usable as storage and for copies")
	}
	if err := d.AddBuffer(id, b.Size(), false, true); err != nil {
		return 0, 0, err
	}
	d.buffers[id] = &buffer{Buffer: b, imported: true}
	return id, b.Size(), d.zero()
}

func (d *device) DestroyBuffer(handle any) (err error) {
	const op = "DestroyBuffer"
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	b, err := d.foreign(op, handle)
	if err != nil {
		return err
	}
	for _, o := range d.buffers {
		if !o.imported && o.Buffer == b {
			return fail(op, fault.ErrInvalid, "the buffer is Sublet's own")
		}
	}
	for id, o := range d.buffers {
		if o.imported && o.Buffer == b {
			d.DropBuffer(id)
			delete(d.buffers, id)
		}
	}
	if b.MapState() == wgpu.MapStateMapped {
		_ = b.Unmap() // it is mapped
	}
	d.discard(b.Release)
	return nil
}

func (d *device) FreeBuffer(id driver.BufferID) {
	var err error
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue("FreeBuffer", &err)
	if !d.DropBuffer(id) || d.Usable("") != nil {
		return
	}
	b := d.buffers[id]
	delete(d.buffers, id)
	b.fresh = false
	if !b.imported {
		d.discard(b.Release)
	}
	d.collect()
}

// Handle returns a *wgpu.Buffer or the *wgpu.Device.
func (d *device) Handle(id driver.BufferID) (handle any) {
	var err error
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue("Handle", &err)
	if id == 0 {
		return d.dev
	}
	if b := d.buffers[id]; b != nil && d.zero() == nil {
		return b.Buffer
	}
	return nil
}

// Close does not wait for work that is running. What the work needs is released when it is done.
func (d *device) Close() error {
	d.mu.Lock()
	first := d.Objects.Close()
	d.mu.Unlock()
	if !first {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.reap()
	}()
	select {
	case <-done:
	case <-time.After(closeGrace):
	}
	return nil
}

// closeGrace lets a device that has nothing to do be gone when Close returns.
const closeGrace = time.Second

// reap releases a closed device once its work is done. After a panic or a failure inside the library its state is not known, and
// what it has is left alone.
func (d *device) reap() {
	var err error
	defer d.rescue("Close", &err)
	d.compiles.Wait()
	for w := (wait{}); !d.idle(); w.pause() {
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.LostReason() != "" {
		return
	}
	d.releaseAll()
	if d.own {
		d.dev.Release()
	}
}

func (d *device) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.LostReason() != "" || d.collect() >= d.last
}

func (d *device) releaseAll() {
	for _, s := range d.sets {
		s.release(d)
	}
	for _, b := range d.buffers {
		if !b.imported {
			b.Release()
		}
	}
	for _, k := range d.kernels {
		k.Release()
	}
	for _, l := range d.layouts {
		l.pipelines.Release()
		l.groups.Release()
	}
	if d.params != nil {
		d.params.Release()
	}
	for s := d.staging.Evict(0); s != nil; s = d.staging.Evict(0) {
		s.(*wgpu.Buffer).Release()
	}
	d.collect()
	d.buffers, d.kernels, d.sets, d.layouts, d.fresh = nil, nil, nil, nil, nil
}

// wait is how long somebody has waited.
type wait struct{ start time.Time }

const (
	spin     = 100 * time.Microsecond // with a core that a software adapter would have use for
	maxPause = time.Millisecond
)

// pause lets others run, and then sleeps: the longer it took so far, the longer.
func (w *wait) pause() {
	if w.start.IsZero() {
		w.start = time.Now()
	}
	if spent := time.Since(w.start); spent > spin {
		time.Sleep(min(spent/8, maxPause))
		return
	}
	runtime.Gosched()
}
