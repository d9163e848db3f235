// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

const checksSource = `fn inc(i: u32) { a[i] = a[i] + 1u; }`

// TestOrder makes calls that are wrong in several ways: what is reported is the first in the contract's order.
func TestOrder(t *testing.T) {
	cr := newCruncher(t, 2, checksSource)
	a := newArray[uint32](t, "a", 100)
	for _, c := range []struct {
		name   string
		r      cruncher.Range
		kernel string
		want   error
	}{
		{"no multiple, and too short", cruncher.Range{Global: 101, Local: 8, Strict: true}, "inc", cruncher.ErrRange},
		{"no multiple by blobs, and too short", cruncher.Range{Global: 104, Local: 8, Blobs: 4, Strict: true}, "inc", cruncher.ErrRange},
		{"too few for the devices", cruncher.Range{Global: 64, Local: 64, Strict: true}, "inc", cruncher.ErrRange},
		{"too few for the devices' blobs", cruncher.Range{Global: 32, Local: 8, Blobs: 4, Strict: true}, "inc", cruncher.ErrRange},
		{"too short, and no such kernel", cruncher.Range{Global: 104, Local: 8, Strict: true}, "nothing", cruncher.ErrLength},
		{"too short by its offset", cruncher.Range{Global: 96, Local: 8, Offset: 8, Strict: true}, "inc", cruncher.ErrLength},
		{"no such kernel", cruncher.Range{Global: 96, Local: 8, Strict: true}, "nothing", kernel.ErrKernel},
		{"no such kernel between repeats", cruncher.Range{Global: 96, SyncKernel: "nothing"}, "inc", kernel.ErrKernel},
	} {
		refused(t, c.name, a.Compute(t.Context(), cr, 1, c.kernel, c.r), c.want)
	}
	for _, r := range []cruncher.Range{
		{Global: 96, Local: 8, Strict: true},
		{Global: 64, Local: 8, Blobs: 4, Strict: true},
		{Global: 100},
		{Global: 1, Offset: 99},
		{Global: 0, Offset: 1 << 31},
	} {
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	}
}

// TestWhole wants no length where an array does not move by parts.
func TestWhole(t *testing.T) {
	cr := newCruncher(t, 2, `fn add(i: u32) { out[0] = out[0] + a[0]; }`)
	a, out := wrap(t, "a", []uint32{5}), newArray[uint32](t, "out", 1)
	edit(a).Write(false)
	edit(out).WriteAll(true)
	check(t, cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 1}, a, out))
	check(t, cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 1, Offset: 7}, a, out))
	same(t, "sum", out.Data(), []uint32{10})
	edit(out).WriteAll(false)
	refused(t, "by parts", cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 2}, a, out), cruncher.ErrLength)
}

// TestHostile gives numbers that nobody means.
func TestHostile(t *testing.T) {
	cr := newCruncher(t, 2, checksSource)
	a := newArray[uint32](t, "a", 64)
	ctx := t.Context()
	for _, r := range []cruncher.Range{
		{Global: math.MaxInt},
		{Global: 1, Offset: math.MaxInt},
		{Global: math.MinInt},
		{Global: 1, Offset: -1},
		{Global: 1, Local: -1},
		{Global: 1, Local: math.MaxInt},
		{Global: 1, Blobs: -1},
		{Global: 1, Repeat: math.MinInt},
		{Global: 1, Inner: []int{0}},
		{Global: 1, Inner: []int{-1}},
		{Global: 1, Inner: []int{math.MaxInt, math.MaxInt}},
		{Global: 1, Inner: []int{1, 1, 1}},
		{Global: 1 << 20, Inner: []int{1 << 20}},
		{Global: 64, Local: 4, Blobs: math.MaxInt, Strict: true},
		{Global: 64, Local: 4, Blobs: 1 << 62, Strict: true},
	} {
		if err := a.Compute(ctx, cr, 1, "inc", r); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	check(t, a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 64, Local: 1, Blobs: math.MaxInt}))
	edit(a).ElementsPerItem(math.MaxInt).Halo(math.MaxInt)
	refused(t, "elements beyond counting", a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 64}), cruncher.ErrLength)
	edit(a).Write(false)
	check(t, a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 64}))
	edit(a).ElementsPerItem(1).Write(true).PartialRead(true)
	check(t, a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 64}))
}

func TestNil(t *testing.T) {
	cr := newCruncher(t, 1, checksSource)
	a := newArray[uint32](t, "a", 64)
	ctx := t.Context()
	refused(t, "no cruncher", a.Compute(ctx, nil, 1, "inc", cruncher.Range{Global: 1}), gpu.ErrInvalid)
	refused(t, "nothing to fetch", cr.Fetch(ctx, nil), gpu.ErrInvalid)
	refused(t, "no batch", cr.Batch(ctx, nil), gpu.ErrInvalid)
	check(t, cr.Evict(nil))
	check(t, (*cruncher.Cruncher)(nil).Close())
	check(t, (*cruncher.Any)(nil).Close())
	for _, o := range []cruncher.Option{nil, cruncher.WithBalancer(nil), cruncher.WithCoherence(9)} {
		_, err := cruncher.New(t.Context(), cr.Devices(), checksSource, o)
		refused(t, "an option", err, gpu.ErrInvalid)
	}
	_, err := cruncher.New(t.Context(), []*gpu.Device{nil}, checksSource)
	refused(t, "a nil device", err, gpu.ErrInvalid)
	cpu := must[*gpu.Device](t)(gpu.Open(ctx, gpu.WithDriver("cpu")))
	_, err = cruncher.New(t.Context(), []*gpu.Device{cpu}, checksSource)
	refused(t, "a device without WGSL", err, gpu.ErrUnsupported)
	check(t, cpu.Close())
	_, err = cruncher.New(t.Context(), []*gpu.Device{cpu}, checksSource)
	refused(t, "a closed device", err, gpu.ErrClosed)
	_, err = cruncher.New(t.Context(), cr.Devices(), "const x = 1;")
	refused(t, "no kernels", err, kernel.ErrKernel)
	_, err = cruncher.NewArray[uint8]("a", -1)
	refused(t, "a negative length", err, cruncher.ErrRange)
	_, err = cruncher.NewArray[uint32]("a", math.MaxInt)
	refused(t, "a huge length", err, cruncher.ErrRange)
	for _, name := range []string{"", "_", "__a", "1a", "a b", "é"} {
		_, err = cruncher.NewArray[uint8](name, 1)
		refused(t, name, err, cruncher.ErrName)
	}
	_, err = cruncher.WrapStructs("a", []struct{ a, b, c byte }{{}})
	refused(t, "structures of 3 bytes", err, cruncher.ErrRange)
	_, err = cruncher.WrapStructs("a", [][2]struct {
		a uint64
		b *int
	}{{}})
	refused(t, "pointers", err, gpu.ErrInvalid)
	_, err = cruncher.WrapStructs("a", []string{"a"})
	refused(t, "strings", err, gpu.ErrInvalid)
	_, err = cruncher.WrapStructs("a", []struct {
		a [0]*int
		b [2]complex64
		c bool
		d uintptr
	}{{}})
	check(t, err)
	_, err = cruncher.WrapHost("a", dtype.Uint32, gpu.HostBytes(make([]byte, 6)), nil)
	refused(t, "half an element", err, cruncher.ErrRange)
	_, err = cruncher.WrapHost("a", dtype.Uint32, gpu.Host{Bytes: make([]byte, 6), Size: 8}, nil)
	refused(t, "memory that is not there", err, cruncher.ErrRange)
	_, err = cruncher.WrapHost("a", dtype.Uint32, gpu.Host{Bytes: make([]byte, 8), Size: 8, Offset: 4}, nil)
	refused(t, "memory that is not there from there on", err, cruncher.ErrRange)
	_, err = cruncher.WrapHost("a", dtype.Int64, gpu.HostBytes(make([]byte, 8)), nil)
	refused(t, "an unknown type", err, gpu.ErrInvalid)
}

// TestNothing calls the methods of things that nobody made, and without a context. None panics or waits for ever.
func TestNothing(t *testing.T) {
	ctx, none, r := t.Context(), context.Context(nil), cruncher.Range{Global: 1}
	made := newCruncher(t, 1, checksSource)
	a := newArray[uint32](t, "a", 64)
	refused(t, "no context", made.Compute(none, 1, "inc", r, a), gpu.ErrInvalid)
	refused(t, "a batch without one", made.Batch(none, func(*cruncher.Batch) error { return nil }), gpu.ErrInvalid)
	refused(t, "a task without one", must[*cruncher.Task](t)(cruncher.NewTask(1, "inc", r, a, cruncher.TaskOptions{})).Compute(none, made), gpu.ErrInvalid)
	for _, cr := range []*cruncher.Cruncher{nil, {}} {
		refused(t, "Compute", cr.Compute(ctx, 1, "inc", r, a), gpu.ErrInvalid)
		refused(t, "Fetch", cr.Fetch(ctx, a.Any), gpu.ErrInvalid)
		refused(t, "Evict", cr.Evict(), gpu.ErrInvalid)
		check(t, cr.Close())
		if cr.Kernels() != nil || cr.Devices() != nil || cr.Traffic() != (cruncher.Traffic{}) || cr.Stats(1).Calls != 0 || cr.Last().Shares != nil {
			t.Error("a cruncher that nobody made has something")
		}
	}
	dev := made.Devices()[0]
	for _, p := range []*cruncher.DevicePool{nil, {}} {
		if _, err := p.Finish(ctx); err == nil || p.AddDevice(dev) == nil || p.Enqueue() == nil {
			t.Error("a pool that nobody made works")
		}
		if p.Completed() != nil || p.Remaining() != 0 {
			t.Error("a pool that nobody made has tasks")
		}
	}
	for _, p := range []*cruncher.DevicePipeline{nil, {}} {
		if _, err := p.Feed(ctx); err == nil || p.Serial() == nil || p.Parallel() == nil || p.StopTransmission(0) == nil {
			t.Error("a pipeline that nobody made works")
		}
		if p.Latency() != 0 || p.Traffic() != (cruncher.Traffic{}) {
			t.Error("a pipeline that nobody made has something")
		}
		check(t, p.Close())
	}
}

// TestJunkBalancer uses balancers that answer anything.
func TestJunkBalancer(t *testing.T) {
	devices := openDevices(t, 2)
	a := wrap(t, "a", count(64, uint32(0)))
	for _, counts := range [][]int{nil, {}, {64}, {32, 31}, {-1, 65}, {math.MaxInt, math.MaxInt}, {64, 64}, {32, 32, 0}, {24, 40}} {
		cr := onDevices(t, devices, 2, checksSource, cruncher.WithBalancer(&plan{split: func(int, balance.Request) []int { return counts }}))
		refused(t, "shares that are none", a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 64, Local: 16}), gpu.ErrInvalid)
	}
	same(t, "nothing has happened", a.Data(), count(64, uint32(0)))
}

// TestCancelled wants calls that are cancelled to leave the host's side alone, and the next ones to be right.
func TestCancelled(t *testing.T) {
	rounds := 6
	if devtest.Long() {
		rounds = 30
	}
	devices := openDevices(t, 2)
	for _, blobs := range []int{1, 8} {
		cr := onDevices(t, devices, 2, `fn inc(i: u32) {
  var zero = 0u;
  for (var k = 0u; k < 20000u; k++) { zero = (zero * 3u + i - i) & 0xfffffffeu; }
  a[i] = a[i] + 1u + zero;
  b[i] = b[i] + 1u;
  c[i] = c[i] + 1u;
}`)
		a, b := wrap(t, "a", count(4096, uint32(0))), newArray[uint32](t, "b", 4096)
		c := newArray[uint32](t, "c", 4096)
		edit(b).PartialRead(true)
		edit(c).Read(false)
		r := cruncher.Range{Global: 4096, Local: 64, Blobs: blobs}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		refused(t, "cancelled before", cr.Compute(done, 1, "inc", r, a, b, c), context.Canceled)
		same(t, "a", a.Data(), count(4096, uint32(0)))
		calls := uint32(0)
		for round := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			before := devices[0].Stats().Dispatches
			f := inBackground(cr, ctx, 1, "inc", r, a, b, c)
			if round%2 == 1 {
				await(t, f, func() bool { return devices[0].Stats().Dispatches > before })
			}
			cancel()
			<-f.Done()
			if err := f.Wait(t.Context()); err == nil {
				calls++
			} else {
				refused(t, "cancelled", err, context.Canceled)
			}
			same(t, "a", a.Data(), count(4096, calls))
			check(t, cr.Compute(t.Context(), 1, "inc", r, a, b, c))
			calls++
			same(t, "a", a.Data(), count(4096, calls))
			if b.Data()[4095] != calls || c.Data()[4095] != calls {
				t.Fatalf("%d and %d after %d calls", b.Data()[4095], c.Data()[4095], calls)
			}
		}
	}
}

// TestOtherElements gives arrays elements of another type than they have, and asks for more memory than there is.
func TestOtherElements(t *testing.T) {
	bytes := newArray[uint8](t, "x", 8)
	floats := &cruncher.Array[float32]{Any: bytes.Any}
	refused(t, "Set", floats.Set(7, 1), gpu.ErrInvalid)
	if _, err := floats.At(7); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("At: %v", err)
	}
	if _, err := floats.ToArray(); !errors.Is(err, gpu.ErrInvalid) || floats.Data() != nil {
		t.Errorf("ToArray: %v", err)
	}
	refused(t, "CopyTo", floats.CopyTo(floats, 0), gpu.ErrInvalid)
	same(t, "the bytes", bytes.Data(), make([]uint8, 8))
	for _, n := range []int{1 << 40, math.MaxInt / 8, math.MaxInt, -1} {
		if a, err := cruncher.NewArray[float32]("x", n); err == nil {
			t.Errorf("an array of %d elements: %v", n, a)
		}
	}
}
