// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

type wicked struct{}

func (wicked) Error() string { panic("again") }

// A reference that does not return loses its device: nothing after it runs, and everybody learns why.
func TestTwinPanics(t *testing.T) {
	for _, c := range []struct {
		name   string
		run    func(mem []byte)
		reason string
	}{
		{"text", func([]byte) { panic("no reason") }, "no reason"},
		{"error", func([]byte) { panic(errors.New("wrong shape")) }, "wrong shape"},
		{"number", func([]byte) { panic(42) }, "42"},
		{"nil", func([]byte) { panic(nil) }, "nil"},
		{"error that panics", func([]byte) { panic(wicked{}) }, "unknown reason"},
		{"index", func(mem []byte) { mem[len(mem)]++ }, "index out of range"},
		{"goexit", func([]byte) { runtime.Goexit() }, "ended its goroutine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := open(t, 0)
			mem := bytes.Repeat([]byte{5}, 16)
			_, _, err := dev.ImportBuffer(1, mem)
			must(t, err)
			kernelOf(t, dev, 16, c.run)
			select {
			case <-dev.Lost():
				t.Fatal("lost before anything happened")
			default:
			}
			must(t, launch(dev, 16))
			checkLost(t, dev, c.reason)
			if !bytes.Equal(mem, bytes.Repeat([]byte{5}, 16)) {
				t.Errorf("a command after the panic ran: % x", mem)
			}
		})
	}
}

func checkLost(t *testing.T, dev driver.Device, reason string) {
	t.Helper()
	err := dev.Wait(t.Context())
	want(t, err, fault.ErrDeviceLost)
	<-dev.Lost()
	for _, text := range []string{dev.LostReason(), err.Error()} {
		if !strings.Contains(text, "example (main)") || !strings.Contains(text, reason) {
			t.Errorf("%q does not name the kernel and %q", text, reason)
		}
	}
	host := []byte{9, 9, 9, 9}
	want(t, dev.Submit(new(driver.CommandList)), fault.ErrDeviceLost)
	want(t, dev.Wait(t.Context()), fault.ErrDeviceLost)
	want(t, read(t.Context(), dev, 1, host), fault.ErrDeviceLost)
	want(t, dev.NewBuffer(2, 4, false), fault.ErrDeviceLost)
	want(t, dev.NewKernel(t.Context(), 2, nil), fault.ErrDeviceLost)
	_, _, err = dev.ImportBuffer(2, host)
	want(t, err, fault.ErrDeviceLost)
	_, err = dev.Map(t.Context(), 1, 0, 4)
	want(t, err, fault.ErrDeviceLost)
	want(t, dev.Unmap(1), fault.ErrDeviceLost)
	if string(host) != "\t\t\t\t" {
		t.Errorf("a read from a lost device wrote % x", host)
	}
	dev.FreeBuffer(1)
	dev.FreeKernel(1)
	must(t, dev.Close())
	want(t, dev.Wait(t.Context()), fault.ErrClosed)
}

// Who waits when the device is lost learns of it, and what a read was to fill stays.
func TestLostWhileWaiting(t *testing.T) {
	dev := open(t, 0)
	must(t, dev.NewBuffer(1, 16, false))
	begin := make(chan struct{})
	kernelOf(t, dev, 16, func([]byte) { <-begin; panic("late") })
	must(t, launch(dev, 16))
	must(t, launch(dev, 16))
	host := make([]byte, 16)
	errs := make(chan error, 2)
	go func() { errs <- read(t.Context(), dev, 1, host) }()
	go func() { errs <- dev.Wait(t.Context()) }()
	close(begin)
	want(t, <-errs, fault.ErrDeviceLost)
	want(t, <-errs, fault.ErrDeviceLost)
	if !bytes.Equal(host, make([]byte, 16)) {
		t.Errorf("the read wrote % x", host)
	}
}

// A device that is lost while Close waits for it is closed all the same, and others do not notice.
func TestLostWhileClosing(t *testing.T) {
	dev, other := open(t, 0), open(t, 0)
	for _, d := range []driver.Device{dev, other} {
		must(t, d.NewBuffer(1, 16, false))
	}
	begin := make(chan struct{})
	kernelOf(t, dev, 16, func([]byte) { <-begin; panic("late") })
	kernelOf(t, other, 16, func([]byte) {})
	must(t, launch(dev, 16))
	closed := make(chan error)
	go func() { closed <- dev.Close() }()
	close(begin)
	must(t, <-closed)
	want(t, dev.Wait(t.Context()), fault.ErrClosed)
	must(t, launch(other, 16))
	must(t, other.Wait(t.Context()))
	if r := other.LostReason(); r != "" {
		t.Errorf("the other device says %q", r)
	}
}
