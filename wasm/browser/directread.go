// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// read makes a staging buffer for every readback: this engine is for correctness.
func (d *direct) read(ticket int, id driver.BufferID, offset, size uint64) {
	var staging js.Value
	d.scoped("out-of-memory", func() {
		d.scoped("validation", func() {
			staging = d.makeBuffer(size, usageMapRead|usageCopyDst)
			encoder := d.fn.createCommandEncoder.Invoke()
			d.on.copyBuffer.Invoke(encoder, d.buffers[id].gpu, offset, staging, 0, size)
			d.fn.submit.Invoke([]any{d.on.finish.Invoke(encoder)})
		})
	})
	d.staging[ticket] = staging
	d.promises.follow(d.on.mapAsync.Invoke(staging, mapModeRead), ticket)
}

func (d *direct) take(ticket, skip int, t driver.Transfer) {
	from := uint8s.New(d.on.getMappedRange.Invoke(d.staging[ticket]))
	if t.Host.Foreign == nil {
		copyRows(t, from, skip)
		return
	}
	memory, at := memoryOf(t.Host.Foreign.(js.Value))
	for i := range t.Count {
		row := i * t.Pitch
		to := uint8s.New(memory, at+t.Host.Offset+t.HostOffset+row, t.Width)
		d.on.setBytes.Invoke(to, from.Call("subarray", skip+row, skip+row+t.Width))
	}
}

func (d *direct) drop(ticket int) {
	if staging, ok := d.staging[ticket]; ok {
		d.on.destroy.Invoke(staging)
		delete(d.staging, ticket)
	}
}

// idle takes as many turns of the event loop as lost does, so that a loss that ends the work is known first.
func (d *direct) idle(ticket int) {
	done := d.device.Get("queue").Call("onSubmittedWorkDone")
	d.promises.follow(promise.Call("all", []any{done}), ticket)
}

// lost follows a race between the loss of the device and close, because the device may be the caller's and outlive this
// engine, whose callback it would keep.
func (d *direct) lost(ticket int) {
	executor := js.FuncOf(func(_ js.Value, args []js.Value) any {
		d.stop = args[0]
		return nil
	})
	closing := promise.New(executor) // calls the executor at once
	executor.Release()
	d.promises.follow(promise.Call("race", []any{d.device.Get("lost"), closing}), ticket)
}

func (d *direct) close() {
	for id := range d.owned {
		d.freeBuffer(id)
	}
	for ticket := range d.staging {
		d.drop(ticket)
	}
	if d.paramsSize > 0 {
		d.on.destroy.Invoke(d.params)
	}
	d.stop.Invoke()
}
