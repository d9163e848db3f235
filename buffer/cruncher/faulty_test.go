// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"encoding/binary"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// faulty is a device of the oracle that is lost at an operation of one's choice, and that takes WGSL whose reference implementations are known.
type faulty struct {
	driver.Device
	references map[string]reference

	mu    sync.Mutex
	plan  failure
	ops   int
	lost  chan struct{}
	fired bool
}

// failure says when a device is lost.
type failure struct {
	at    int  // operations before that; negative: never
	after bool // the operation still succeeds
	waits bool // waiting counts, too
}

var never = failure{at: -1}

// reference is the reference implementation of a kernel for an item.
type reference func(i uint32, m memory)

// memory is arrays of words and scalars, by their names.
type memory struct {
	words   map[string][]byte
	offsets map[string]uint32
	values  map[string]uint32
}

func (m memory) at(name string, i uint32) uint32 {
	return binary.LittleEndian.Uint32(m.words[name][4*(i-m.offsets[name]):])
}

func (m memory) set(name string, i, v uint32) {
	binary.LittleEndian.PutUint32(m.words[name][4*(i-m.offsets[name]):], v)
}

func newFaulty(t testing.TB, references map[string]reference, plan failure) *faulty {
	t.Helper()
	as := must[[]driver.Adapter](t)(cpu.New().Adapters(t.Context()))
	return &faulty{Device: must[driver.Device](t)(as[0].Open(t.Context())), references: references, plan: plan, lost: make(chan struct{})}
}

// openFaulty opens devices that are lost as planned.
func openFaulty(t testing.TB, references map[string]reference, plans []failure, opts ...gpu.Option) ([]*gpu.Device, []*faulty) {
	t.Helper()
	var devices []*gpu.Device
	var drivers []*faulty
	for _, p := range plans {
		f := newFaulty(t, references, p)
		d := must[*gpu.Device](t)(gpu.Open(t.Context(), append(opts, gpu.WithDevice(f))...))
		t.Cleanup(func() { _ = d.Close() }) // fails where something was queued before the loss
		devices, drivers = append(devices, d), append(drivers, f)
	}
	return devices, drivers
}

// lose loses the device now.
func (f *faulty) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loseLocked()
}

func (f *faulty) loseLocked() {
	if !f.fired {
		f.fired = true
		close(f.lost)
		_ = f.Close()
	}
}

func (f *faulty) hasFired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// do makes an operation, unless the device is lost.
func (f *faulty) do(op string, fn func() error) error {
	f.mu.Lock()
	now := f.ops == f.plan.at
	f.ops++
	if now && !f.plan.after {
		f.loseLocked()
	}
	gone := f.fired
	f.mu.Unlock()
	if gone {
		return fault.Fail(op, fault.ErrDeviceLost, "as planned")
	}
	err := fn()
	if now {
		f.lose()
	} else if f.hasFired() && err != nil {
		return fault.Fail(op, fault.ErrDeviceLost, "as planned")
	}
	return err
}

func (f *faulty) Lost() <-chan struct{} { return f.lost }

func (f *faulty) LostReason() string { return "as planned" }

func (f *faulty) Info() driver.AdapterInfo {
	i := f.Device.Info()
	i.Features |= driver.FeatureWGSL
	return i
}

func (f *faulty) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	return f.do("NewBuffer", func() error { return f.Device.NewBuffer(id, size, mappable) })
}

func (f *faulty) Wait(ctx context.Context) error {
	if !f.plan.waits {
		return f.Device.Wait(ctx)
	}
	return f.do("Wait", func() error { return f.Device.Wait(ctx) })
}

func (f *faulty) Submit(l *driver.CommandList) error {
	for i := range l.Data {
		if h := &l.Data[i]; h.Foreign != nil {
			*h = driver.HostBytes(loadForeign(*h))
		}
	}
	return f.do("Submit", func() error { return f.Device.Submit(l) })
}

func (f *faulty) Read(ctx context.Context, t driver.Transfer) error {
	return f.do("Read", func() error {
		if t.Host.Foreign == nil {
			return f.Device.Read(ctx, t)
		}
		to := t
		to.Host, to.HostOffset = driver.HostBytes(make([]byte, t.Width)), 0
		if err := f.Device.Read(ctx, to); err != nil {
			return err
		}
		return storeForeign(t.Host, t.HostOffset, to.Host.Bytes)
	})
}

var (
	structField = regexp.MustCompile(`p_(\w+): u32`)
	storage     = regexp.MustCompile(`var<storage, \w+> (\w+):`)
	function    = regexp.MustCompile(`\n  (\w+)\(sublet_b`)
)

// NewKernel gives kernels of one dimension their reference implementations.
func (f *faulty) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	known := *k
	if k.Reference == nil {
		known.Reference = f.reference(k.Source)
	}
	return f.do("NewKernel", func() error { return f.Device.NewKernel(ctx, id, &known) })
}

func (f *faulty) reference(source string) func([3]uint32, []byte, [][]byte) {
	fields, arrays := structField.FindAllStringSubmatch(source, -1), storage.FindAllStringSubmatch(source, -1)
	name := function.FindStringSubmatch(source)
	run := f.references[name[1]]
	if run == nil {
		run = conversion(name[1], source)
	}
	return func(_ [3]uint32, params []byte, bound [][]byte) {
		m := memory{map[string][]byte{}, map[string]uint32{}, map[string]uint32{}}
		for i, f := range fields {
			m.values[f[1]] = binary.LittleEndian.Uint32(params[4*i:])
		}
		for i, a := range arrays {
			m.words[a[1]], m.offsets[a[1]] = bound[i], m.values["sublet_off_"+a[1]]
		}
		base, count := m.values["sublet_base"], m.values["sublet_count"]
		for i := base; i < base+count; i++ {
			run(i, m)
		}
	}
}

// conversion is the reference implementation of unpack and of pack in convert.wgsl, for whole numbers.
func conversion(name, source string) reference {
	size := uint32(1)
	if strings.Contains(source, "BITS: u32 = 16u") {
		size = 2
	}
	signed := strings.Contains(source, "SIGNED: bool = true")
	return func(i uint32, m memory) {
		packed, first := m.words["packed"], m.values["first"]
		unpacked := func(e uint32) []byte { return m.words["unpacked"][4*(m.values["first_unpacked"]+e):][:4] }
		if name == "pack" {
			for at := (first*size/4 + i) * 4; at < (first*size/4+i)*4+4; at += size {
				if e := at/size - first; e < m.values["count"] {
					copy(packed[at:at+size], unpacked(e))
				}
			}
			return
		}
		to := unpacked(i)
		clear(to)
		if copy(to, packed[(first+i)*size:][:size]); signed && to[size-1] > 127 {
			copy(to[size:], "\xff\xff\xff")
		}
	}
}

// everyFault runs what a device can be lost in, once for each of its operations and each of n devices: the operation fails, or is
// the last one that succeeds. It ends when all of it goes on without the loss. Waits are operations unless it is chance who waits when.
func everyFault(t *testing.T, n int, waits bool, run func(t *testing.T, victim int, plans []failure) (fired bool)) {
	t.Helper()
	step := 1
	if !devtest.Long() {
		step = 5
	}
	for victim := range n {
		for _, after := range []bool{false, true} {
			total := 0
			for at := 0; ; at += step {
				plans := make([]failure, n)
				for i := range plans {
					plans[i] = never
				}
				plans[victim] = failure{at, after, waits}
				if !run(t, victim, plans) {
					break
				}
				if total++; t.Failed() {
					t.Fatalf("device %d, lost at operation %d, after it: %v", victim, at, after)
				}
			}
			if total == 0 {
				t.Errorf("device %d does nothing", victim)
			}
		}
	}
}

// arm has the device be lost after so many operations from now on.
func (f *faulty) arm(in int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = failure{at: f.ops + in, after: after}
}
