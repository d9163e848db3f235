// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package cogent

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns a driver without adapters: this build has no cgo.
func New() driver.Driver {
	return driver.Driver{
		Name:     "cogent",
		Adapters: func(context.Context) ([]driver.Adapter, error) { return nil, nil },
		Adopt: func(context.Context, any) (driver.Device, error) {
			return nil, fault.Fail("cogent: Adopt", fault.ErrUnsupported, "built without cgo")
		},
	}
}
