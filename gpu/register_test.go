// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// renamed is a driver of the oracle's devices that has another name and adopts handles of type *handle.
func renamed(name string) driver.Driver {
	d := cpu.New()
	oracle := d.Adapters
	open := func(ctx context.Context) (driver.Device, error) {
		list, err := oracle(ctx)
		if err != nil {
			return nil, err
		}
		dev, err := list[0].Open(ctx)
		return &renamedDevice{Device: dev, name: name, lost: make(chan struct{})}, err
	}
	return driver.Driver{
		Name: name,
		Adapters: func(ctx context.Context) ([]driver.Adapter, error) {
			list, err := oracle(ctx)
			for i := range list {
				list[i].Info.Driver, list[i].Info.Name, list[i].Open = name, "adapter of "+name, open
			}
			return list, err
		},
		Adopt: func(ctx context.Context, h any) (driver.Device, error) {
			if h, ok := h.(*handle); ok && h.of == name {
				return open(ctx)
			}
			return nil, gpu.ErrUnsupported
		},
	}
}

// handle is what a driver of that name adopts.
type handle struct{ of string }

// renamedDevice is the oracle's but for its name, and tests can lose it.
type renamedDevice struct {
	driver.Device
	name string
	lost chan struct{}
	once sync.Once
}

func (d *renamedDevice) Info() driver.AdapterInfo {
	info := d.Device.Info()
	info.Driver, info.Name = d.name, "adapter of "+d.name
	return info
}

func (d *renamedDevice) Lost() <-chan struct{} { return d.lost }
func (d *renamedDevice) Handle(id driver.BufferID) any {
	if id == 0 {
		return d
	}
	return d.Device.Handle(id)
}

func register(t *testing.T, drivers ...driver.Driver) {
	t.Helper()
	t.Cleanup(gpu.KeepDrivers())
	for _, d := range drivers {
		check(t, gpu.Register(d))
	}
}

// TestRegister wants registered drivers after linked ones and before the oracle, in the order of their registration.
func TestRegister(t *testing.T) {
	before := gpu.Drivers()
	register(t, renamed("first"), renamed("second"))
	want := slices.Concat(before[:len(before)-1], []string{"first", "second", "cpu"})
	if got := gpu.Drivers(); !slices.Equal(got, want) || before[len(before)-1] != "cpu" {
		t.Fatalf("drivers %q, want %q", got, want)
	}
	var found []string
	for a, err := range gpu.Adapters(t.Context()) {
		check(t, err)
		if n := a.Info.Driver; len(found) == 0 || found[len(found)-1] != n {
			found = append(found, n)
		}
	}
	if last := want[len(want)-3:]; len(found) < 3 || !slices.Equal(found[len(found)-3:], last) { // without cgo others have no adapters
		t.Errorf("adapters of %q, want the last to be %q", found, last)
	}
	if n := count(gpu.Select(t.Context()).Driver("second")); n != 1 {
		t.Errorf("%d adapters of the second driver are selected", n)
	}
}

func TestRegisterRefuses(t *testing.T) {
	register(t, renamed("taken"))
	before := gpu.Drivers()
	list := renamed("x").Adapters
	for what, d := range map[string]driver.Driver{
		"zero": {}, "no name": {Adapters: list}, "no adapters": {Name: "x"}, "registered": {Name: "taken", Adapters: list},
		"linked": {Name: before[0], Adapters: list}, "oracle": {Name: "cpu", Adapters: list},
	} {
		err := gpu.Register(d)
		if op, ok := errors.AsType[*gpu.OpError](err); !errors.Is(err, gpu.ErrInvalid) || !ok || op.Op != "gpu: Register" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := gpu.Drivers(); !slices.Equal(got, before) {
		t.Errorf("drivers %q, before %q", got, before)
	}
}

// TestRegistered opens, adopts and reopens devices of a registered driver.
func TestRegistered(t *testing.T) {
	deaf := renamed("deaf")
	deaf.Adopt = nil
	register(t, deaf, renamed("mine"))
	ctx := t.Context()
	dev, err := gpu.Open(ctx, gpu.WithDriver("mine"))
	check(t, err)
	sameDriver(t, dev, "mine")
	check(t, dev.Close())

	t.Setenv("SUBLET_DRIVER", "mine")
	dev, err = gpu.Open(ctx)
	check(t, err)
	sameDriver(t, dev, "mine")
	own := dev.Handle().(*renamedDevice)
	own.once.Do(func() { close(own.lost); check(t, own.Close()) })
	if err := dev.Sync(ctx); !errors.Is(err, gpu.ErrDeviceLost) {
		t.Fatalf("a lost device: %v", err)
	}
	check(t, dev.Reopen(ctx))
	sameDriver(t, dev, "mine")
	check(t, dev.Close())

	dev, err = gpu.Open(ctx, gpu.WithDevice(&handle{"mine"}))
	check(t, err)
	sameDriver(t, dev, "mine")
	check(t, dev.Close())
	for _, name := range []string{"deaf", "cpu"} {
		if _, err := gpu.Open(ctx, gpu.WithDevice(&handle{"mine"}), gpu.WithDriver(name)); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("%s adopts a device of another driver: %v", name, err)
		}
	}
	if _, err := gpu.Open(ctx, gpu.WithDevice(&handle{"nobody"})); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("nobody's handle: %v", err)
	}
}

// sameDriver wants the device to be of the driver, and to hold what it is given.
func sameDriver(t *testing.T, dev *gpu.Device, name string) {
	t.Helper()
	if got := dev.Info().Driver; got != name {
		t.Fatalf("a device of %s, want %s", got, name)
	}
	b, err := dev.NewBuffer(8)
	check(t, err)
	check(t, b.Write(4, gpu.HostBytes([]byte{1, 2, 3, 4})))
	if v := words(t, b, 2); v[0] != 0 || v[1] != 0x04030201 {
		t.Errorf("%s: %#x", name, v)
	}
	check(t, b.Close())
}

// TestRegisterConcurrently registers one name in several goroutines, which one of them may do, while others list.
func TestRegisterConcurrently(t *testing.T) {
	register(t)
	before := len(gpu.Drivers())
	var wg sync.WaitGroup
	done := make([]error, 16)
	for i := range done {
		wg.Go(func() { done[i] = gpu.Register(renamed([]string{"odd", "even"}[i%2])) })
		wg.Go(func() {
			for _, err := range gpu.Adapters(t.Context()) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	failed := 0
	for _, err := range done {
		if errors.Is(err, gpu.ErrInvalid) {
			failed++
		}
	}
	if now := len(gpu.Drivers()); now != before+2 || failed != len(done)-2 {
		t.Errorf("%d drivers were added, %d calls failed", now-before, failed)
	}
}

// A driver registers itself when its package is initialised, so that programs only import it. Native programs have the command
// with it: package native/command is all of it but main.
func ExampleRegister() {
	list := func(context.Context) ([]driver.Adapter, error) { return nil, nil } // what the driver finds
	if err := gpu.Register(driver.Driver{Name: "mine", Adapters: list}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(gpu.Drivers())
}
