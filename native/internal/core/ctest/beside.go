// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// testBindingBeside uses a device through the binding and through the driver at once: neither gets errors that are the other's, and the
// driver still tells a buffer that is destroyed.
func testBindingBeside(t *testing.T, bench *Bench) {
	if bench.Unseen != "" {
		t.Logf("the driver provokes errors to find out what it does not see: %s", bench.Unseen)
		return
	}
	for name, d := range map[string]driver.Device{"own": bench.open(t), "adopted": bench.adopt(t)} {
		t.Run(name, func(t *testing.T) {
			var buffers []any
			for range 500 {
				buffers = append(buffers, bench.make(t, d.Handle(0), 64, UsageImport, false))
			}
			device, stop := d.Handle(0), make(chan struct{})
			var beside sync.WaitGroup
			beside.Go(func() { bench.churn(t, device, stop) })
			for i, b := range buffers {
				if err := bench.useOnce(t, d, b, i%2 == 0); err != nil {
					t.Errorf("buffer %d: %v", i, err)
					break
				}
			}
			close(stop)
			beside.Wait()
		})
	}
}

// churn makes and releases buffers until it is told to stop.
func (bench *Bench) churn(t *testing.T, device any, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		b, err := bench.CreateBuffer(device, 64, UsageImport, false)
		if err != nil {
			t.Errorf("the binding's call fails: %v", err)
			return
		}
		bench.ReleaseBuffer(b)
	}
}

// useOnce imports a buffer, has it destroyed if that is asked for, uses it and frees it.
func (bench *Bench) useOnce(t *testing.T, d driver.Device, b any, destroy bool) error {
	if _, _, err := d.ImportBuffer(1, b); err != nil {
		return err
	}
	defer d.FreeBuffer(1)
	var kind error
	if destroy {
		bench.DestroyBuffer(b)
		kind = fault.ErrInvalid
	}
	var l driver.CommandList
	l.Clear(1, 0, 64)
	submitted := d.Submit(&l)
	_, err := read(t.Context(), d, 1, 16)
	if !errors.Is(submitted, kind) || !errors.Is(err, kind) {
		return fmt.Errorf("destroyed: %t: got %w", destroy, errors.Join(submitted, err))
	}
	return nil
}

// testForeignRaw asks for handles of buffers that are of other devices, of closed ones, and of none.
func testForeignRaw(t *testing.T, bench *Bench) {
	if bench.Unseen != "" {
		t.Logf("the driver does not see whose a buffer is: %s", bench.Unseen)
		return
	}
	d, other := bench.open(t), bench.open(t)
	for id, of := range []driver.Device{d, other} {
		must(t, of.NewBuffer(driver.BufferID(id+1), 64, false))
	}
	ours, release := core.Raw(d.Handle(1))
	defer release()
	theirs, release := core.Raw(other.Handle(2))
	defer release()
	check := func(name string) {
		t.Helper()
		if core.FromRaw(d.Handle(0), ours) == nil {
			t.Errorf("%s: no handle of the device's own buffer", name)
		}
		if core.FromRaw(d.Handle(0), theirs) != nil {
			t.Errorf("%s: a handle of another device's buffer", name)
		}
	}
	check("both are open")
	_, _, err := d.ImportBuffer(3, core.Inspect(d).Pretend(other.Handle(2)))
	refused(t, d, "import of another device's", err, fault.ErrForeign)
	must(t, other.Close())
	check("the other is closed")
	for range 3 { // these may get the addresses of what is gone
		third := bench.open(t)
		if core.FromRaw(third.Handle(0), theirs) != nil {
			t.Error("a later device has the buffer of a closed one")
		}
		must(t, third.Close())
	}
	healthy(t, d, 10)
}
