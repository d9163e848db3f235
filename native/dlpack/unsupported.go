// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package dlpack

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

func withoutC(op string) error { return fail(op, gpu.ErrUnsupported, "built without cgo") }

// Export needs cgo.
func Export(*Tensor) (*Managed, error) { return nil, withoutC("Export") }

// ExportLegacy needs cgo.
func ExportLegacy(*Tensor) (*Legacy, error) { return nil, withoutC("ExportLegacy") }

// Import needs cgo.
func Import(*Managed) (*Tensor, error) { return nil, withoutC("Import") }

// ImportLegacy needs cgo.
func ImportLegacy(*Legacy) (*Tensor, error) { return nil, withoutC("ImportLegacy") }

// FromArray needs cgo.
func FromArray(context.Context, *ndarray.Array, Place) (*Tensor, error) {
	return nil, withoutC("FromArray")
}

// ToArray needs cgo.
func ToArray(*gpu.Device, *Tensor) (*ndarray.Array, error) { return nil, withoutC("ToArray") }
