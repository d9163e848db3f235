// SPDX-License-Identifier: Apache-2.0

//go:build !(js && wasm)

package browser

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns the driver. On this platform it finds no adapters.
func New() driver.Driver { return unsupported{} }

type unsupported struct{}

func (unsupported) Name() string { return "browser" }

func (unsupported) Adapters(context.Context) ([]driver.Adapter, error) { return nil, nil }

func (unsupported) Adopt(context.Context, any) (driver.Device, error) {
	return nil, fault.Fail("browser: Adopt", fault.ErrUnsupported, "not a js/wasm program")
}
