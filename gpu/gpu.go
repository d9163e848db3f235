// SPDX-License-Identifier: Apache-2.0

// Package gpu opens devices and runs kernels on them.
//
//	dev, err := gpu.Open(ctx)
//	defer dev.Close()
//
// A [Device] collects commands and hands them to its driver in batches: a call such as [Kernel.Dispatch] returns as soon
// as the command is recorded. A batch leaves when somebody reads, at [Device.Sync], at [Device.Flush], or when it has
// become large. [Device.Stats] counts what moved and what ran.
//
// Most programs use package matrix and meet only [Open], [Adapters] and [Device] of this one. Programs with kernels of
// their own use [Device.Kernel] and [Device.NewBuffer]; those for several devices begin with [Select].
//
// # Drivers
//
// Every device belongs to a driver. A program links those that this module has for its platform, and [Register] adds drivers of
// others, which implement package gpu/driver and pass the tests of package gpu/gputest. [Drivers] lists all.
//
// # Errors
//
// Errors wrap one of this package's sentinels in an [OpError], which names the call that failed; compare with errors.Is. No call
// panics. A call that fails has changed nothing. The errors of a batch that was refused, and of a lost device, name the last kernels.
//
// # Looking on
//
// [WithDebug], or the variable SUBLET_DEBUG=calls|kernels|wgsl, logs what a device does, and [WithLogger] says where to. Objects of the
// GPU have labels that tools show: kernels their own, others "sublet" and what they are for. [Device.Stats] counts.
//
// # Devices and goroutines
//
// All methods may be called from several goroutines; every call is one step, in some order. Several devices may be open
// at once, also of one adapter. Objects of one device given to another are [ErrForeign].
//
// # Kernels that do not end
//
// A context ends a call's wait, not a kernel that has begun: no platform can stop one. A GPU and a browser have a watchdog, after some
// seconds of which the device is lost, [ErrDeviceLost], and can be opened again with [Device.Reopen]. On llvmpipe loops end after 65,535
// turns, and a kernel runs on until then or until the process ends; so do the library's own kernels on the driver "cpu". Later work of
// the device waits for it. The driver "simd" ends a workgroup that works on in loops for some seconds, and a list that had it is
// [ErrLimit]; Close ends its kernels. Natively a workgroup is not interrupted, and Go's garbage collector may wait for it, with all that waits
// for the collector.
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

// named is an error of a driver, or nil, as one of this package's call.
func named(op string, err error) error { return fault.In("gpu: ", op, err) }
