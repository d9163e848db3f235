// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// ErrKernel is a source, a name or a declaration that no program can be made of. The message names the line of the
// source where one is to blame. What only a compiler finds is gpu.ErrCompile, from the device.
var ErrKernel = fault.New("ErrKernel", "not a usable kernel")

func fail(op string, detail ...string) error {
	return fault.Fail("kernel: "+op, ErrKernel, detail...)
}

// at begins a message about a line.
func at(line int) string { return "line " + strconv.Itoa(line) + ": " }

// quote shortens what a hostile source may have made long.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
