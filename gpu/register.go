// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// oracle is the name of the driver that is always the last.
const oracle = "cpu"

// registering guards the variable drivers, whose slice is replaced and never written to.
var registering sync.Mutex

// linked returns the drivers that there are now.
func linked() []driver.Driver {
	registering.Lock()
	defer registering.Unlock()
	return drivers
}

// Register adds a driver of somebody else's to those of this package, for the rest of the process: [Drivers], [Adapters], [Select]
// and [Open] find it from then on. It comes after the drivers that are linked or registered already, and before the oracle.
//
// A driver without a name or without Adapters, and a name that is taken, are [ErrInvalid]. Adopt may be nil: the driver then adopts
// nothing. The Info of its adapters and of their devices must have the driver's name.
func Register(d driver.Driver) error {
	const op = "Register"
	if d.Name == "" || d.Adapters == nil {
		return fail(op, ErrInvalid, "a driver needs a name and Adapters")
	}
	if d.Adopt == nil {
		d.Adopt = func(context.Context, any) (driver.Device, error) { return nil, fail("Adopt", ErrUnsupported) }
	}
	registering.Lock()
	defer registering.Unlock()
	at := len(drivers)
	for i, o := range drivers {
		switch o.Name {
		case d.Name:
			return fail(op, ErrInvalid, "there is a driver ", d.Name)
		case oracle:
			at = i
		}
	}
	drivers = slices.Concat(drivers[:at], []driver.Driver{d}, drivers[at:])
	return nil
}
