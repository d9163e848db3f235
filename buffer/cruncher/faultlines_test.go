// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// lineSource is for pools and pipelines.
const lineSource = `
fn double(i: u32) { x[i] = x[i] * 2u; }
fn grow(i: u32) { acc[i] = acc[i] + by; }
fn tell(i: u32) { x[i] = acc[i]; }
fn triple(i: u32) { mid[i] = src[i] * 3u; }
fn late(i: u32) { to[i] = mid[i] + 1u; }
fn front(i: u32) { to[i] = src[i] + to[i]; }
fn back(i: u32) { to[i] = to[i] * 5u; }`

var lineReferences = map[string]reference{
	"double": func(i uint32, m memory) { m.set("x", i, m.at("x", i)*2) },
	"grow":   func(i uint32, m memory) { m.set("acc", i, m.at("acc", i)+m.values["by"]) },
	"tell":   func(i uint32, m memory) { m.set("x", i, m.at("acc", i)) },
	"triple": func(i uint32, m memory) { m.set("mid", i, m.at("src", i)*3) },
	"late":   func(i uint32, m memory) { m.set("to", i, m.at("mid", i)+1) },
	"front":  func(i uint32, m memory) { m.set("to", i, m.at("src", i)+m.at("to", i)) },
	"back":   func(i uint32, m memory) { m.set("to", i, m.at("to", i)*5) },
}

// soon is a context for what must not hang.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func unleaked(t *testing.T, devices []*gpu.Device) {
	t.Helper()
	for i, d := range devices {
		if st := d.Stats(); d.Usable() == nil && (st.Buffers != 0 || st.LiveBytes != 0) {
			t.Errorf("device %d: %d buffers are left, with %d bytes", i, st.Buffers, st.LiveBytes)
		}
	}
}

// TestPoolFaults loses a device of a pool at each of its operations. Every task is done once.
func TestPoolFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 20, 60)
	const tasks = 6
	for _, mode := range []cruncher.PoolMode{cruncher.Greedy, cruncher.RoundRobin} {
		everyFault(t, 2, true, func(t *testing.T, victim int, plans []failure) bool {
			devices, drivers := openFaulty(t, lineReferences, plans)
			p := must[*cruncher.DevicePool](t)(cruncher.NewDevicePool(t.Context(), mode, lineSource))
			x, y := wrap(t, "x", count(tasks*piece, uint32(1))), wrap(t, "x", make([]uint32, piece))
			acc := newArray[uint32](t, "acc", piece)
			edit(acc).Read(false).Write(false)
			list := pieces(t, x)
			by := cruncher.NewScalar("by", uint32(7))
			section := []*cruncher.Task{
				task(t, cruncher.Params(acc, by), "grow", cruncher.Range{Global: piece}, withType(cruncher.SelectBegin)),
				task(t, cruncher.Params(acc, by), "grow", cruncher.Range{Global: piece}),
				task(t, cruncher.Params(y, acc), "tell", cruncher.Range{Global: piece}, withType(cruncher.SelectEnd)),
			}
			for _, d := range devices {
				check(t, p.AddDevice(d))
			}
			quiet := newArray[uint32](t, "acc", piece)
			edit(quiet).Write(false)
			everywhere := task(t, cruncher.Params(quiet, by), "grow", cruncher.Range{Global: piece}, withType(cruncher.Broadcast))
			enqueue(t, p, slices.Concat(list, section, []*cruncher.Task{everywhere})...) // a fast device may leave nothing else to others
			_, err := p.Finish(soon(t))
			fired := drivers[victim].IsLost()
			switch {
			case err == nil:
				same(t, "the section", y.Data(), slices.Repeat([]uint32{14}, piece))
			case !fired:
				t.Error(err)
			default: // in the middle of the section
				refused(t, "the section", err, cruncher.ErrStale)
				same(t, "the section", y.Data(), make([]uint32, piece))
			}
			for i, v := range x.Data() {
				if v != uint32(2*(i+1)) {
					t.Fatalf("element %d is %d", i, v)
				}
			}
			check(t, p.Close())
			unleaked(t, devices)
			return fired
		})
	}
}

// TestPoolReopen wants a device that came back to be out of the pool until it is added again.
func TestPoolReopen(t *testing.T) {
	devices, drivers := openFaulty(t, lineReferences, []failure{never})
	p := must[*cruncher.DevicePool](t)(cruncher.NewDevicePool(t.Context(), cruncher.Greedy, lineSource))
	t.Cleanup(func() { check(t, p.Close()) })
	check(t, p.AddDevice(devices[0]))
	x := wrap(t, "x", count(4*piece, uint32(1)))
	enqueue(t, p, pieces(t, x)...)
	_, err := p.Finish(soon(t))
	check(t, err)
	drivers[0].Lose()
	reopen(t, devices[0], lineReferences, never)
	enqueue(t, p, pieces(t, x)...)
	_, err = p.Finish(soon(t))
	refused(t, "what came back", err, gpu.ErrDeviceLost)
	check(t, p.AddDevice(devices[0]))
	_, err = p.Finish(soon(t))
	check(t, err)
	for i, v := range x.Data() {
		if v != uint32(4*(i+1)) {
			t.Fatalf("element %d is %d", i, v)
		}
	}
}

// newLine makes a device pipeline of two stages.
func newLine(t *testing.T, dev *gpu.Device, serial bool) (p *cruncher.DevicePipeline, from, to *cruncher.Array[uint32]) {
	t.Helper()
	from, to = newArray[uint32](t, "src", piece), newArray[uint32](t, "to", piece)
	mid := newArray[uint32](t, "mid", piece)
	step := func(kernel string) []cruncher.Step {
		return []cruncher.Step{{Kernels: kernel, Range: cruncher.Range{Global: piece}}}
	}
	p = must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), dev, lineSource,
		cruncher.Stage{Kernels: step("triple"), Inputs: []cruncher.Param{from}, Outputs: []cruncher.Param{mid}},
		cruncher.Stage{Kernels: step("late"), Inputs: []cruncher.Param{mid}, Outputs: []cruncher.Param{to}}))
	check(t, restart(p, serial))
	return p, from, to
}

// restart begins anew in a mode.
func restart(p *cruncher.DevicePipeline, serial bool) error {
	if serial {
		return p.Serial()
	}
	return p.Parallel()
}

// TestFeedFaults loses the device of a pipeline, which says so and writes nothing. When it has come back the pipeline can begin again.
func TestFeedFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 16, 48)
	const feeds = 5
	for _, serial := range []bool{true, false} {
		everyFault(t, 1, true, func(t *testing.T, _ int, plans []failure) bool {
			devices, drivers := openFaulty(t, lineReferences, plans)
			p, from, to := newLine(t, devices[0], serial)
			feed := func(n int) (came bool, err error) {
				for i := range from.Data() {
					check(t, from.Set(i, uint32(100*n+i)))
				}
				return p.Feed(soon(t))
			}
			result := func(n int) []uint32 {
				v := make([]uint32, piece)
				for i := range v {
					v[i] = uint32(100*n+i)*3 + 1
				}
				return v
			}
			for n := range feeds {
				before := slices.Clone(to.Data())
				came, err := feed(n)
				if err != nil {
					refused(t, "lost", err, gpu.ErrDeviceLost)
					same(t, "a feed that failed", to.Data(), before)
					break
				}
				if came {
					same(t, fmt.Sprint("feed ", n), to.Data(), result(n-p.Latency()))
				}
			}
			fired := drivers[0].IsLost()
			if fired {
				reopen(t, devices[0], lineReferences, never)
				before := slices.Clone(to.Data())
				if _, err := feed(0); err != nil { // what was on its way is gone
					if !errors.Is(err, cruncher.ErrStale) {
						refused(t, "what it had", err, gpu.ErrDeviceLost)
					}
					same(t, "a stale feed", to.Data(), before)
				}
				check(t, restart(p, serial))
				for n := range feeds {
					came, err := feed(n)
					check(t, err)
					if came != (n >= p.Latency()) {
						t.Errorf("feed %d after the loss: %v", n, came)
					}
					if came {
						same(t, "after the loss", to.Data(), result(n-p.Latency()))
					}
				}
			}
			check(t, p.Close())
			unleaked(t, devices)
			return fired
		})
	}
}

// TestPushFaults loses a device of a pipeline over several. The others do its part.
func TestPushFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 50, 150)
	everyFault(t, 2, true, func(t *testing.T, victim int, plans []failure) bool {
		devices, drivers := openFaulty(t, lineReferences, plans)
		var stages []cruncher.Stage
		for range 2 {
			stages = append(stages, cruncher.Stage{
				Devices: devices, WGSL: lineSource, Options: []cruncher.Option{even()},
				Inputs: []cruncher.Param{newArray[uint32](t, "src", piece)}, Outputs: []cruncher.Param{newArray[uint32](t, "to", piece)},
				Kernels: []cruncher.Step{
					{Kernels: "front", Range: cruncher.Range{Global: piece, Local: 2}},
					{Kernels: "back", Range: cruncher.Range{Global: piece - 3, Offset: 3, Local: 1}},
				},
			})
		}
		p := must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(), stages...))
		one, other := newChainModel(), make([]uint32, piece)
		for n := range 9 {
			in, out := wrap(t, "a", count(piece, uint32(n))), wrap(t, "b", other)
			came, err := p.Push(soon(t), cruncher.Params(in), cruncher.Params(out))
			check(t, err)
			want := one.push(in.Data())
			if came != (want != nil) {
				t.Errorf("push %d: %v", n, came)
			}
			if came {
				same(t, fmt.Sprint("push ", n), other, want)
			}
		}
		fired := drivers[victim].IsLost()
		check(t, p.Close())
		unleaked(t, devices)
		return fired
	})
}

// chainModel is what the stages of TestPushFaults make. Outputs have two buffers each.
type chainModel struct {
	pushes  int
	outputs [2][2][]uint32
	queue   [][]uint32 // results by push
}

func newChainModel() *chainModel {
	m := &chainModel{}
	for s := range m.outputs {
		for k := range m.outputs[s] {
			m.outputs[s][k] = make([]uint32, piece)
		}
	}
	return m
}

func (m *chainModel) push(in []uint32) []uint32 {
	v := slices.Clone(in)
	for s := range m.outputs {
		to := m.outputs[s][m.pushes%2]
		for i := range to {
			if to[i] += v[i]; i >= 3 {
				to[i] *= 5
			}
		}
		v = slices.Clone(to)
	}
	m.pushes++
	m.queue = append(m.queue, v)
	if m.pushes < 5 {
		return nil
	}
	return m.queue[m.pushes-5]
}
