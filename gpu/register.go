// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
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
// nothing. The Info of its adapters and of their devices has the driver's name, whatever it says. Open prefers the adapters of others to
// those of an experimental driver.
//
// Where a function of the driver or an adapter's Open panics or returns neither a device nor an error, and where an adapter has no Open,
// that is an error that names the driver, [ErrInvalid]. The methods of its devices must not panic.
func Register(d driver.Driver) error {
	const op = "Register"
	if d.Name == "" || d.Adapters == nil {
		return fail(op, ErrInvalid, "a driver needs a name and Adapters")
	}
	d = guarded(d)
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

// guarded is a driver that keeps what Register promises, whatever the functions of the original do.
func guarded(d driver.Driver) driver.Driver {
	g := guard(d.Name)
	list, listBackend, adopt := d.Adapters, d.OfBackend, d.Adopt
	d.Adapters = func(ctx context.Context) ([]driver.Adapter, error) {
		return g.adapters(func() ([]driver.Adapter, error) { return list(ctx) })
	}
	if listBackend != nil {
		d.OfBackend = func(ctx context.Context, backend string) ([]driver.Adapter, error) {
			return g.adapters(func() ([]driver.Adapter, error) { return listBackend(ctx, backend) })
		}
	}
	d.Adopt = func(ctx context.Context, handle any) (driver.Device, error) {
		if adopt == nil {
			return nil, fail("Adopt", ErrUnsupported)
		}
		return g.device("Adopt", func() (driver.Device, error) { return adopt(ctx, handle) })
	}
	return d
}

// guard is the name of a driver whose functions it calls.
type guard string

// recovered makes an error of a panic.
func (g guard) recovered(op string, err *error) {
	if why := fault.Panic(recover()); why != "" {
		*err = g.fail(op, "panicked: "+why)
	}
}

func (g guard) fail(op, what string) error {
	return fail(op, ErrInvalid, "the driver ", string(g), " ", what)
}

func (g guard) adapters(list func() ([]driver.Adapter, error)) (all []driver.Adapter, err error) {
	const op = "Adapters"
	defer g.recovered(op, &err)
	found, err := list()
	for _, a := range found {
		open := a.Open
		if open == nil {
			err = errors.Join(err, g.fail(op, "has an adapter without Open: "+fault.Short(a.Info.Name)))
			continue
		}
		a.Info.Driver = string(g)
		a.Open = func(ctx context.Context) (driver.Device, error) {
			return g.device("Open", func() (driver.Device, error) { return open(ctx) })
		}
		all = append(all, a)
	}
	return all, err
}

func (g guard) device(op string, open func() (driver.Device, error)) (d driver.Device, err error) {
	defer g.recovered(op, &err)
	dev, err := open()
	switch {
	case err != nil:
		return nil, err
	case dev == nil:
		return nil, g.fail(op, "returned no device")
	}
	_ = dev.Lost() // panics here, and not under a lock, if the device is a nil pointer
	if dev.Info().Driver != string(g) {
		return guardedDevice{dev, string(g)}, nil
	}
	return dev, nil
}

// guardedDevice is a device whose own Info has another name than its driver.
type guardedDevice struct {
	driver.Device
	name string
}

func (d guardedDevice) Info() driver.AdapterInfo {
	info := d.Device.Info()
	info.Driver = d.name
	return info
}

// Drain is the driver's own, if it has one.
func (d guardedDevice) Drain(ctx context.Context) error {
	if busy, ok := d.Device.(drainer); ok {
		return busy.Drain(ctx)
	}
	return nil
}
