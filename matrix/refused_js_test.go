// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// foreignBuffer makes a buffer as the page does.
func foreignBuffer(t *testing.T, dev *gpu.Device, size uint64) (handle any, destroy func()) {
	t.Helper()
	b := dev.Handle().(js.Value).Call("createBuffer", map[string]any{"size": size, "usage": 0x80 | 0x4 | 0x8})
	return b, func() { b.Call("destroy") }
}
