// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

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
	d.mu.Lock()
	open, closed, lost, generation := d.open, d.gone(), d.lost(), d.generation.Load()
	d.mu.Unlock()
	switch {
	case closed:
		return fail(op, ErrClosed, "the device")
	case !lost:
		return nil
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
	return d.revive(drv, generation)
}

// fills reports whether a device grants what this one was said to.
func (d *Device) fills(i AdapterInfo) bool {
	was, is := d.info.Limits, i.Limits
	return is.MaxBufferSize >= was.MaxBufferSize && is.MaxBindingSize >= was.MaxBindingSize &&
		is.MaxStorageBuffers >= was.MaxStorageBuffers && is.MaxGroups >= was.MaxGroups &&
		is.MaxInvocations >= was.MaxInvocations && is.MaxWorkgroupMemory >= was.MaxWorkgroupMemory &&
		i.Features.Has(d.info.Features)
}

// revive goes on with another device of the driver's, unless somebody else was faster.
func (d *Device) revive(drv driver.Device, generation uint32) error {
	d.mu.Lock()
	if d.closed || d.generation.Load() != generation {
		closed := d.closed
		d.mu.Unlock()
		err := drv.Close()
		if closed {
			return fail("Reopen", ErrClosed, "the device")
		}
		return err
	}
	old := d.drv
	d.drv = drv
	d.generation.Add(1)
	d.batch = batch{epoch: d.batch.epoch + 2}
	d.pool = pool{limit: d.pool.limit}
	d.sets, d.kernels = setCache{}, kernelCache{}
	d.buffers, d.imports = idTable[driver.BufferID]{}, nil
	s := &d.stats
	s.LiveBytes, s.PooledBytes, s.Buffers, s.Kernels = 0, 0, 0, 0
	if d.back != nil {
		close(d.back)
		d.back = nil
	}
	d.mu.Unlock()
	return old.Close()
}

// Reopened returns a channel that is closed when the device comes back the next time. To miss no loss, ask for it before
// [Device.Lost].
func (d *Device) Reopened() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.back == nil {
		d.back = make(chan struct{})
	}
	return d.back
}

// Generation counts how often the device came back. Layers that keep kernels or buffers of theirs make new ones when it changes.
func (d *Device) Generation() uint32 { return d.generation.Load() }
