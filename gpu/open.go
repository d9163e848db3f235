// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"syscall"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// AdapterInfo describes an adapter or a device.
type AdapterInfo = driver.AdapterInfo

// Adapter is a processor that can be opened with [Adapter.Open], any number of times.
type Adapter struct {
	Info AdapterInfo
	open func(context.Context) (driver.Device, error)
}

// Open opens a device of this adapter. Of the options, those that choose an adapter have no effect.
func (a *Adapter) Open(ctx context.Context, opts ...Option) (*Device, error) {
	if a == nil || a.open == nil {
		return nil, fail("Open", ErrInvalid, "nil adapter")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	d, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return newDevice(d, c, a.open), nil
}

// Option is an option of [Open].
type Option func(*config) error

type config struct {
	driver, adapter string
	frugal          bool
	handle          any
	memory          uint64
	largest         uint64
}

// WithDriver takes adapters of one driver only: "cogent" or "cpu" natively, "browser" or "cpu" in a page. The variable
// SUBLET_DRIVER has the same effect where the option is absent.
func WithDriver(name string) Option {
	return func(c *config) error { c.driver = name; return nil }
}

// WithAdapter takes the first adapter whose name contains the text, in any case. The variable SUBLET_ADAPTER has the
// same effect where the option is absent.
func WithAdapter(name string) Option {
	return func(c *config) error { c.adapter = name; return nil }
}

// WithLowPower prefers the most frugal adapter to the fastest one.
func WithLowPower() Option { return func(c *config) error { c.frugal = true; return nil } }

// WithDevice wraps a device that the caller already has: a *wgpu.Device natively, a GPUDevice (js.Value) in a page.
// Buffers made elsewhere on that device can then be wrapped. Closing the result leaves the caller's device alone.
//
// A [driver.Device] of a driver of the caller's own is taken as it is; closing the result closes it.
func WithDevice(handle any) Option {
	return func(c *config) error {
		if handle == nil {
			return fail("Open", ErrInvalid, "nil device")
		}
		c.handle = handle
		return nil
	}
}

// WithMemory limits how many bytes of buffers may be live at once; more is [ErrNoMemory]. 0 is no limit.
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// WithMaxBuffer lowers the size of the largest buffer, and of what a kernel can bind of one, to so many bytes: for trying
// out what happens to memory that is larger. 0 leaves both as they are; other values are multiples of 256.
func WithMaxBuffer(bytes uint64) Option {
	return func(c *config) error {
		if bytes%256 != 0 {
			return fail("Open", ErrInvalid, bytes, " bytes")
		}
		c.largest = bytes
		return nil
	}
}

func newConfig(opts []Option) (*config, error) {
	c := new(config)
	for _, o := range opts {
		if o == nil {
			return nil, fail("Open", ErrInvalid, "nil option")
		}
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Drivers lists the names of the drivers that are linked, in order of preference.
func Drivers() []string {
	var names []string
	for _, d := range drivers {
		names = append(names, d.Name)
	}
	return names
}

// Adapters lists every adapter of every linked driver, best first within a driver. A driver that fails yields its error
// and the listing goes on.
func Adapters(ctx context.Context) iter.Seq2[*Adapter, error] {
	return func(yield func(*Adapter, error) bool) {
		for _, d := range drivers {
			as, err := d.Adapters(ctx)
			if err != nil && !yield(nil, err) {
				return
			}
			for _, a := range as {
				if !yield(&Adapter{a.Info, a.Open}, nil) {
					return
				}
			}
		}
	}
}

// Open opens the best adapter that fits the options: a GPU before a software adapter, and the Go oracle (driver "cpu")
// where there is nothing else. Close the device when done.
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if c.handle != nil {
		d, err := adopt(ctx, c.driver, c.handle)
		if err != nil {
			return nil, err
		}
		return newDevice(d, c, nil), nil
	}
	s := Select(ctx)
	if name := cmp.Or(c.driver, getenv("SUBLET_DRIVER")); name != "" {
		s = s.Driver(name)
	}
	list, err := s.Name(cmp.Or(c.adapter, getenv("SUBLET_ADAPTER"))).Adapters()
	if err != nil {
		return nil, err
	}
	frugal := func(a *Adapter) bool { return c.frugal && a.Info.Kind == driver.KindIntegrated }
	return list[max(0, slices.IndexFunc(list, frugal))].Open(ctx, opts...) // each driver lists its best first, the oracle comes last
}

// adopt makes a driver's device of a handle, by the driver of that name or, if it is "", any that knows the handle.
func adopt(ctx context.Context, name string, handle any) (driver.Device, error) {
	if own, ok := handle.(driver.Device); ok {
		return own, nil
	}
	for _, d := range drivers {
		if name != "" && d.Name != name {
			continue
		}
		if dev, err := d.Adopt(ctx, handle); err == nil || !errors.Is(err, ErrUnsupported) {
			return dev, err
		}
	}
	return nil, fail("Open", ErrUnsupported, "no linked driver knows such a device")
}

// getenv is os.Getenv without package os, which would be a tenth of the program in a page.
func getenv(name string) string {
	v, _ := syscall.Getenv(name)
	return v
}
