// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package cogent

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns a driver without adapters: this build has no cgo.
func New() driver.Driver { return unsupported{} }

type unsupported struct{}

func (unsupported) Name() string { return "cogent" }

func (unsupported) Adapters(context.Context) ([]driver.Adapter, error) { return nil, nil }

func (unsupported) Adopt(context.Context, any) (driver.Device, error) {
	return nil, fault.Fail("cogent: Adopt", fault.ErrUnsupported, "built without cgo")
}
