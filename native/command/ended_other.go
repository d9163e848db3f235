// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package command

import (
	"errors"
	"os"
	"syscall"
)

// processEnded reports whether there is no process of this number.
func processEnded(id int) bool {
	p, err := os.FindProcess(id)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
