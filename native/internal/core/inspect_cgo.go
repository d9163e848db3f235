// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Inspect returns the inside of a device of this package, for tests. Devices of others have none.
func Inspect(dev driver.Device) Inspection {
	d, ok := dev.(*device)
	if !ok {
		return Inspection{}
	}
	return Inspection{
		Users:   func() int { return int(d.users.Load()) },
		Strays:  func() int { return int(atomic.LoadInt32((*int32)(unsafe.Pointer(&d.watch.strays)))) },
		Lose:    func() { atomic.StoreInt32((*int32)(unsafe.Pointer(&d.watch.lost)), 1) },
		Claimed: d.claimed,
		Submissions: func() uint64 {
			d.mu.Lock()
			defer d.mu.Unlock()
			return uint64(C.core_submissions(d.c))
		},
		Pretend: func(buffer any) any {
			ref, _ := d.lib.Buffer(buffer)
			return d.lib.NewBuffer(unsafe.Pointer(C.core_handle(d.c)), ref)
		},
		Staging:     func() uint64 { return d.staging.Bytes },
		TrimStaging: d.trimStaging,
		SmallChunks: func() int {
			d.chunk = minStaging
			return rowGap
		},
		Listed: func() bool {
			d.lib.mu.Lock()
			defer d.lib.mu.Unlock()
			return d.lib.newest != nil
		},
	}
}

func (d *device) claimed(id driver.BufferID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buffers[id] != nil && d.buffers[id].claim != nil
}
