// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// destroy loses a device of the browser's.
func destroy(t *testing.T, dev *gpu.Device) {
	t.Helper()
	dev.Handle().(js.Value).Call("destroy")
}

// losable are the drivers whose devices the tests can lose.
var losable = []string{"cpu", "browser"}
