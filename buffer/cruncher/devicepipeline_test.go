// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Stages that keep, hand on and count. The first looks at bytes.
const feedKernels = `
fn first(i: u32) { runs[i] = runs[i] + 1u; a[i] = in[i] * 3u + u32(small[i]) + runs[i] * 1000u; }
fn middle(i: u32) { kept[i] = kept[i] + a[i]; b[i] = kept[i] + side[i]; }
fn last(i: u32) { out[i] = b[i] * 2u; low[i] = b[i] & 0xffu; }
fn bad(i: u32) { out[i] = oops; }
`

const feedItems = 40

// feeder is a pipeline of three stages.
type feeder struct {
	p             *cruncher.DevicePipeline
	dev           *gpu.Device
	in, side, out *cruncher.Array[uint32]
	small, low    *cruncher.Array[uint8]
	want          [][2][]uint32 // of each feed
	kept          []uint32
}

func newFeeder(t *testing.T, serial bool) *feeder {
	t.Helper()
	f := &feeder{dev: openDevices(t, 1)[0], kept: make([]uint32, feedItems)}
	tidy(t, []*gpu.Device{f.dev})
	array := func(name string) *cruncher.Array[uint32] { return words(t, name, feedItems, zero) }
	f.in, f.side, f.out = array("in"), array("side"), array("out")
	f.small = must[*cruncher.Array[uint8]](t)(cruncher.Wrap("small", make([]uint8, feedItems)))
	f.low = must[*cruncher.Array[uint8]](t)(cruncher.NewArray[uint8]("low", feedItems))
	a, b := array("a"), array("b")
	step := func(kernel string) []cruncher.Step {
		return []cruncher.Step{{Kernels: kernel, Range: cruncher.Range{Global: feedItems, Local: 8}}}
	}
	type list = []cruncher.Param
	f.p = must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), f.dev, feedKernels,
		cruncher.Stage{Kernels: step("first"), Inputs: list{f.in, f.small}, Hidden: list{array("runs")}, Outputs: list{a}},
		cruncher.Stage{Kernels: step("middle"), Inputs: list{f.side, a}, Hidden: list{array("kept")}, Outputs: list{b}},
		cruncher.Stage{Kernels: step("last"), Inputs: list{b}, Outputs: list{f.out, f.low}}))
	t.Cleanup(func() { check(t, f.p.Close()) })
	if serial {
		check(t, f.p.Serial())
	}
	return f
}

// set writes the data of a feed, and notes what is to come of them. The side input of the second stage is that of the feed at
// which that stage computes them.
func (f *feeder) set(t *testing.T, feed int) {
	t.Helper()
	for i := range feedItems {
		f.in.Data()[i], f.small.Data()[i], f.side.Data()[i] = uint32(i+feed*feed), uint8(i*7+feed), uint32(feed*100000)
	}
	want := [2][]uint32{make([]uint32, feedItems), make([]uint32, feedItems)}
	lag := 1
	if f.p.Latency() == 0 {
		lag = 0
	}
	for i := range feedItems {
		a := uint32(i+feed*feed)*3 + uint32(uint8(i*7+feed)) + uint32(feed+1)*1000
		f.kept[i] += a
		b := f.kept[i] + uint32((feed+lag)*100000)
		want[0][i], want[1][i] = b*2, b&0xff
	}
	f.want = append(f.want, want)
}

// look compares the outputs to what is to come of a feed.
func (f *feeder) look(t *testing.T, feed int) {
	t.Helper()
	equals(t, "out", f.out.Data(), f.want[feed][0])
	low := make([]uint32, feedItems)
	for i, v := range f.low.Data() {
		low[i] = uint32(v)
	}
	equals(t, "low", low, f.want[feed][1])
}

// TestDevicePipeline feeds in both modes, in all ways of feeding.
func TestDevicePipeline(t *testing.T) {
	for _, serial := range []bool{false, true} {
		f := newFeeder(t, serial)
		latency := 3
		if serial {
			latency = 0
		}
		if f.p.Latency() != latency {
			t.Errorf("latency %d", f.p.Latency())
		}
		for feed := range 10 {
			f.set(t, feed)
			var came bool
			var err error
			if feed%2 == 0 {
				came, err = f.p.Feed(t.Context())
			} else {
				check(t, f.p.FeedBegin(t.Context()))
				for i := range feedItems {
					f.in.Data()[i] = 12345 // it was taken
				}
				came, err = f.p.FeedEnd(t.Context())
			}
			check(t, err)
			if came != (feed >= latency) {
				t.Fatalf("serial %v: feed %d says %v", serial, feed, came)
			}
			if came {
				f.look(t, feed-latency)
			}
		}
		// in, side and small go up; out and low come back once they have been computed. Nothing else moves.
		sides := 10
		if !serial {
			sides-- // the second stage has nothing to do at the first feed
		}
		want := cruncher.Traffic{Up: int64((10*(4+1) + sides*4) * feedItems), Down: int64((10 - latency) * (4 + 1) * feedItems)}
		if got := f.p.Traffic(); got != want {
			t.Errorf("serial %v: %+v, want %+v", serial, got, want)
		}
	}
}

// TestDevicePipelineStops stops and resumes what goes up and comes back.
func TestDevicePipelineStops(t *testing.T) {
	dev := openDevices(t, 1)[0]
	tidy(t, []*gpu.Device{dev})
	x, y := words(t, "x", 16, ordinal), words(t, "y", 16, zero)
	p := must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), dev, `fn f(i: u32) { y[i] = x[i] + k; }`, cruncher.Stage{
		Kernels: []cruncher.Step{{Kernels: "f", Range: cruncher.Range{Global: 16}}},
		Inputs:  []cruncher.Param{x}, Hidden: []cruncher.Param{cruncher.NewScalar("k", uint32(5))}, Outputs: []cruncher.Param{y},
	}))
	check(t, p.Serial())
	for feed, c := range []struct {
		stop     bool
		up, want uint32
	}{{false, 64, 5}, {true, 64, 5}, {true, 64, 5}, {false, 128, 35}, {true, 128, 35}} {
		x.Data()[0] = uint32(10 * feed)
		if c.stop {
			check(t, p.StopTransmission(0))
		} else {
			check(t, p.StopTransmission())
		}
		if came := must[bool](t)(p.Feed(t.Context())); came == c.stop {
			t.Errorf("feed %d says %v", feed, came)
		}
		if got := p.Traffic(); got.Up != int64(c.up) || got.Down != int64(c.up) || y.Data()[0] != c.want {
			t.Errorf("feed %d: %+v, %d", feed, got, y.Data()[0])
		}
	}
	check(t, p.Close())
}

// TestDevicePipelineFails cancels feeds; nothing is computed twice.
func TestDevicePipelineFails(t *testing.T) {
	for _, serial := range []bool{false, true} {
		f := newFeeder(t, serial)
		latency := f.p.Latency()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for feed := range 8 {
			f.set(t, feed)
			_, err := f.p.Feed(cancelled)
			isError(t, "cancelled", err, context.Canceled)
			if feed%2 == 1 {
				check(t, f.p.FeedBegin(t.Context()))
				_, err = f.p.FeedEnd(cancelled)
				isError(t, "cancelled at the end", err, context.Canceled)
			}
			if must[bool](t)(f.p.Feed(t.Context())) {
				f.look(t, feed-latency)
			}
		}
	}
}

// TestDevicePipelineModes changes the mode in the middle. What was on its way is lost, what is resident is not.
func TestDevicePipelineModes(t *testing.T) {
	f := newFeeder(t, true)
	for feed := range 6 {
		if feed == 2 {
			check(t, f.p.Parallel())
		}
		f.set(t, feed)
		if came := must[bool](t)(f.p.Feed(t.Context())); came != (feed < 2 || feed >= 5) {
			t.Errorf("feed %d says %v", feed, came)
		} else if came {
			f.look(t, feed-f.p.Latency())
		}
	}
}

func TestDevicePipelineMistakes(t *testing.T) {
	devices := openDevices(t, 1)
	tidy(t, devices)
	ctx := t.Context()
	type list = []cruncher.Param
	x, y, out := words(t, "x", 16, zero), words(t, "y", 16, zero), words(t, "out", 16, zero)
	readOnly := words(t, "out", 16, zero)
	edit(readOnly).ReadOnly(true)
	short, shortParts := words(t, "out", 15, zero), words(t, "x", 15, zero)
	edit(shortParts).PartialRead(true)
	last := []cruncher.Step{{Kernels: "last", Range: cruncher.Range{Global: 16}}}
	stage := func(in, hidden, out list) cruncher.Stage {
		return cruncher.Stage{Kernels: last, Inputs: in, Hidden: hidden, Outputs: out}
	}
	scalar := cruncher.NewScalar("s", uint32(1))
	for _, c := range []struct {
		name   string
		stages []cruncher.Stage
		want   error
	}{
		{"no stage", nil, kernel.ErrKernel},
		{"no step", []cruncher.Stage{{}}, kernel.ErrKernel},
		{"no kernel", []cruncher.Stage{{Kernels: []cruncher.Step{{Kernels: " ", Range: last[0].Range}}}}, kernel.ErrKernel},
		{"unknown kernel", []cruncher.Stage{{Kernels: []cruncher.Step{{Kernels: "nowhere", Range: last[0].Range}}}}, kernel.ErrKernel},
		{"range", []cruncher.Stage{{Kernels: []cruncher.Step{{Kernels: "last", Range: cruncher.Range{Global: -1}}}}}, cruncher.ErrRange},
		{"devices of its own", []cruncher.Stage{{Kernels: last, Devices: devices}}, gpu.ErrInvalid},
		{"initializers", []cruncher.Stage{{Kernels: last, Initializers: last}}, gpu.ErrInvalid},
		{"twice in a stage", []cruncher.Stage{stage(list{x}, list{x}, nil)}, cruncher.ErrName},
		{"scalar input", []cruncher.Stage{stage(list{scalar}, nil, nil)}, gpu.ErrInvalid},
		{"read-only output", []cruncher.Stage{stage(nil, nil, list{readOnly})}, gpu.ErrInvalid},
		{"output of two", []cruncher.Stage{stage(nil, nil, list{out}), stage(nil, nil, list{out})}, gpu.ErrInvalid},
		{"transition of three", []cruncher.Stage{stage(nil, nil, list{x}), stage(list{x}, nil, list{y}), stage(list{x}, nil, nil)}, gpu.ErrInvalid},
		{"short output", []cruncher.Stage{stage(nil, nil, list{short})}, cruncher.ErrLength},
		{"short input by parts", []cruncher.Stage{stage(list{shortParts}, nil, list{out})}, cruncher.ErrLength},
		{"hidden in two", []cruncher.Stage{stage(nil, list{x}, nil), stage(nil, list{x}, nil)}, gpu.ErrInvalid},
	} {
		_, err := cruncher.NewDevicePipeline(ctx, devices[0], feedKernels, c.stages...)
		isError(t, c.name, err, c.want)
	}
	edit(short).WriteAll(true)
	check(t, must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(ctx, devices[0], feedKernels, stage(list{words(t, "x", 1, zero)}, nil, list{short}))).Close())
	_, nobody := cruncher.NewDevicePipeline(ctx, nil, feedKernels)
	isError(t, "no device", nobody, gpu.ErrInvalid)
	p := must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(ctx, devices[0], feedKernels, cruncher.Stage{
		Kernels: []cruncher.Step{{Kernels: "bad", Range: cruncher.Range{Global: 16}}}, Outputs: list{out},
	}))
	_, compile := p.Feed(ctx)
	isError(t, "does not compile", compile, gpu.ErrCompile)
	_, noBegin := p.FeedEnd(ctx)
	isError(t, "no begin", noBegin, gpu.ErrInvalid)
	isError(t, "no such stage", p.StopTransmission(1), gpu.ErrInvalid)
	check(t, p.Close())
	_, err := p.Feed(ctx)
	isError(t, "closed", err, gpu.ErrClosed)
	isError(t, "closed for modes", p.Serial(), gpu.ErrClosed)
	check(t, new(cruncher.DevicePipeline).Close())
	check(t, (*cruncher.DevicePipeline)(nil).Close())
}

// TestDevicePipelineClose closes a pipeline between begin and end, and while it is fed.
func TestDevicePipelineClose(t *testing.T) {
	for _, serial := range []bool{false, true} {
		f := newFeeder(t, serial)
		f.set(t, 0)
		check(t, f.p.FeedBegin(t.Context()))
		isError(t, "begun twice", f.p.FeedBegin(t.Context()), gpu.ErrInvalid)
		isError(t, "mode while begun", f.p.Serial(), gpu.ErrInvalid)
		check(t, f.p.Close())
		_, err := f.p.FeedEnd(t.Context())
		isError(t, "end", err, gpu.ErrClosed)
		check(t, f.p.Close())

		f = newFeeder(t, serial)
		started, ended := make(chan struct{}), make(chan error)
		go func() {
			for i := 0; ; i++ {
				if _, err := f.p.Feed(context.Background()); err != nil {
					ended <- err
					return
				}
				if i == 5 {
					close(started)
				}
			}
		}()
		<-started
		check(t, f.p.Close())
		isError(t, "the feed", <-ended, gpu.ErrClosed)
	}
}

// TestDevicePipelineLost closes the device under a pipeline.
func TestDevicePipelineLost(t *testing.T) {
	f := newFeeder(t, true)
	f.set(t, 0)
	must[bool](t)(f.p.Feed(t.Context()))
	check(t, f.dev.Close())
	if _, err := f.p.Feed(t.Context()); err == nil {
		t.Error("a closed device computes")
	}
	f.look(t, 0) // what was there stays
}
