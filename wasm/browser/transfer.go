// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Read implements [driver.Device]. Several reads may be under way at once; each has a staging buffer of its own.
func (d *device) Read(ctx context.Context, t driver.Transfer) (err error) {
	const op = "browser: Read"
	defer rescue(op, &err)
	w, skip, err := d.startRead(op, t)
	if err != nil || w == nil {
		return err
	}
	_, err = d.promises.await(ctx, op, w)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.outcome(op, err); err != nil {
		d.discard(w.ticket)
		return err
	}
	defer d.discard(w.ticket)
	// JavaScript's memory may have been detached meanwhile.
	if err := checkHost(op, t.Host); err != nil {
		return err
	}
	d.engine.take(w.ticket, skip, t)
	return nil
}

// startRead begins a readback. Copies on the GPU go by words, so what is not aligned is read with the bytes around it,
// of which skip come first. It returns no wait where there is nothing to read.
func (d *device) startRead(op string, t driver.Transfer) (w *wait, skip int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.CheckRead(t); err != nil {
		return nil, 0, err
	}
	if err := checkHost(op, t.Host); err != nil {
		return nil, 0, err
	}
	from := t.Offset &^ 3
	to := (t.Offset + uint64(t.Span()) + 3) &^ 3
	if to > d.objects.BufferSize(t.Buffer) {
		return nil, 0, fault.Fail(op, fault.ErrUnsupported, "the last bytes of a buffer whose size is not a multiple of 4")
	}
	if err := d.usable(op); err != nil || t.Span() == 0 {
		return nil, 0, err
	}
	w = d.promises.wait()
	d.engine.read(w.ticket, t.Buffer, from, to-from)
	return w, int(t.Offset - from), nil
}

// Wait implements [driver.Device].
func (d *device) Wait(ctx context.Context) (err error) {
	const op = "browser: Wait"
	defer rescue(op, &err)
	w, err := d.startWait(op)
	if err != nil {
		return err
	}
	_, err = d.promises.await(ctx, op, w)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outcome(op, err)
}

func (d *device) startWait(op string) (*wait, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return nil, err
	}
	w := d.promises.wait()
	d.engine.idle(w.ticket)
	return w, nil
}
