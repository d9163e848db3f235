// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Fault is what goes wrong at a call of a driver.
type Fault int

// The faults.
const (
	None      Fault = iota
	Lose            // the device is lost, and the call has done nothing
	LoseAfter       // the call does what it should, and then the device is lost
	NoMemory        // the call has done nothing for lack of memory, if it is one that takes any
	Refuse          // a list is refused
)

// String names the fault in logs.
func (f Fault) String() string {
	return [...]string{"none", "loss", "loss afterwards", "no memory", "refusal"}[f]
}

// injected counts the faults of all devices.
var injected [Refuse + 1]atomic.Int64

// AtLeast logs how many devices a test loses (Lose and LoseAfter) or how many calls it has fail, and wants that to be at least so many,
// in short tests and in long ones.
func AtLeast(t testing.TB, what Fault, short, long int) {
	t.Helper()
	count := func() int {
		n := injected[what].Load()
		if what == Lose {
			n += injected[LoseAfter].Load()
		}
		return int(n)
	}
	before := count()
	t.Cleanup(func() {
		n, want := count()-before, short
		if Long() {
			want = long
		}
		if t.Logf("injected: %d of %q", n, what); n < want && !t.Failed() {
			t.Errorf("that is less than %d", want)
		}
	})
}

// Call is a call of a driver's device.
type Call struct {
	Op string // the method's name
	N  int    // how many there were before
}

// Takes reports whether the call may take memory and fail.
func (c Call) Takes() bool {
	switch c.Op {
	case "NewBuffer", "NewKernel", "Submit", "Read", "Map", "Wait":
		return true
	}
	return false
}

// Plan tells what goes wrong at a call. It is called under a lock.
type Plan func(Call) Fault

// At is a plan by which one thing goes wrong, at the first call from number n on that it can happen to.
func At(n int, f Fault) Plan {
	done := false
	return func(c Call) Fault {
		if done || c.N < n || f == NoMemory && !c.Takes() || f == Refuse && c.Op != "Submit" {
			return None
		}
		done = true
		return f
	}
}

// Faulty is a driver's device on which things go wrong as planned. [gpu.WithDevice] takes it. It counts every call through the seam.
// Once it is lost it behaves as real ones do: what waits ends, and every call is ErrDeviceLost.
type Faulty struct {
	driver.Device

	mu    sync.Mutex
	plan  Plan
	calls int
	fired map[Fault]int
	// refusedList: a list was refused, or not taken for lack of memory.
	refusedList bool

	lost context.Context //nolint:containedctx // ends with the device
	lose context.CancelFunc

	destroy func() // loses the driver's device, which then tells its loss itself; nil: the Faulty does
}

// lossReason is what lost devices say.
const lossReason = "as planned"

// NewFaulty takes over a driver's device. Without a plan nothing goes wrong.
func NewFaulty(dev driver.Device, plan Plan) *Faulty {
	f := &Faulty{Device: dev, plan: plan, fired: map[Fault]int{}}
	f.lost, f.lose = context.WithCancel(context.Background())
	return f
}

// Oracle opens a device of the driver that is written in Go.
func Oracle(t testing.TB) driver.Device {
	t.Helper()
	adapters := Must[[]driver.Adapter](t)(cpu.New().Adapters(t.Context()))
	return Must[driver.Device](t)(adapters[0].Open(t.Context()))
}

// OpenFaulty opens a device on which things go wrong as planned. It is closed at the end of the test, which may fail where something
// was queued before a loss.
func OpenFaulty(t testing.TB, dev driver.Device, plan Plan, opts ...gpu.Option) (*gpu.Device, *Faulty) {
	t.Helper()
	f := NewFaulty(dev, plan)
	d := Must[*gpu.Device](t)(gpu.Open(t.Context(), append(opts, gpu.WithDevice(f))...))
	t.Cleanup(func() { _ = d.Close() })
	return d, f
}

// Arm replaces the plan, and counts calls from 0 on.
func (f *Faulty) Arm(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.calls = plan, 0
}

// Calls returns how many calls there were since the plan was made.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Fired returns how often a fault came about.
func (f *Faulty) Fired(what Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired[what]
}

// Lose loses the device now.
func (f *Faulty) Lose() {
	if f.destroy != nil {
		f.destroy()
	}
	f.lose()
}

// feigns reports whether the device is lost and does not know.
func (f *Faulty) feigns() bool { return f.IsLost() && f.destroy == nil }

// IsLost reports whether the device is lost.
func (f *Faulty) IsLost() bool { return f.lost.Err() != nil }

// Lost implements [driver.Device].
func (f *Faulty) Lost() <-chan struct{} { return f.lost.Done() }

// LostReason implements [driver.Device].
func (f *Faulty) LostReason() string {
	if f.IsLost() {
		return lossReason
	}
	return f.Device.LostReason()
}

// next counts a call and tells what goes wrong at it.
func (f *Faulty) next(op string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Call{op, f.calls}
	f.calls++
	if f.plan == nil || f.IsLost() {
		return None
	}
	what := f.plan(c)
	if what == NoMemory && !c.Takes() || what == Refuse && op != "Submit" {
		return None
	}
	if what != None {
		f.fired[what]++
		injected[what].Add(1)
		f.refusedList = f.refusedList || op == "Submit"
	}
	return what
}

// do makes a call, unless something goes wrong.
func (f *Faulty) do(op string, call func() error) error {
	what := f.next(op)
	switch what {
	case Lose:
		f.Lose()
	case NoMemory:
		return fault.Fail("faulty: "+op, fault.ErrNoMemory, lossReason)
	case Refuse:
		return fault.Fail("faulty: "+op, fault.ErrInvalid, lossReason)
	}
	if f.feigns() {
		return fault.Fail("faulty: "+op, fault.ErrDeviceLost, lossReason)
	}
	err := call()
	switch {
	case what == LoseAfter:
		f.Lose()
	case err != nil && f.feigns():
		return fault.Fail("faulty: "+op, fault.ErrDeviceLost, lossReason)
	}
	return err
}

// wait makes a call that may wait, and ends with the device.
func (f *Faulty) wait(ctx context.Context, op string, call func(context.Context) error) error {
	if ctx == nil || f.destroy != nil {
		return f.do(op, func() error { return call(ctx) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.lost, cancel)()
	return f.do(op, func() error { return call(ctx) })
}

// tell makes a call that returns no error.
func (f *Faulty) tell(op string, call func()) {
	_ = f.do(op, func() error { call(); return nil })
}

// NewBuffer implements [driver.Device].
func (f *Faulty) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	return f.do("NewBuffer", func() error { return f.Device.NewBuffer(id, size, mappable) })
}

// ImportBuffer implements [driver.Device].
func (f *Faulty) ImportBuffer(id driver.BufferID, handle any) (known driver.BufferID, size uint64, err error) {
	err = f.do("ImportBuffer", func() (err error) { known, size, err = f.Device.ImportBuffer(id, handle); return err })
	return known, size, err
}

// DestroyBuffer implements [driver.Device].
func (f *Faulty) DestroyBuffer(handle any) error {
	return f.do("DestroyBuffer", func() error { return f.Device.DestroyBuffer(handle) })
}

// FreeBuffer implements [driver.Device].
func (f *Faulty) FreeBuffer(id driver.BufferID) {
	f.tell("FreeBuffer", func() { f.Device.FreeBuffer(id) })
}

// NewKernel implements [driver.Device].
func (f *Faulty) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	return f.wait(ctx, "NewKernel", func(ctx context.Context) error { return f.Device.NewKernel(ctx, id, k) })
}

// FreeKernel implements [driver.Device].
func (f *Faulty) FreeKernel(id driver.KernelID) {
	f.tell("FreeKernel", func() { f.Device.FreeKernel(id) })
}

// Submit implements [driver.Device].
func (f *Faulty) Submit(l *driver.CommandList) error {
	return f.do("Submit", func() error { return f.Device.Submit(l) })
}

// Read implements [driver.Device].
func (f *Faulty) Read(ctx context.Context, t driver.Transfer) error {
	return f.wait(ctx, "Read", func(ctx context.Context) error { return f.Device.Read(ctx, t) })
}

// Wait implements [driver.Device].
func (f *Faulty) Wait(ctx context.Context) error {
	return f.wait(ctx, "Wait", f.Device.Wait)
}

// Map implements [driver.Device].
func (f *Faulty) Map(ctx context.Context, id driver.BufferID, offset, size uint64) (mem []byte, err error) {
	err = f.wait(ctx, "Map", func(ctx context.Context) (err error) { mem, err = f.Device.Map(ctx, id, offset, size); return err })
	if err != nil {
		return nil, err
	}
	return mem, nil
}

// Unmap implements [driver.Device].
func (f *Faulty) Unmap(id driver.BufferID) error {
	return f.do("Unmap", func() error { return f.Device.Unmap(id) })
}

// Close implements [driver.Device]. A lost device can be closed.
func (f *Faulty) Close() error {
	switch f.next("Close") {
	case Lose, LoseAfter:
		f.Lose()
	}
	return f.Device.Close()
}

// Drain is what package gpu looks for in devices whose submissions wait.
func (f *Faulty) Drain(ctx context.Context) error {
	busy, ok := f.Device.(interface {
		Drain(ctx context.Context) error
	})
	if !ok {
		return nil
	}
	return f.wait(ctx, "Drain", busy.Drain)
}
