// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/sublet-gpu/sublet/internal/fault"
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("cogent: "+op, err, detail...)
}

// take turns the error of a C call into one of Go and frees it. invalid is what a validation error means here.
func take(op string, e *C.cog_error, invalid error) error {
	if e._type == 0 {
		return nil
	}
	text := ""
	if e.message != nil {
		text = tidy(C.GoString(e.message))
		C.free(unsafe.Pointer(e.message))
	}
	kind := e._type
	*e = C.cog_error{}
	return fail(op, cmp.Or(kinds[kind], invalid), text)
}

// kinds are the errors that mean the same in every call.
var kinds = map[C.uint32_t]error{C.COG_MEMORY: fault.ErrNoMemory, C.COG_MAPPED: fault.ErrMapped, C.COG_LOST: fault.ErrDeviceLost}

// tidy strips what every message of wgpu-native begins with and says twice. What is left is a chain of causes, a line
// each, and for a kernel that does not compile the lines of its source.
func tidy(message string) string {
	var kept []string
	for line := range strings.Lines(strings.TrimPrefix(message, "Validation Error\n\nCaused by:\n")) {
		line = strings.TrimRight(strings.TrimPrefix(line, "    "), " \n")
		if line == "" || strings.HasPrefix(line, "In wgpu") || strings.HasPrefix(line, "  note: label = ") {
			continue
		}
		repeats := func(k string) bool { return strings.HasSuffix(k, line) }
		if strings.Contains(line, "│") || !slices.ContainsFunc(kept, repeats) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
