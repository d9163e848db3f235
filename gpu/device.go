// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/pool"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// Device runs kernels on one processor. Open makes one; Close releases it and everything made with it.
type Device struct {
	info AdapterInfo
	conf config
	open func(context.Context) (driver.Device, error) // nil for a device that the caller made

	mu         sync.Mutex
	generation atomic.Uint32 // how often it came back after a loss; written under the lock
	back       chan struct{} // closed when it comes back again; nil while nobody asks
	closed     bool
	stats      Stats
	poolLimit  uint64
	together   int // calls of Together that have not ended
	state

	attached sync.Map
}

// state is what belongs to one generation of a device, which is a device of the driver's.
type state struct {
	drv       driver.Device
	queue     *queue
	batch     batch
	pool      pool.Pool // of *memory
	buffers   idTable
	memories  map[driver.BufferID]*memory
	sets      map[string]*set
	setIDs    idTable
	key       []byte                  // of the set that was looked up last
	kernels   map[string]*kernelEntry // by source, those with references
	kernelIDs idTable
	unsettled []*memory // what batches write that may be refused
	sent      launches  // of the last batch that had any
	toldLoss  bool      // it was logged
	short     error     // why there was no memory for a buffer that had been made, until a wait succeeds
}

// start begins a generation, with empty caches and no buffers.
func (d *Device) start(drv driver.Device) {
	d.state = state{
		drv: drv, queue: &queue{drv: drv, turn: turn.New(), next: 1}, batch: batch{epoch: 1}, memories: map[driver.BufferID]*memory{},
		sets: map[string]*set{}, kernels: map[string]*kernelEntry{},
	}
	d.stats.LiveBytes, d.stats.Buffers, d.stats.Kernels = 0, 0, 0
}

func newDevice(drv driver.Device, c *config, open func(context.Context) (driver.Device, error)) *Device {
	info := drv.Info()
	if l := &info.Limits; c.largest > 0 {
		l.MaxBufferSize, l.MaxBindingSize = min(l.MaxBufferSize, c.largest), min(l.MaxBindingSize, c.largest)
	}
	d := &Device{info: info, conf: *c, open: open, poolLimit: defaultPool}
	d.start(drv)
	if d.logs(logCalls) && d.conf.logger == nil {
		d.conf.logger = defaultLogger(info.Name)
	}
	d.tell(logCalls, "device opened", "adapter", info.Name, "driver", info.Driver)
	return d
}

// orClosed returns the device, or a closed one if it is nil.
func (d *Device) orClosed() *Device {
	if d == nil {
		return new(Device)
	}
	return d
}

// driver returns the driver's device for calls that are not made under the lock.
func (d *Device) driver() driver.Device {
	d = d.orClosed()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drv
}

// Info describes the adapter, with the limits and features that this device was granted.
func (d *Device) Info() AdapterInfo { return d.orClosed().info }

// Budget returns how many bytes of buffers the device may have at once, see [WithMemory], or 0 where there is no limit.
func (d *Device) Budget() uint64 { return d.orClosed().conf.memory }

// Handle returns the platform's device: a *wgpu.Device natively, a js.Value of a GPUDevice in a page, nil for the
// oracle. It belongs to Sublet; use it to make buffers for [Device.ImportBuffer]. Call [Device.Flush] before submitting
// work of your own that needs what was queued here.
func (d *Device) Handle() any {
	if drv := d.driver(); drv != nil {
		return drv.Handle(0)
	}
	return nil
}

// Lost returns a channel that is closed when the device is lost. [Device.Usable] then says why. See [Device.Reopen].
func (d *Device) Lost() <-chan struct{} {
	if drv := d.driver(); drv != nil {
		return drv.Lost()
	}
	return nil
}

// Flush submits what is queued to the driver without waiting until it is done. With drivers that run one submission at a time, as
// llvmpipe does, it waits for earlier submissions.
func (d *Device) Flush() error { return d.FlushContext(context.Background()) }

// FlushContext is Flush that waits no longer than the context lasts. What it could not submit stays queued.
func (d *Device) FlushContext(ctx context.Context) error {
	const op = "Flush"
	if err := fault.Ended(ctx, "gpu: "+op); err != nil {
		return err
	}
	if err := d.lock(op); err != nil {
		return err
	}
	d.mu.Unlock()
	return named(op, d.flush(ctx))
}

// Sync returns when everything called before is done.
func (d *Device) Sync(ctx context.Context) error {
	const op = "Sync"
	if err := d.lock(op); err != nil {
		return err
	}
	q := d.queue
	d.mu.Unlock()
	err := fault.Ended(ctx, "gpu: "+op)
	if err == nil {
		err = d.flush(ctx)
	}
	if err == nil {
		d.mu.Lock()
		before := q.next
		d.mu.Unlock()
		err = q.drv.Wait(ctx)
		d.waited(q, before, err)
	}
	return d.outcome(op, q.drv, err)
}

// outcome returns the error of a driver's call. If the device is lost it is [ErrDeviceLost], also if the call found it closed because it
// was reopened meanwhile.
func (d *Device) outcome(op string, drv driver.Device, err error) error {
	if reason := drv.LostReason(); reason != "" && (errors.Is(err, ErrClosed) || errors.Is(err, ErrDeviceLost)) {
		d.mu.Lock()
		err = d.lost(op, reason)
		d.mu.Unlock()
	}
	return named(op, err)
}

// grace is how long Close waits for a busy device.
var grace = 3 * time.Second

// Close flushes, then releases the device, its buffers and its kernels. Later calls do nothing. A device that was given
// to [WithDevice] stays open.
//
// It does not wait for submitted work. If what is queued cannot be submitted because earlier work does not end, Close drops it after some
// seconds and returns context.DeadlineExceeded. The device's memory is then released when the work ends.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	if d.gone() {
		d.mu.Unlock()
		return nil
	}
	drv := d.drv
	d.mu.Unlock()
	ctx := context.Background()
	if waits {
		l := &limit{ctx, make(chan struct{}), context.DeadlineExceeded}
		defer time.AfterFunc(grace, func() { close(l.done) }).Stop()
		ctx = l
	}
	err := d.flush(ctx)
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.note("device closed", "bytes", d.stats.LiveBytes, "submissions", d.stats.Submissions)
	d.closed = true
	d.start(d.drv)
	d.mu.Unlock()
	if !waits {
		return named("Close", cmp.Or(err, drv.Close()))
	}
	closed := make(chan error, 1)
	go func() { closed <- drv.Close() }()
	select {
	case cerr := <-closed:
		return named("Close", cmp.Or(err, cerr))
	case <-ctx.Done():
		return named("Close", cmp.Or(err, ctx.Err()))
	}
}

// gone reports whether the device is closed or was never opened.
func (d *Device) gone() bool { return d.closed || d.drv == nil }

// lock locks a usable device, or returns why it is not usable.
func (d *Device) lock(op string) error {
	d = d.orClosed()
	d.mu.Lock()
	err := d.usable(op)
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

func (d *Device) usable(op string) error {
	if d.gone() {
		return fail(op, ErrClosed, "the device")
	}
	select {
	case <-d.drv.Lost():
		err := d.lost(op, d.drv.LostReason())
		if !d.toldLoss {
			d.toldLoss = true
			d.warn("device lost", err.Error())
		}
		return err
	default:
		return nil
	}
}

// Usable returns nil for a device that takes calls, [ErrClosed] or [ErrDeviceLost] for one that does not. The zero value
// counts as a closed one, and so does nil.
func (d *Device) Usable() error {
	err := d.lock("Usable")
	if err == nil {
		d.mu.Unlock()
	}
	return err
}

// Attach returns the value that a layer above keeps with the device under the key, made by make at the first call. Such
// values live as long as the device. A key that cannot be compared keeps nothing.
func (d *Device) Attach(key any, make func() any) any {
	if d = d.orClosed(); make == nil {
		make = func() any { return nil }
	}
	if !isComparable(key) {
		return make()
	}
	v, ok := d.attached.Load(key)
	if !ok {
		v, _ = d.attached.LoadOrStore(key, make())
	}
	return v
}

func isComparable(key any) (ok bool) {
	defer func() { ok = recover() == nil }()
	return key == key // panics if not
}

// Reopen brings a lost device back: it opens the adapter again. A device that the caller made needs [WithDevice] with its
// successor; other options have no effect. Where the device is not lost there is nothing to do.
//
// Its former buffers and kernels are [ErrDeviceLost]. Wrapped memory, and matrices of it, whose results were synced are uploaded again when
// they are next used. Elements that only the device had are an error until all of them are replaced, or Touch is called for wrapped
// memory. Natively the memory of a lost GPU, some 5 MB and its buffers, is not released: wgpu-native polls a device to release it, which
// ends the process if the system's driver has lost the device, too. The memory of software adapters is released.
func (d *Device) Reopen(ctx context.Context, opts ...Option) error {
	const op = "Reopen"
	c, err := newConfig(opts)
	if err != nil {
		return err
	}
	d = d.orClosed()
	d.mu.Lock()
	open, usable := d.open, d.usable(op)
	d.mu.Unlock()
	switch {
	case !errors.Is(usable, ErrDeviceLost):
		return usable
	case c.handle != nil:
		open = func(ctx context.Context) (driver.Device, error) { return adopt(ctx, d.info.Driver, c.handle) }
	case open == nil:
		return fail(op, ErrInvalid, "the device is the caller's: WithDevice names its successor")
	}
	drv, err := open(ctx)
	if err != nil {
		return named(op, err)
	}
	if !d.fills(drv.Info()) {
		return errors.Join(fail(op, ErrLimit, "the successor has lower limits, or lacks a feature"), drv.Close())
	}
	d.mu.Lock()
	if usable = d.usable(op); !errors.Is(usable, ErrDeviceLost) { // somebody else was faster, or closed the device
		d.mu.Unlock()
		return errors.Join(usable, drv.Close())
	}
	old := d.drv
	d.start(drv)
	d.generation.Add(1)
	d.tell(logCalls, "device reopened", "adapter", d.info.Name, "driver", d.info.Driver)
	if d.back != nil {
		close(d.back)
		d.back = nil
	}
	d.mu.Unlock()
	return old.Close()
}

// fills reports whether an adapter's limits and features are at least those of this device.
func (d *Device) fills(i AdapterInfo) bool {
	was, is := d.info.Limits, i.Limits
	return is.MaxBufferSize >= was.MaxBufferSize && is.MaxBindingSize >= was.MaxBindingSize &&
		is.MaxStorageBuffers >= was.MaxStorageBuffers && is.MaxGroups >= was.MaxGroups &&
		is.MaxInvocations >= was.MaxInvocations && is.MaxWorkgroupMemory >= was.MaxWorkgroupMemory &&
		i.Features.Has(d.info.Features)
}

// Reopened returns a channel that is closed when the device comes back the next time. To miss no loss, ask for it before
// [Device.Lost].
func (d *Device) Reopened() <-chan struct{} {
	d = d.orClosed()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.back == nil {
		d.back = make(chan struct{})
	}
	return d.back
}

// Generation counts how often the device came back. Layers that keep kernels or buffers of theirs make new ones when it changes.
func (d *Device) Generation() uint32 { return d.orClosed().generation.Load() }

// Stats counts what a device has done since it was opened, and what it holds. Bytes are those of the data, not of the
// driver's own bookkeeping.
type Stats struct {
	BytesUp      uint64 // host to device
	BytesDown    uint64 // device to host
	Submissions  uint64 // lists handed to the driver
	Dispatches   uint64 // kernels run
	Compilations uint64 // kernels compiled because they were needed
	Prepared     uint64 // kernels compiled ahead of need
	CacheHits    uint64 // kernels found compiled
	LiveBytes    uint64 // of buffers in use now, external ones not counted
	PeakBytes    uint64 // the most LiveBytes ever was
	PooledBytes  uint64 // of closed buffers kept for reuse
	Buffers      int    // in use now, external ones counted
	Kernels      int    // compiled and held now
}

// Stats returns the counters as they are now.
func (d *Device) Stats() Stats {
	d = d.orClosed()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.PooledBytes = d.pool.Bytes
	return s
}
