// SPDX-License-Identifier: Apache-2.0

package gpu

import "github.com/sublet-gpu/sublet/gpu/driver"

// Types shared with the drivers.
type (
	// OpError says which operation failed, on what, and why.
	OpError = driver.OpError
	// Sentinel is an error for errors.Is; its Code is the name of the variable.
	Sentinel = driver.Sentinel
	// Shape is the rows and columns of an operand in an OpError.
	Shape = driver.Shape
)

// The errors of this package and of the drivers.
var (
	ErrClosed      = driver.ErrClosed      // use after Close
	ErrCompile     = driver.ErrCompile     // WGSL that does not compile; the message names the line
	ErrDeviceLost  = driver.ErrDeviceLost  // the device is gone: unplugged, reset, or closed by its owner
	ErrForeign     = driver.ErrForeign     // an object of another device
	ErrInvalid     = driver.ErrInvalid     // an argument that is never right
	ErrLimit       = driver.ErrLimit       // beyond a limit of the device
	ErrMapped      = driver.ErrMapped      // the buffer is mapped just now
	ErrNoAdapter   = driver.ErrNoAdapter   // no adapter fits the options
	ErrNoMemory    = driver.ErrNoMemory    // out of device memory, or over the limit given to Open
	ErrReadOnly    = driver.ErrReadOnly    // memory that nothing may be written to
	ErrUnsupported = driver.ErrUnsupported // the device cannot do that
)

// Code returns the name of the outermost sentinel in err's chain, for example "ErrLimit", or "Error".
func Code(err error) string { return driver.Code(err) }

func fail(op string, err error, detail ...string) error {
	return driver.Fail("gpu: "+op, err, detail...)
}
