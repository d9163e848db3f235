// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// gate is a kernel that stands still. A synctest bubble knows when everything else stands still as well, so these tests
// need no patience.
type gate struct {
	driver.Device
	*testing.T
	open chan struct{}
	runs int
}

// gated runs f with a device whose buffer 1, of 16 bytes, is held by a running kernel that f has to let go of. The
// kernel writes ones, and the list sevens after it.
func gated(t *testing.T, f func(g *gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open(t, 0), t, make(chan struct{}), 0}
		must(t, g.NewBuffer(1, 16, true))
		kernelOf(t, g.Device, 16, func(mem []byte) {
			<-g.open
			g.runs++
			copy(mem, bytes.Repeat([]byte{1}, 16))
		})
		must(t, launch(g.Device, 16))
		synctest.Wait()
		f(g)
	})
}

func (g *gate) content() []byte {
	g.Helper()
	b := make([]byte, 16)
	must(g.T, read(g.Context(), g.Device, 1, b))
	return b
}

// While a kernel runs, everything that does not wait for it goes on.
func TestSubmitDoesNotWait(t *testing.T) {
	gated(t, func(g *gate) {
		must(t, launch(g.Device, 16))
		must(t, g.NewBuffer(2, 16, false))
		must(t, g.NewKernel(g.Context(), 2, &driver.Kernel{Source: "-", Entry: "-", Reference: func([3]uint32, []byte, [][]byte) {}}))
		g.FreeKernel(2)
		g.FreeBuffer(2)
		if g.runs != 0 {
			t.Error("the kernel is over too early for the test")
		}
		close(g.open)
		if got := g.content(); got[0] != 7 || g.runs != 2 {
			t.Errorf("after %d of 2 kernels the buffer is % x", g.runs, got)
		}
	})
}

// A wait that is given up leaves nothing in the queue that could write to the caller's memory later.
func TestCancel(t *testing.T) {
	gated(t, func(g *gate) {
		ctx, cancel := context.WithCancel(g.Context())
		must(t, g.NewBuffer(2, 16, true))
		host := make([]byte, 16)
		errs := make(chan error, 3)
		go func() { errs <- read(ctx, g.Device, 1, host) }()
		go func() { errs <- g.Wait(ctx) }()
		go func() { _, err := g.Map(ctx, 2, 0, 16); errs <- err }()
		synctest.Wait()
		if len(errs) != 0 {
			t.Errorf("a wait did not wait: %v", <-errs)
		}
		cancel()
		for range 3 {
			want(t, <-errs, context.Canceled)
		}
		close(g.open)
		must(t, g.Wait(g.Context()))
		if !bytes.Equal(host, make([]byte, 16)) {
			t.Errorf("a read that was cancelled wrote % x", host)
		}
		if got := g.content(); got[0] != 7 {
			t.Errorf("the buffer is % x", got)
		}
		want(t, g.Unmap(2), fault.ErrInvalid) // a mapping that was not waited for is none
	})
}

// Close waits for the command that is running and for no other.
func TestCloseWaits(t *testing.T) {
	gated(t, func(g *gate) {
		must(t, launch(g.Device, 16))
		mem, _ := g.Handle(1).([]byte)
		errs := make(chan error, 2)
		closed := make(chan error, 1)
		go func() { errs <- g.Wait(g.Context()) }()
		go func() { errs <- read(g.Context(), g.Device, 1, make([]byte, 16)) }()
		synctest.Wait()
		go func() { closed <- g.Close() }()
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close returned while a kernel was running")
		}
		want(t, g.NewBuffer(2, 4, false), fault.ErrClosed)
		close(g.open)
		must(t, <-closed)
		want(t, <-errs, fault.ErrClosed)
		want(t, <-errs, fault.ErrClosed)
		if g.runs != 1 || mem[0] != 1 {
			t.Errorf("%d kernels ran and the buffer begins with %d: want the one that was running and nothing after it", g.runs, mem[0])
		}
	})
}

// A buffer that is freed while somebody waits to map it is not handed out.
func TestMapOfFreed(t *testing.T) {
	gated(t, func(g *gate) {
		errs := make(chan error, 1)
		go func() { _, err := g.Map(g.Context(), 1, 0, 16); errs <- err }()
		synctest.Wait()
		g.FreeBuffer(1)
		must(t, g.NewBuffer(1, 16, true))
		close(g.open)
		want(t, <-errs, fault.ErrClosed)
		mem, err := g.Map(g.Context(), 1, 0, 16)
		must(t, err)
		if !bytes.Equal(mem, make([]byte, 16)) {
			t.Errorf("the kernel of the freed buffer wrote % x to the new one", mem)
		}
		must(t, g.Unmap(1))
	})
}

// Close ends a Map that waits, whichever of them gets there first.
func TestMapAndClose(t *testing.T) {
	gated(t, func(g *gate) {
		errs := make(chan error, 1)
		go func() { _, err := g.Map(g.Context(), 1, 0, 16); errs <- err }()
		synctest.Wait()
		go func() { close(g.open) }()
		must(t, g.Close())
		want(t, <-errs, fault.ErrClosed)
	})
}
