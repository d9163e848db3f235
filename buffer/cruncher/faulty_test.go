// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"encoding/binary"
	"regexp"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// interpreted is a device of the oracle that takes WGSL whose reference implementations are known, and a page's memory.
type interpreted struct {
	driver.Device
	references map[string]reference
}

// faulty is such a device that is lost at an operation of one's choice.
type faulty struct{ *devtest.Faulty }

// failure says when a device is lost.
type failure struct {
	at    int  // operations before that; negative: never
	after bool // the operation still succeeds
	waits bool // waiting counts, too
}

var never = failure{at: -1}

// plan counts the operations that take part in a computation.
func (f failure) plan() devtest.Plan {
	operations := 0
	return func(c devtest.Call) devtest.Fault {
		switch c.Op {
		case "Wait":
			if !f.waits {
				return devtest.None
			}
		case "NewBuffer", "NewKernel", "Submit", "Read":
		default:
			return devtest.None
		}
		operations++
		switch {
		case operations-1 != f.at:
			return devtest.None
		case f.after:
			return devtest.LoseAfter
		}
		return devtest.Lose
	}
}

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
	return &faulty{devtest.NewFaulty(&interpreted{devtest.Oracle(t), references}, plan.plan())}
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

// arm has the device be lost after so many operations from now on.
func (f *faulty) arm(in int, after bool) { f.Arm(failure{at: in, after: after}.plan()) }

func (d *interpreted) Info() driver.AdapterInfo {
	i := d.Device.Info()
	i.Features |= driver.FeatureWGSL
	return i
}

func (d *interpreted) Submit(l *driver.CommandList) error {
	for i := range l.Data {
		if h := &l.Data[i]; h.Foreign != nil {
			*h = driver.HostBytes(loadForeign(*h))
		}
	}
	return d.Device.Submit(l)
}

func (d *interpreted) Read(ctx context.Context, t driver.Transfer) error {
	if t.Host.Foreign == nil {
		return d.Device.Read(ctx, t)
	}
	to := t
	to.Host, to.HostOffset = driver.HostBytes(make([]byte, t.Width)), 0
	if err := d.Device.Read(ctx, to); err != nil {
		return err
	}
	return storeForeign(t.Host, t.HostOffset, to.Host.Bytes)
}

var (
	structField = regexp.MustCompile(`p_(\w+): u32`)
	storage     = regexp.MustCompile(`var<storage, \w+> (\w+):`)
	function    = regexp.MustCompile(`\n  (\w+)\(sublet_b`)
)

// NewKernel gives kernels of one dimension their reference implementations.
func (d *interpreted) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	known := *k
	if k.Reference == nil {
		known.Reference = d.reference(k.Source)
	}
	return d.Device.NewKernel(ctx, id, &known)
}

func (d *interpreted) reference(source string) func([3]uint32, []byte, [][]byte) {
	fields, arrays := structField.FindAllStringSubmatch(source, -1), storage.FindAllStringSubmatch(source, -1)
	name := function.FindStringSubmatch(source)
	run := d.references[name[1]]
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
