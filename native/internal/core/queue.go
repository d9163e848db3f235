// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
import "C"

import (
	"context"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Submit runs a list in one call into C. An error that only the platform can find, such as a lack of memory for a write,
// leaves done what stood in the list before the write or the segment that failed.
func (d *device) Submit(list *driver.CommandList) error {
	const op = "Submit"
	if list == nil {
		return d.fail(op, fault.ErrInvalid, "no list")
	}
	if err := d.lockFor(op, list); err != nil {
		return err
	}
	defer d.mu.Unlock()
	for i := range list.Data {
		if list.Data[i].Foreign != nil {
			return d.fail(op, fault.ErrUnsupported, "host memory that is not Go's")
		}
	}
	if err := d.guard.told(); err != nil {
		return err
	}
	if err := d.Check(list); err != nil {
		return err
	}
	if len(list.Words) == 0 {
		return nil
	}
	if err := d.afford(op, listBytes(list)); err != nil {
		return err
	}
	// C sees the writes' memory as addresses of bytes that are pinned meanwhile.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	writes := make([]C.core_data, len(list.Data))
	for i := range list.Data {
		if size := list.Data[i].Size; size > 0 {
			p := unsafe.SliceData(list.Data[i].Mem())
			pinner.Pin(p)
			writes[i] = C.core_data{C.uintptr_t(uintptr(unsafe.Pointer(p))), C.uint64_t(size)}
		}
	}
	params := list.Params
	for len(params)%4 != 0 {
		params = append(slices.Clip(params), 0)
	}
	var e C.core_error
	if C.core_submit(d.c,
		(*C.uint32_t)(unsafe.SliceData(list.Words)), C.size_t(len(list.Words)),
		unsafe.Pointer(unsafe.SliceData(params)), C.size_t(len(params)), unsafe.SliceData(writes),
		C.bool(list.More), &e) {
		d.guard.submitted(list.Number)
	}
	if list.More {
		d.hold()
	}
	d.noticeLoss()
	return d.take(op, &e, fault.ErrInvalid)
}

// lockFor locks the device for a list's submission, once that would not block.
func (d *device) lockFor(op string, list *driver.CommandList) error {
	if !d.blocks || !submits(list) {
		return d.lock(op)
	}
	if err := d.flushHeld(op); err != nil {
		return err
	}
	return d.lockIdle(context.Background(), op)
}

// holdTime is how long commands are held back for a read that was announced.
const holdTime = time.Millisecond

// hold has what was held back submitted all the same if the read does not come, as its context has ended. It is called under the lock.
func (d *device) hold() {
	if d.holds = bool(C.core_holds(d.c)); !d.holds {
		return
	}
	if d.unread == nil {
		d.unread = time.AfterFunc(holdTime, func() { _ = d.flushHeld("Submit") })
	} else {
		d.unread.Reset(holdTime)
	}
}

// flushHeld submits the commands that are held back, if any are, once that would not block.
func (d *device) flushHeld(op string) error {
	d.mu.Lock()
	holds := d.holds
	if d.mu.Unlock(); !holds {
		return nil
	}
	err := d.lockIdle(context.Background(), op)
	if err == nil {
		d.holds = false
		C.core_flush(d.c)
		d.mu.Unlock()
	}
	return err
}

// listBytes is about what the library takes for a list: a copy of what is written, and some of each command.
func listBytes(list *driver.CommandList) uint64 {
	size := uint64(len(list.Params)) + 64*uint64(len(list.Words))
	for i := range list.Data {
		size += uint64(list.Data[i].Size)
	}
	return size
}

// Wait submits the writes that wait for it and returns when everything submitted so far is done.
func (d *device) Wait(ctx context.Context) error {
	const op = "Wait"
	if err := fault.Ended(ctx, d.lib.Name+": "+op); err != nil {
		return err
	}
	if err := d.lockIdle(ctx, op); err != nil {
		return err
	}
	C.core_flush(d.c)
	if d.guard.idle() {
		return d.awaitQueue(ctx, op)
	}
	d.users.Add(1)
	defer d.users.Add(-1)
	d.mu.Unlock()
	return d.fetch(ctx, op, C.core_span{}, func([]byte) {})
}

// submits reports whether a list does more than to define and forget binding sets.
func submits(list *driver.CommandList) bool {
	for c := range list.All() {
		if c.Op != driver.OpBind && c.Op != driver.OpUnbind {
			return true
		}
	}
	return false
}

// Drain returns when a submission would neither block nor keep others from polling. With a context that has ended it only finds out.
func (d *device) Drain(ctx context.Context) error {
	if !d.blocks {
		return nil
	}
	err := d.lockIdle(ctx, "Wait")
	if err == nil {
		d.mu.Unlock()
	}
	return err
}

// lockIdle locks the device for a submission, once it would not block: the submissions before it are done. Of the
// submissions that the owner of an adopted device makes, it waits for those made before the call.
func (d *device) lockIdle(ctx context.Context, op string) error {
	for known := d.own; ; known = true {
		if err := d.lock(op); err != nil {
			return err
		}
		n := uint64(C.core_submissions(d.c))
		if !d.blocks || known && d.done == n {
			return nil
		}
		if err := d.awaitQueue(ctx, op); err != nil {
			return err
		}
		d.mu.Lock()
		d.done = max(d.done, n)
		d.mu.Unlock()
	}
}

// ended is the context of those who do not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// freed unlocks the device. Then it submits what frees wait for, if that is much and would not block: otherwise a later call does.
func (d *device) freed() {
	much := bool(C.core_backlogged(d.c))
	d.mu.Unlock()
	if much && d.lockIdle(ended, "Free") == nil {
		C.core_flush(d.c)
		d.mu.Unlock()
	}
}

// awaitQueue unlocks the device and returns when what has been submitted is done.
func (d *device) awaitQueue(ctx context.Context, op string) error {
	var e C.core_error
	s := C.core_queue_done(d.c, &e)
	d.users.Add(1)
	defer d.users.Add(-1)
	d.mu.Unlock()
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		return err
	}
	_, err := d.await(ctx, op, s)
	return err
}

// await polls until the signal is raised and returns its status. The signal is then gone, and likewise if the wait ends
// early. Others may use the device meanwhile.
func (d *device) await(ctx context.Context, op string, s *C.core_signal) (ok bool, err error) {
	defer C.core_signal_free(s)
	p := d.backoff()
	for {
		if err := d.alive(op); err != nil { // to poll a lost device is fatal
			return false, err
		}
		if d.poll(ctx, s, &p) {
			d.waited.Store(int64(p.spent))
			return bool(s.ok), nil
		}
		if err := ctx.Err(); err != nil {
			return false, d.fail(op, err)
		}
	}
}

// poll waits a little, unless the context has ended, and reports whether the signal is raised.
func (d *device) poll(ctx context.Context, s *C.core_signal, p *C.core_backoff) bool {
	ended := ctx.Err() != nil
	if !d.openGL && !ended {
		return C.core_wait(d.c, s, p) != 0
	}
	d.mu.Lock()
	raised := C.core_poll(d.c, s) != 0
	d.mu.Unlock()
	if !raised && !ended {
		C.core_pause(p)
	}
	return raised
}

const (
	longSpin  = time.Millisecond
	shortSpin = 100 * time.Microsecond // where the CPU does the work that is waited for
)

// backoff starts a wait. Spinning takes a core from a software adapter, so that there, after a longer wait, which may
// well be followed by another one, sleep takes the place of the spin.
func (d *device) backoff() C.core_backoff {
	switch {
	case d.Info().Kind != driver.KindCPU:
		return C.core_backoff{spin: C.int64_t(longSpin)}
	case d.waited.Load() > int64(2*shortSpin):
		return C.core_backoff{first: C.int64_t(shortSpin)}
	}
	return C.core_backoff{spin: C.int64_t(shortSpin)}
}
