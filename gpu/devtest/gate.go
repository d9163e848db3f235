// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Gate is the oracle behind a gate that no work gets through while it is shut: a device with a kernel that does not end, until the test
// ends it. Submit takes no context, as ever.
type Gate struct {
	driver.Device
	work, compiler gate
}

// drainingGate is a Gate whose submissions are waited for with a context.
type drainingGate struct{ *Gate }

// Drain waits until the gate is open.
func (g drainingGate) Drain(ctx context.Context) error { return g.work.pass(ctx) }

// gate is open unless it is shut.
type gate struct {
	mu      sync.Mutex
	shut    chan struct{} // closed when it opens; nil while it is open
	waiting chan struct{} // closed when somebody waits
}

func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	if g.waiting != nil {
		close(g.waiting)
		g.waiting = nil
	}
	g.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close shuts the gate. The channel is closed when somebody comes to it.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.waiting = make(chan struct{}), make(chan struct{})
	return g.waiting
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut, g.waiting = nil, nil
	}
}

// Submit lets through what only defines and forgets binding sets.
func (g *Gate) Submit(l *driver.CommandList) error {
	for c := range l.All() {
		if c.Op != driver.OpBind && c.Op != driver.OpUnbind {
			if err := g.work.pass(context.Background()); err != nil {
				return err
			}
			break
		}
	}
	return g.Device.Submit(l)
}

// Read, Wait and Map wait for the work.
func (g *Gate) Read(ctx context.Context, t driver.Transfer) error {
	if err := g.work.pass(ctx); err != nil {
		return err
	}
	return g.Device.Read(ctx, t)
}

// Wait waits for the work.
func (g *Gate) Wait(ctx context.Context) error {
	if err := g.work.pass(ctx); err != nil {
		return err
	}
	return g.Device.Wait(ctx)
}

// Map waits for the work.
func (g *Gate) Map(ctx context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	if err := g.work.pass(ctx); err != nil {
		return nil, err
	}
	return g.Device.Map(ctx, id, offset, size)
}

// NewKernel waits for the compiler.
func (g *Gate) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	if err := g.compiler.pass(ctx); err != nil {
		return err
	}
	return g.Device.NewKernel(ctx, id, k)
}

// Gated runs a test on the oracle behind a gate: once where submissions are waited for with a context, once where only Submit waits.
func Gated(t *testing.T, test func(t *testing.T, dev *gpu.Device, g *Gate), opts ...gpu.Option) {
	t.Helper()
	GatedDevice(t, Oracle, test, opts...)
}

// GatedDevice is Gated for another device of a driver's.
func GatedDevice(
	t *testing.T, open func(testing.TB) driver.Device, test func(t *testing.T, dev *gpu.Device, g *Gate), opts ...gpu.Option,
) {
	t.Helper()
	for name, drains := range map[string]bool{"Drain": true, "Submit": false} {
		t.Run(name, func(t *testing.T) {
			g := &Gate{Device: open(t)}
			var drv driver.Device = g
			if drains {
				drv = drainingGate{g}
			}
			dev := Must[*gpu.Device](t)(gpu.Open(t.Context(), append(opts, gpu.WithDevice(drv))...))
			t.Cleanup(func() {
				g.Open()
				Check(t, dev.Close())
			})
			test(t, dev, g)
		})
	}
}

// Shut shuts the gate behind what was queued, and returns when a submission has come to it.
func (g *Gate) Shut(t *testing.T, dev *gpu.Device) {
	t.Helper()
	b := Must[*gpu.Buffer](t)(dev.NewBuffer(16))
	came := g.work.close()
	Check(t, b.Clear(0, 16))
	go func() { _ = errors.Join(dev.Flush(), b.Close()) }()
	Soon(t, "the submission", func() { <-came })
}

// ShutCompiler shuts the compiler's gate. The channel is closed when somebody comes to it.
func (g *Gate) ShutCompiler() <-chan struct{} { return g.compiler.close() }

// Open opens the gates.
func (g *Gate) Open() {
	g.work.open()
	g.compiler.open()
}

// Soon ends the test if a call does not return: it would take minutes on the slowest of machines.
func Soon(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what, " does not return")
	}
}

// CalledOff cancels a call's context while the gate is shut, and wants that error from it.
func CalledOff(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel) // by then it waits, on a machine that has time; it may as well not have begun
	Soon(t, what, func() {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v", what, err)
		}
	})
}

// impatient is a context that ends as soon as somebody waits for its end.
type impatient struct {
	context.Context
	done chan struct{}
	once *sync.Once
}

func (i impatient) Done() <-chan struct{} {
	i.once.Do(func() { close(i.done) })
	return i.done
}

func (i impatient) Err() error {
	select {
	case <-i.done:
		return context.Canceled
	default:
		return nil
	}
}

// Busy makes a call until it has to wait, for another one that begins meanwhile.
func Busy(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	Soon(t, "another call", func() {
		for {
			err := call(impatient{t.Context(), make(chan struct{}), new(sync.Once)})
			if errors.Is(err, context.Canceled) {
				return
			}
			Check(t, err)
			time.Sleep(time.Millisecond)
		}
	})
}
