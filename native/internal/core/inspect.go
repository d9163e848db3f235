// SPDX-License-Identifier: Apache-2.0

package core

import "github.com/sublet-gpu/sublet/gpu/driver"

// Inspection shows, and in part changes, the inside of a device. It is for tests: package ctest gets it from [Inspect].
type Inspection struct {
	Users       func() int                    // calls under way that use the device outside of its lock
	Strays      func() int                    // errors that no call waited for
	Claimed     func(id driver.BufferID) bool // whether a call of Map has the buffer
	Staging     func() uint64                 // bytes of the staging buffers that are kept
	TrimStaging func(limit uint64)            // releases staging buffers until limit bytes are kept
	SmallChunks func() (rowGap int)           // makes reads use the smallest staging buffers; rows with such a gap are read one by one
	Listed      func() bool                   // whether the driver keeps a listing for the next device
	Submissions func() uint64                 // how often the device has submitted to its queue
	Lose        func()                        // marks the device lost, where the library's callback would
	Pretend     func(buffer any) any          // makes a handle that says a buffer is this device's
}
