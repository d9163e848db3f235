// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package dlpack

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// supported refuses every call, so that none of the other functions is reached.
func supported(op string) error { return fail(op, gpu.ErrUnsupported, "built without cgo") }

func newManaged[M Managed | Legacy](int, *loan) *M { return nil }

func giveBack(_, _ uintptr) {}

func originOf(_, _ uintptr) any { return nil }

func (t *Tensor) ofDevice(context.Context, *buffer.Buffer, Place) (func(), error) {
	return nil, supported("FromArray")
}

func (t *Tensor) onDevice(op string, _ *gpu.Device) (*buffer.Buffer, bool, error) {
	return nil, false, supported(op)
}
