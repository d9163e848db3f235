// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"context"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/memory"
	"github.com/sublet-gpu/sublet/internal/pool"
)

var _ driver.Device = (*device)(nil)

// device is an open or an adopted device. Its lock is held during every call into C except polls, which report no errors,
// and compilations on devices whose errors find their call by thread. With OpenGL there are no exceptions.
type device struct {
	driver.Objects
	lib     *library
	c       *C.core_device
	watch   *C.core_watch
	ours    any    // a handle of our own
	clear   func() // makes that handle one of a closed device
	handle  any    // the user's, if adopted, or ours
	own     bool
	from    *listing // where it was opened from, if it is our own
	adapter C.WGPUAdapter

	// A submission may block until the one before it is done, as it does with llvmpipe, and nobody can poll meanwhile.
	blocks bool
	done   uint64       // how many submissions of ours are known to be
	waited atomic.Int64 // the last wait, in nanoseconds
	holds  bool         // whether commands may be held back for a read
	unread *time.Timer  // submits them if the read does not come; nil before any were held back

	mu      *sync.Mutex // with OpenGL, one mutex for all devices
	openGL  bool
	buffers map[driver.BufferID]*buffer
	staging pool.Pool    // of *staging
	chunk   uint64       // the largest size of a staging buffer
	users   atomic.Int32 // calls under way that use c outside of the lock; they come under it
	guard   guard
	memory  space // of a software adapter

	last *C.core_signal // of a closed device, the end of what was submitted before
}

// opened has the devices of our own that are open, by WGPUDevice.
var opened sync.Map

// Origin returns the WGPUInstance and the WGPUAdapter that an open device of a driver's own, given as the binding's handle, is of. They
// belong to the device. Other devices have none.
func Origin(handle any) (instance, adapter unsafe.Pointer) {
	var ref unsafe.Pointer
	bindingOf(func(b *Binding) bool {
		r, ok := b.Device(handle)
		ref = r
		return ok
	})
	if d, ok := opened.Load(ref); ok {
		d := d.(*device)
		return unsafe.Pointer(d.from.instance), unsafe.Pointer(d.adapter)
	}
	return nil, nil
}

// newDevice takes over c and the listing it was opened from. handle is nil for a device of our own.
func (l *library) newDevice(
	ctx context.Context, c *C.core_device, info driver.AdapterInfo, handle any, from *listing, adapter C.WGPUAdapter,
) (driver.Device, error) {
	var raw C.core_adapter
	C.core_describe_device(c, &raw)
	info.Driver = l.Name
	grant(&info, &raw)
	d := &device{
		lib:     l,
		c:       c,
		watch:   C.core_watch_of(c),
		handle:  handle,
		own:     handle == nil,
		from:    from,
		adapter: adapter,
		mu:      new(sync.Mutex),
		buffers: map[driver.BufferID]*buffer{},
		memory:  space{buffers: memory.Meter{Foreign: true}, work: memory.Meter{Foreign: true}},
		chunk:   1 << (bits.Len64(max(minStaging, min(maxStaging, info.Limits.MaxBufferSize))) - 1),
	}
	d.ours, d.clear = l.NewDevice(unsafe.Pointer(C.core_handle(c)))
	if info.Backend == openGLBackend {
		d.openGL, d.mu = true, &l.openGLMutex
	}
	if d.own {
		d.handle = d.ours
		opened.Store(unsafe.Pointer(C.core_handle(c)), d)
	} else { // only this device knows the address
		runtime.AddCleanup(d, func(w *C.core_watch) { C.free(unsafe.Pointer(w)) }, d.watch)
	}
	return d, d.settle(ctx, info)
}

// settle finds out what is not known of the device's adapter.
func (d *device) settle(ctx context.Context, info driver.AdapterInfo) error {
	d.Objects = driver.NewObjects(info)
	if d.own && info.Vendor == "mesa" || info.Kind != driver.KindCPU && info.Kind != driver.KindUnknown {
		d.blocks = info.Limits.MaxLoopsPerInvoking > 0
		return nil
	}
	d.blocks = true // until it is known
	turns, err := d.measureLoops(ctx)
	if err != nil {
		_ = d.Close() // nothing was done with it
		return err
	}
	if info.Limits.MaxLoopsPerInvoking = turns; !d.own {
		found := d.lib.find("")
		info = identify(info, turns, found.adapters)
		found.release(d.lib)
	}
	d.Objects, d.blocks = driver.NewObjects(info), turns > 0
	return nil
}

// lock locks the device for an operation, or says why it cannot go on.
func (d *device) lock(op string) error {
	d.mu.Lock()
	err := d.alive(op)
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

// alive says why the device cannot go on. It needs no lock.
func (d *device) alive(op string) error {
	d.noticeLoss()
	return d.Usable(d.lib.Name + ": " + op)
}

// enter is lock for a call that may wait.
func (d *device) enter(ctx context.Context, op string) error {
	if err := fault.Ended(ctx, d.lib.Name+": "+op); err != nil {
		return err
	}
	return d.lock(op)
}

// noticeLoss looks whether a C call has found the device lost.
func (d *device) noticeLoss() {
	if d.isLost() {
		d.SetLost(cmp.Or(C.GoString(d.watch.reason), "lost"))
	}
}

func (d *device) isLost() bool {
	return atomic.LoadInt32((*int32)(unsafe.Pointer(&d.watch.lost))) != 0
}

// Close does not wait for work that is running. What the work needs is released when it is done.
func (d *device) Close() error {
	d.mu.Lock()
	d.noticeLoss()
	first := d.Objects.Close()
	if first && d.own {
		opened.CompareAndDelete(unsafe.Pointer(C.core_handle(d.c)), d)
	}
	d.clear()
	d.mu.Unlock()
	if !first {
		return nil
	}
	if !d.reap(time.Millisecond) {
		go d.reap(0)
	}
	return nil
}

// reap releases a closed device once nobody uses it and its work is done, and reports whether it did. It tries for so long,
// or with 0 forever.
func (d *device) reap(patience time.Duration) bool {
	p := d.backoff()
	for !d.idle() {
		if patience > 0 && time.Duration(p.spent) >= patience {
			return false
		}
		C.core_pause(&p)
	}
	d.release()
	return true
}

// idle reports whether a closed device can go.
func (d *device) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users.Load() > 0 {
		return false
	}
	if d.abandoned() {
		return true
	}
	if d.last == nil {
		var e C.core_error
		d.last = C.core_queue_done(d.c, &e)
		_ = d.take("Close", &e, fault.ErrInvalid) // out of memory: again later
		return false
	}
	if C.core_poll(d.c, d.last) == 0 {
		return false
	}
	C.core_signal_free(d.last)
	d.last = nil
	if C.core_flush(d.c) != 0 { // a device whose writes were never submitted would never be freed
		return false
	}
	return !d.own || C.core_poll(d.c, nil) != 0 // others may have submitted to our queue, too
}

// abandoned reports whether the memory of the device has to be leaked. wgpu-native frees memory when it polls, and that is fatal if the system's
// driver has lost the device, which nothing else tells. Those of software adapters have no device to lose: wgpu-native takes every
// error of theirs that it does not know for the loss, and they go on.
func (d *device) abandoned() bool { return d.isLost() && d.Info().Kind != driver.KindCPU }

func (d *device) release() {
	if d.abandoned() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trimStaging(0)
	C.core_close(d.c, C.bool(d.openGL))
	d.c = nil
	d.from.release(d.lib)
	clear(d.buffers)
}

func (d *device) fail(op string, err error, detail ...string) error {
	return d.lib.fail(op, err, detail...)
}

func (d *device) take(op string, e *C.core_error, invalid error) error {
	return d.lib.taken(op, e, invalid)
}

// taken turns the error of a C call into one of Go and frees it. invalid is what a validation error means here.
func (l *library) taken(op string, e *C.core_error, invalid error) error {
	if e._type == 0 {
		return nil
	}
	text := ""
	if e.message != nil {
		text = tidy(C.GoString(e.message))
		C.free(unsafe.Pointer(e.message))
	}
	kind := e._type
	*e = C.core_error{}
	return l.fail(op, cmp.Or(kinds[kind], invalid), text)
}

// kinds are the errors that mean the same in every call.
var kinds = map[C.uint32_t]error{C.CORE_MEMORY: fault.ErrNoMemory, C.CORE_MAPPED: fault.ErrMapped, C.CORE_LOST: fault.ErrDeviceLost}

// tidy strips what every message of wgpu-native begins with and says twice. What is left is a chain of causes, a line
// each, and for a kernel that does not compile the lines of its source.
func tidy(message string) string {
	var kept []string
	for line := range strings.Lines(strings.TrimPrefix(message, "Validation Error\n\nCaused by:\n")) {
		line = strings.TrimRight(strings.TrimPrefix(line, "    "), " \n")
		if line == "" || strings.HasPrefix(strings.TrimSpace(line), "In wgpu") || strings.HasPrefix(line, "  note: label = ") {
			continue
		}
		repeats := func(k string) bool { return strings.HasSuffix(k, line) }
		if strings.Contains(line, "│") || !slices.ContainsFunc(kept, repeats) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
