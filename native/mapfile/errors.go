// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"errors"
	"os"
	"syscall"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of packages gpu and matrix. Errors of the operating system, such as
// fs.ErrNotExist, are passed on as they are.
var (
	ErrEmpty        = fault.New("ErrEmpty", "nothing to map")
	ErrNotRegular   = fault.New("ErrNotRegular", "not a regular file")
	ErrRange        = fault.New("ErrRange", "beyond the end")
	ErrAddressSpace = fault.New("ErrAddressSpace", "no room in the address space")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("mapfile: "+op, err, detail...)
}

// mapError finds the sentinel for what the operating system says about a mapping.
func mapError(op, path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOMEM):
		return fail(op, ErrAddressSpace, path, ": ", err.Error())
	case errors.Is(err, syscall.ENODEV), errors.Is(err, errors.ErrUnsupported):
		return fail(op, gpu.ErrUnsupported, path, ": ", err.Error())
	}
	return &os.PathError{Op: "mmap", Path: path, Err: err}
}
