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

// busyDriver has submissions wait until it is free.
type busyDriver struct {
	driver.Device
	free    chan struct{}
	submits int
}

func (b *busyDriver) Drain(ctx context.Context) error {
	select {
	case <-b.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *busyDriver) Submit(l *driver.CommandList) error {
	<-b.free
	b.submits++
	return b.Device.Submit(l)
}

// TestSyncCancelled calls a wait off that a submission would begin with.
func TestSyncCancelled(t *testing.T) {
	adapters, err := cpu.New().Adapters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	drv, err := adapters[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	busy := &busyDriver{Device: drv, free: make(chan struct{})}
	dev, err := gpu.Open(t.Context(), gpu.WithDevice(busy))
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.NewBuffer(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Clear(0, 64); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- dev.Sync(ctx) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || busy.submits != 0 {
		t.Errorf("got error %v after %d submissions", err, busy.submits)
	}
	close(busy.free)
	if err := dev.Sync(t.Context()); err != nil || busy.submits != 1 {
		t.Errorf("got error %v after %d submissions", err, busy.submits)
	}
	if err := errors.Join(b.Close(), dev.Close(), drv.Close()); err != nil {
		t.Error(err)
	}
}

// listed is a driver's device of a type that cannot be compared.
type listed struct {
	driver.Device
	_ []int
}

// TestUncomparableDriver waits for a device of such a type.
func TestUncomparableDriver(t *testing.T) {
	adapters, err := cpu.New().Adapters(t.Context())
	check(t, err)
	drv, err := adapters[0].Open(t.Context())
	check(t, err)
	dev, err := gpu.Open(t.Context(), gpu.WithDevice(listed{Device: drv}))
	check(t, err)
	b, err := dev.NewBuffer(16)
	check(t, err)
	check(t, errors.Join(b.Clear(0, 16), dev.Sync(t.Context()), b.Sync(t.Context()), b.Close(), dev.Close()))
}
