// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// engine executes what a device has checked: with the helper, or without it. Calls are made under the device's lock,
// except close, and none waits: what takes time settles a ticket of the device's promises.
type engine interface {
	newBuffer(id driver.BufferID, size uint64)
	importBuffer(id driver.BufferID, buffer js.Value)
	buffer(id driver.BufferID) js.Value
	freeBuffer(id driver.BufferID)

	pipelineLayout(l driver.Layout) js.Value
	addKernel(id driver.KernelID, pipeline js.Value)
	freeKernel(id driver.KernelID)

	submit(l *driver.CommandList) error
	// read holds bytes of a buffer under the ticket until drop. Offset and size are multiples of 4.
	read(ticket int, id driver.BufferID, offset, size uint64)
	// take copies the rows of a transfer, which begin skip bytes into what was read, into host memory.
	take(ticket, skip int, t driver.Transfer)
	drop(ticket int)

	// idle settles the ticket when all work is done, lost when the device is lost, with the reason.
	idle(ticket int)
	lost(ticket int)
	close()
}
