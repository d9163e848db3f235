// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/pool"
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
	state

	attached sync.Map
}

// state is what belongs to one generation of a device, which is a device of the driver's.
type state struct {
	drv       driver.Device
	batch     batch
	pool      pool.Pool // of *memory
	buffers   idTable
	imports   map[driver.BufferID]*memory
	sets      map[string]*set
	setIDs    idTable
	key       []byte                  // of the set that was looked up last
	kernels   map[string]*kernelEntry // by source, those with references
	kernelIDs idTable
	unsettled []*memory // what batches write that may be refused
}

// start begins a generation. Nothing is left of the one before.
func (d *Device) start(drv driver.Device) {
	d.state = state{
		drv: drv, batch: batch{epoch: 1}, imports: map[driver.BufferID]*memory{},
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
	return d
}

// orClosed returns the device, or one that is closed in place of none.
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

// Flush hands what is queued to the driver and does not wait for it.
func (d *Device) Flush() error {
	if err := d.lock("Flush"); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.flush()
}

// drainer is a driver whose submissions wait for those before them, which cannot be called off.
type drainer interface {
	// Drain returns when a submission would not have to wait, or with the context's error.
	Drain(ctx context.Context) error
}

// Sync returns when everything called before is done.
func (d *Device) Sync(ctx context.Context) error {
	drv := d.driver()
	if busy, ok := drv.(drainer); ok {
		if err := busy.Drain(ctx); err != nil {
			return outcome("Sync", drv, err)
		}
	}
	if err := d.lock("Sync"); err != nil {
		return err
	}
	err, before, generation := d.flush(), d.batch.epoch, d.generation.Load()
	drv = d.drv // it may have come back while this waited
	d.mu.Unlock()
	if err == nil {
		err = drv.Wait(ctx)
		d.waited(generation, before, err)
	}
	return outcome("Sync", drv, err)
}

// outcome is a call's error from the driver: that of a lost device which came back meanwhile, and so was closed, is the loss.
func outcome(op string, drv driver.Device, err error) error {
	if errors.Is(err, ErrClosed) && drv.LostReason() != "" {
		return fail(op, ErrDeviceLost, drv.LostReason())
	}
	return err
}

// Close flushes, then releases the device, its buffers and its kernels. Later calls do nothing. A device that was given
// to [WithDevice] stays open.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	if d.gone() {
		d.mu.Unlock()
		return nil
	}
	err := d.flush()
	d.closed = true
	d.start(d.drv)
	d.mu.Unlock()
	return cmp.Or(err, d.driver().Close())
}

// gone reports whether Close was called, or the device was never opened.
func (d *Device) gone() bool { return d.closed || d.drv == nil }

// lock locks a device that takes calls, or says why it does not.
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
		return fail(op, ErrDeviceLost, d.drv.LostReason())
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
// Its buffers and kernels are gone, and say so: [ErrDeviceLost]. What the host has comes back by itself when it is next used:
// wrapped memory, and matrices of it, whose results were synced. What only the device had is an error until all of it is
// replaced, or the caller of wrapped memory says Touch.
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
		return err
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
	if d.back != nil {
		close(d.back)
		d.back = nil
	}
	d.mu.Unlock()
	return old.Close()
}

// fills reports whether a device grants what this one was said to.
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
