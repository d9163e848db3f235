// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Device runs kernels on one processor. Open makes one; Close releases it and everything made with it.
type Device struct {
	info AdapterInfo
	conf config
	open func(context.Context) (driver.Device, error) // nil for a device that the caller made

	mu         sync.Mutex
	drv        driver.Device
	generation atomic.Uint32 // how often it came back after a loss; written under the lock
	back       chan struct{} // closed when it comes back again; nil while nobody asks
	closed     bool
	stats      Stats
	batch      batch
	pool       pool
	sets       setCache
	kernels    kernelCache
	buffers    idTable[driver.BufferID]
	imports    map[driver.BufferID]*imported

	attached sync.Map
}

func newDevice(drv driver.Device, c *config, open func(context.Context) (driver.Device, error)) *Device {
	d := &Device{drv: drv, info: c.lower(drv.Info()), conf: *c, open: open}
	d.pool.limit = defaultPool
	return d
}

// driver returns the driver's device for calls that are not made under the lock.
func (d *Device) driver() driver.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drv
}

// Info describes the adapter, with the limits and features that this device was granted.
func (d *Device) Info() AdapterInfo { return d.info }

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
	if drv, ok := d.driver().(drainer); ok {
		if err := drv.Drain(ctx); err != nil {
			return err
		}
	}
	if err := d.Flush(); err != nil {
		return err
	}
	return d.driver().Wait(ctx)
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
	d.stats.LiveBytes, d.stats.PooledBytes, d.stats.Buffers, d.stats.Kernels = 0, 0, 0, 0
	d.pool = pool{}
	d.mu.Unlock()
	if cerr := d.driver().Close(); err == nil {
		err = cerr
	}
	return err
}

// gone reports whether Close was called, or the device was never opened.
func (d *Device) gone() bool { return d.closed || d.drv == nil }

// lock locks a device that takes calls, or says why it does not.
func (d *Device) lock(op string) error {
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
	if d.lost() {
		return fail(op, ErrDeviceLost, d.drv.LostReason())
	}
	return nil
}

func (d *Device) lost() bool {
	if d.gone() {
		return false
	}
	select {
	case <-d.drv.Lost():
		return true
	default:
		return false
	}
}

// Usable returns nil for a device that takes calls, [ErrClosed] or [ErrDeviceLost] for one that does not. The zero value
// counts as a closed one.
func (d *Device) Usable() error {
	err := d.lock("Usable")
	if err == nil {
		d.mu.Unlock()
	}
	return err
}

// idTable hands out small numbers and takes them back.
type idTable[ID ~uint32] struct {
	next ID
	free []ID
}

func (t *idTable[ID]) take() ID {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		return id
	}
	t.next++
	return t.next
}

func (t *idTable[ID]) give(id ID) { t.free = append(t.free, id) }

// Attach returns the value that a layer above keeps with the device under the key, made by make at the first call. Such
// values live as long as the device.
func (d *Device) Attach(key any, make func() any) any {
	v, ok := d.attached.Load(key)
	if !ok {
		v, _ = d.attached.LoadOrStore(key, make())
	}
	return v
}
