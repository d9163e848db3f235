// SPDX-License-Identifier: Apache-2.0

package gpu

// NBody is the benchmark of [Selection.Rank].
var NBody = nbody

// LimitPool sets how many bytes of closed buffers a device keeps.
func LimitPool(d *Device, bytes uint64) { d.poolLimit = bytes }
