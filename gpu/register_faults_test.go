// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

type (
	lister = func(context.Context) ([]driver.Adapter, error)
	opener = func(context.Context) (driver.Device, error)
)

// listing lists an adapter of that driver for each function that opens one.
func listing(name string, open ...opener) lister {
	return func(context.Context) ([]driver.Adapter, error) {
		var all []driver.Adapter
		for _, o := range open {
			all = append(all, driver.Adapter{Info: driver.AdapterInfo{Driver: name, Name: "adapter of " + name, Backend: "odd"}, Open: o})
		}
		return all, nil
	}
}

// nilDevice panics in all its methods but those that it has.
type nilDevice struct{ driver.Device }

func (d *nilDevice) Info() driver.AdapterInfo { return driver.AdapterInfo{} }

// TestRegisteredFaults has drivers that panic, or return nothing. Each is an error that names the driver, and others go on.
func TestRegisteredFaults(t *testing.T) {
	none := func(context.Context) (driver.Device, error) { return nil, nil }
	nilPointer := func(context.Context) (driver.Device, error) { return (*nilDevice)(nil), nil }
	panics := func(context.Context) (driver.Device, error) { panic("ouch") }
	listPanics := func(context.Context) ([]driver.Adapter, error) { panic(errors.New("ouch")) }
	for name, d := range map[string]driver.Driver{
		"list":        {Adapters: listPanics},
		"backend":     {Adapters: listing("backend"), OfBackend: func(ctx context.Context, _ string) ([]driver.Adapter, error) { return listPanics(ctx) }},
		"open":        {Adapters: listing("open", panics)},
		"nothing":     {Adapters: listing("nothing", none)},
		"nil pointer": {Adapters: listing("nil pointer", nilPointer)},
		"no open":     {Adapters: listing("no open", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			d.Name = name
			register(t, d, renamed("after"))
			var found []string
			for a, err := range gpu.Adapters(t.Context()) {
				if err == nil {
					found = append(found, a.Info.Driver)
				} else {
					namesDriver(t, err, name)
				}
			}
			if !slices.Contains(found, "after") || !slices.Contains(found, "cpu") {
				t.Errorf("the listing ends early: %q", found)
			}
			options := []gpu.Option{gpu.WithDriver(name)}
			if name == "backend" {
				options = append(options, gpu.WithBackend("odd"))
			}
			_, err := gpu.Open(t.Context(), options...)
			namesDriver(t, err, name)
			if _, err := gpu.Select(t.Context()).Driver(name).Rank(t.Context(), nil).Adapters(); !errors.Is(err, gpu.ErrNoAdapter) {
				t.Errorf("ranked: %v", err)
			}
		})
	}
}

// TestRegisteredAdoptFaults is the same for devices that the caller has.
func TestRegisteredAdoptFaults(t *testing.T) {
	list := func(context.Context) ([]driver.Adapter, error) { return nil, nil }
	for name, adopt := range map[string]func(context.Context, any) (driver.Device, error){
		"panics":  func(context.Context, any) (driver.Device, error) { panic("ouch") },
		"nothing": func(context.Context, any) (driver.Device, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			register(t, driver.Driver{Name: name, Adapters: list, Adopt: adopt})
			_, err := gpu.Open(t.Context(), gpu.WithDevice(new(handle)))
			namesDriver(t, err, name)
		})
	}
}

func namesDriver(t *testing.T, err error, name string) {
	t.Helper()
	if !errors.Is(err, gpu.ErrInvalid) || !strings.Contains(err.Error(), "the driver "+name+" ") {
		t.Errorf("the driver %s: %v", name, err)
	}
}

// TestRegisteredName has a driver whose adapters and devices say that they are the oracle's.
func TestRegisteredName(t *testing.T) {
	liar := cpu.New()
	liar.Name, liar.Adopt = "liar", func(ctx context.Context, h any) (driver.Device, error) {
		list, err := cpu.New().Adapters(ctx)
		if _, ok := h.(*handle); !ok || err != nil {
			return nil, gpu.ErrUnsupported
		}
		return list[0].Open(ctx)
	}
	register(t, liar)
	for _, option := range []gpu.Option{gpu.WithDriver("liar"), gpu.WithDevice(new(handle))} {
		dev, err := gpu.Open(t.Context(), option)
		check(t, err)
		sameDriver(t, dev, "liar")
		check(t, dev.Sync(t.Context()))
		check(t, dev.Close())
	}
	if n := count(gpu.Select(t.Context()).Driver("cpu")); n != 1 {
		t.Errorf("%d adapters of the oracle", n)
	}
}
