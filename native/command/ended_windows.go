// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"syscall"
)

// processEnded reports whether there is no process of this number, or one that ended and is kept because somebody has a handle to it.
func processEnded(id int) bool {
	const invalidParameter = syscall.Errno(87) // ERROR_INVALID_PARAMETER: no such process; others, as of rights, say nothing
	h, err := syscall.OpenProcess(syscall.SYNCHRONIZE, false, uint32(id))
	if err != nil {
		return errors.Is(err, invalidParameter)
	}
	defer func() { _ = syscall.CloseHandle(h) }() // it was only looked at
	state, err := syscall.WaitForSingleObject(h, 0)
	return err == nil && state == syscall.WAIT_OBJECT_0
}
