// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// foreignBuffer makes a buffer as a program with wgpu of its own does.
func foreignBuffer(t *testing.T, dev *gpu.Device, size uint64) (handle any, destroy func()) {
	t.Helper()
	b := devtest.UserBuffer(t, dev, size)
	return b, func() { devtest.User.Destroy(b) }
}
