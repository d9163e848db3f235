// SPDX-License-Identifier: Apache-2.0

// Package cpu is the oracle: a driver that runs kernels through their reference implementations in Go.
//
// It is the reference that the tests compare real devices with, and the device of last resort where there is no WebGPU.
// It compiles no WGSL: a kernel without a [driver.Kernel.Reference] is fault.ErrUnsupported.
//
// # Memory
//
// Buffers are Go memory, aligned to 8 bytes and counted against a budget. Running out of memory cannot be
// recovered from in Go, so what is beyond that budget is refused before it is allocated. [driver.Device.Handle]
// returns the bytes themselves and [driver.Device.ImportBuffer] takes a []byte, which is used in place and never freed;
// such bytes may be read and written while no submitted work uses them.
//
// # Execution
//
// Lists run one after another on a goroutine that exists only while there is work. Several devices run side by side.
//
// A reference that panics loses its device, as a crashing shader does on a GPU: half of its results may be written, so nothing
// after it may run. Calls then return fault.ErrDeviceLost and [driver.Device.LostReason] names the kernel. What no
// driver can survive is a panic in a goroutine that the reference started, and what the Go runtime calls a fatal error.
//
// In a page everything shares one thread. The goroutine lets the page run between commands, but a single long kernel
// holds it up; load the program in a worker to avoid that.
package cpu
