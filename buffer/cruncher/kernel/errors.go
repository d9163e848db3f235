// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// ErrKernel is a source, a name or a declaration that no program can be made of. The message names the line of the
// source where one is to blame. What only a compiler finds is gpu.ErrCompile, from the device.
var ErrKernel = fault.New("ErrKernel", "not a usable kernel")

func fail(op string, detail ...string) error {
	return fault.Fail("kernel: "+op, ErrKernel, detail...)
}

// failAt blames a token of the source.
func failAt(op string, s *wgsl.Scan, token int, detail ...string) error {
	return fail(op, "line "+strconv.Itoa(s.Line(token))+": "+strings.Join(detail, ""))
}

// quote shortens what a hostile source may have made long.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
