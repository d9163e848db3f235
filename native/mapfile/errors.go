// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"errors"
	"os"
	"syscall"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// ErrRange is the error for a part of a file that it does not have, or that is empty. The others are those of packages gpu and
// matrix, and of the operating system, such as fs.ErrNotExist.
var ErrRange = fault.New("ErrRange", "beyond the end")

func fail(op string, err error, detail ...string) error {
	return fault.Fail("mapfile: "+op, err, detail...)
}

// mapError finds the sentinel for what the operating system says about a mapping.
func mapError(op, path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOMEM):
		return fail(op, gpu.ErrNoMemory, "no room in the address space: ", path, ": ", err.Error())
	case errors.Is(err, syscall.ENODEV), errors.Is(err, errors.ErrUnsupported):
		return fail(op, gpu.ErrUnsupported, path, ": ", err.Error())
	}
	return &os.PathError{Op: "mmap", Path: path, Err: err}
}
