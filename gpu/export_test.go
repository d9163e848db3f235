// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// NBody is the benchmark of [Selection.Rank].
var NBody = nbody

// LimitPool sets how many bytes of closed buffers a device keeps.
func LimitPool(d *Device, bytes uint64) { d.poolLimit = bytes }

// Wrap puts something between a device and its driver's.
func Wrap(d *Device, wrap func(driver.Device) driver.Device) {
	d.drv = wrap(d.drv)
	d.queue.drv = d.drv
}

// SetGrace sets how long Close waits, and returns what takes that back.
func SetGrace(d time.Duration) (restore func()) {
	old := grace
	grace = d
	return func() { grace = old }
}

// KeepDrivers returns what takes back every Register after it.
func KeepDrivers() (restore func()) {
	old := linked()
	return func() {
		registering.Lock()
		defer registering.Unlock()
		drivers = old
	}
}
