// SPDX-License-Identifier: Apache-2.0

// Package gpu opens devices and runs kernels on them.
//
//	dev, err := gpu.Open(ctx)
//	defer dev.Close()
//
// A [Device] collects commands and hands them to its driver in batches: a call such as [Kernel.Dispatch] returns as soon
// as the command is recorded. A batch is submitted by reads, by [Device.Sync] and [Device.Flush], or when it has become large.
// [Device.Stats] counts launches and the bytes that moved.
//
// Most programs use package matrix and need only [Open], [Adapters] and [Device] of this one. Programs with their own kernels use
// [Device.Kernel] and [Device.NewBuffer]; [Select] opens several devices.
//
// # Drivers
//
// Every device belongs to a driver. A program links the drivers that this module has for its platform. [Register] adds drivers from
// other modules, which implement package gpu/driver and pass the tests of package gpu/gputest. [Drivers] lists all.
//
// # Errors
//
// Errors wrap one of this package's sentinels in an [OpError], which names the call that failed; compare with errors.Is. No call
// panics. A call that fails has changed nothing. The errors of a batch that the driver refused, and of a lost device, name the kernels
// launched last.
//
// # Debugging
//
// [WithDebug], or the variable SUBLET_DEBUG=calls|kernels|wgsl, logs what a device does; [WithLogger] sets where the log goes. GPU
// objects have labels for debugging tools: a kernel its own, any other "sublet" and its purpose.
//
// # Devices and goroutines
//
// All methods may be called from several goroutines; every call is one step, in some order. Several devices may be open
// at once, also of one adapter. Objects of one device given to another are [ErrForeign].
//
// # Kernels that do not end
//
// A context ends the wait of a call, but no platform can stop a kernel that has begun. GPUs and browsers have a watchdog: after some
// seconds the device is lost, [ErrDeviceLost], and can be opened again with [Device.Reopen]. On llvmpipe each loop ends after 65,535
// iterations; a kernel runs until then, or until the process ends, and later work of the device waits for it. The same holds for the
// library's own kernels on the driver "cpu". The driver "simd" ends a workgroup that has spent some seconds in loops, and its batch is
// [ErrLimit]; Close ends its kernels. Natively a workgroup cannot be interrupted in between, so a garbage collection of Go may have
// to wait for it.
package gpu

import "github.com/sublet-gpu/sublet/internal/fault"

// OpError says which operation failed, on what, and why.
type OpError = fault.OpError

// The errors of this package and of the drivers.
var (
	ErrClosed      = fault.ErrClosed      // use after Close
	ErrCompile     = fault.ErrCompile     // WGSL that does not compile; the message names the line
	ErrDeviceLost  = fault.ErrDeviceLost  // the device is gone: unplugged, reset, or closed by its owner
	ErrForeign     = fault.ErrForeign     // an object of another device
	ErrInvalid     = fault.ErrInvalid     // an argument that is never right
	ErrLimit       = fault.ErrLimit       // beyond a limit of the device
	ErrMapped      = fault.ErrMapped      // the buffer is mapped just now
	ErrNoAdapter   = fault.ErrNoAdapter   // no adapter fits the options
	ErrNoMemory    = fault.ErrNoMemory    // out of device memory, or over the limit given to Open
	ErrReadOnly    = fault.ErrReadOnly    // memory that nothing may be written to
	ErrUnsupported = fault.ErrUnsupported // the device cannot do that
)

func fail(op string, err error, detail ...any) error {
	return fault.Fail("gpu: "+op, err, fault.Text(detail...))
}

// named returns a driver's error, or nil, under the name of this package's call.
func named(op string, err error) error { return fault.In("gpu: ", op, err) }
