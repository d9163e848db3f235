// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// losable is a device of the caller's own driver.
type losable struct {
	driver.Device
	lost chan struct{}
}

func (l losable) Lost() <-chan struct{} { return l.lost }

func newLosable(t *testing.T) losable {
	t.Helper()
	as, err := cpu.New().Adapters(t.Context())
	check(t, err)
	d, err := as[0].Open(t.Context())
	check(t, err)
	return losable{d, make(chan struct{})}
}

// overtaken is a device that is lost and comes back while a call is on its way to it.
type overtaken struct {
	driver.Device
	meanwhile func()
}

func (o overtaken) Read(ctx context.Context, t driver.Transfer) error {
	o.meanwhile()
	return o.Device.Read(ctx, t)
}

func (o overtaken) Wait(ctx context.Context) error {
	o.meanwhile()
	return o.Device.Wait(ctx)
}

// TestOvertaken has devices come back while calls of before are on their way, whose error is that the device was lost.
func TestOvertaken(t *testing.T) {
	calls := map[string]func(*gpu.Device, *gpu.Buffer) error{
		"Read": func(_ *gpu.Device, b *gpu.Buffer) error {
			return b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(make([]byte, 64)), Width: 64, Count: 1})
		},
		"Sync": func(dev *gpu.Device, _ *gpu.Buffer) error { return dev.Sync(t.Context()) },
	}
	for name, call := range calls {
		var dev *gpu.Device
		first := newLosable(t).Device
		o := overtaken{first, func() {
			bad := gpu.KernelDesc{Source: "bad", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") }}
			k, err := dev.Kernel(t.Context(), bad)
			check(t, err)
			check(t, errors.Join(k.Dispatch([3]uint32{1, 1, 1}, nil), dev.Flush()))
			<-first.Lost()
			check(t, dev.Reopen(t.Context(), gpu.WithDevice(newLosable(t).Device)))
		}}
		var err error
		dev, err = gpu.Open(t.Context(), gpu.WithDevice(o))
		check(t, err)
		b, err := dev.NewBuffer(64)
		check(t, err)
		if err := call(dev, b); !errors.Is(err, gpu.ErrDeviceLost) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, dev.Close())
	}
}

// TestOwnDriver runs on a device of another driver, which comes back. What was on it does not.
func TestOwnDriver(t *testing.T) {
	first, second := newLosable(t), newLosable(t)
	dev, err := gpu.Open(t.Context(), gpu.WithDevice(first))
	check(t, err)
	old, err := dev.NewBuffer(64)
	check(t, err)
	check(t, old.Clear(0, 64))
	k, err := dev.Kernel(t.Context(), addKernel())
	check(t, err)
	check(t, k.Dispatch([3]uint32{1, 1, 1}, params(5, 16, 0, 0), gpu.Arg{Buffer: old}))
	if v := words(t, old, 16); v[15] != 5 {
		t.Errorf("%d", v)
	}
	close(first.lost)
	check(t, dev.Reopen(t.Context(), gpu.WithDevice(second)))
	b, err := dev.NewBuffer(64) // has the number of the old one
	check(t, err)
	check(t, b.Clear(0, 64))
	again, err := dev.Kernel(t.Context(), addKernel())
	check(t, err)
	for _, err := range []error{
		k.Dispatch([3]uint32{1, 1, 1}, params(5, 16, 0, 0), gpu.Arg{Buffer: b}),
		again.Dispatch([3]uint32{1, 1, 1}, params(5, 16, 0, 0), gpu.Arg{Buffer: old}),
	} {
		if !errors.Is(err, gpu.ErrDeviceLost) {
			t.Errorf("what was before the device came back: %v", err)
		}
	}
	if v := words(t, b, 16); v[0] != 0 {
		t.Errorf("an old buffer stood for a new one: %d", v)
	}
	check(t, dev.Close())
	if err := second.NewBuffer(9, 64, false); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("the device was not closed: %v", err)
	}
}
