// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// unsupported is a driver without adapters.
func unsupported(name, why string) driver.Driver {
	return driver.Driver{
		Name:     name,
		Adapters: func(context.Context) ([]driver.Adapter, error) { return nil, nil },
		Adopt: func(context.Context, any) (driver.Device, error) {
			return nil, fault.Fail(name+": Adopt", fault.ErrUnsupported, why)
		},
	}
}
