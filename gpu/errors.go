// SPDX-License-Identifier: Apache-2.0

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
