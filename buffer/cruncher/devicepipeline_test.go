// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
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
	stages        []*cruncher.DeviceStage
	in, side, out *cruncher.Array[uint32]
	small, low    *cruncher.Array[uint8]
	want          [][2][]uint32 // of each feed
	kept          []uint32
}

func newFeeder(t *testing.T, serial bool) *feeder {
	t.Helper()
	f := &feeder{dev: openDevices(t, 1)[0], kept: make([]uint32, feedItems)}
	tidy(t, []*gpu.Device{f.dev})
	f.p = must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), f.dev, feedKernels))
	t.Cleanup(func() { check(t, f.p.Close()) })
	check(t, f.p.SetSerial(serial))
	array := func(name string) *cruncher.Array[uint32] { return words(t, name, feedItems, zero) }
	f.in, f.side, f.out = array("in"), array("side"), array("out")
	f.small = must[*cruncher.Array[uint8]](t)(cruncher.Wrap("small", make([]uint8, feedItems)))
	f.low = must[*cruncher.Array[uint8]](t)(cruncher.NewArray[uint8]("low", feedItems))
	a, b := array("a"), array("b")
	for k, bound := range []map[cruncher.ArrayKind][]cruncher.Param{
		{cruncher.Input: {f.in, f.small}, cruncher.Internal: {array("runs")}, cruncher.Transition: {a}},
		{cruncher.Input: {f.side}, cruncher.Internal: {array("kept")}, cruncher.Transition: {a, b}},
		{cruncher.Output: {f.out, f.low}, cruncher.Transition: {b}},
	} {
		s := must[*cruncher.DeviceStage](t)(cruncher.NewDeviceStage([]string{"first", "middle", "last"}[k], cruncher.Range{Global: feedItems, Local: 8}))
		for kind, arrays := range bound {
			check(t, s.Bind(kind, arrays...))
		}
		check(t, f.p.AddStage(s))
		f.stages = append(f.stages, s)
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
			switch feed % 3 {
			case 0:
				came, err = f.p.Feed(t.Context())
			case 1:
				called := 0
				came, err = f.p.FeedAsync(t.Context(), func() { called++ })
				if called != 1 {
					t.Errorf("called %d times", called)
				}
			default:
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
	p := must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), dev, `fn f(i: u32) { y[i] = x[i] + k; }`))
	check(t, p.SetSerial(true))
	s := must[*cruncher.DeviceStage](t)(cruncher.NewDeviceStage("f", cruncher.Range{Global: 16}))
	x, y := words(t, "x", 16, ordinal), words(t, "y", 16, zero)
	check(t, s.Bind(cruncher.Input, x, cruncher.NewScalar("k", uint32(5))))
	check(t, s.Bind(cruncher.Output, y))
	check(t, p.AddStage(s))
	for feed, c := range []struct {
		stop     bool
		up, want uint32
	}{{false, 64, 5}, {true, 64, 5}, {true, 64, 5}, {false, 128, 35}, {true, 128, 35}} {
		x.Data()[0] = uint32(10 * feed)
		s.StopTransmission(c.stop)
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
			check(t, f.p.SetSerial(false))
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
	r := cruncher.Range{Global: 16}
	_, nobody := cruncher.NewDevicePipeline(t.Context(), nil, feedKernels)
	_, noKernel := cruncher.NewDeviceStage(" ", r)
	_, noRange := cruncher.NewDeviceStage("last", cruncher.Range{Global: -1})
	p := must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), devices[0], feedKernels))
	stage := func(kind cruncher.ArrayKind, arrays ...cruncher.Param) *cruncher.DeviceStage {
		s := must[*cruncher.DeviceStage](t)(cruncher.NewDeviceStage("bad", r))
		check(t, s.Bind(kind, arrays...))
		return s
	}
	_, noStage := p.Feed(ctx)
	x, out := words(t, "x", 16, zero), words(t, "out", 16, zero)
	s := stage(cruncher.Transition, x)
	unknown, twice := s.Bind(9, out), s.Bind(cruncher.Input, x)
	check(t, s.Bind(cruncher.Output, out))
	check(t, p.AddStage(s))
	_, alone := p.Feed(ctx)
	again, shared := p.AddStage(s), p.AddStage(stage(cruncher.Output, out))
	check(t, p.AddStage(stage(cruncher.Transition, x)))
	third := p.AddStage(stage(cruncher.Transition, x))
	_, compile := p.Feed(ctx)
	_, noBegin := p.FeedEnd(ctx)
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"no device", nobody, gpu.ErrInvalid},
		{"no kernel", noKernel, cruncher.ErrKernel},
		{"range", noRange, cruncher.ErrRange},
		{"no stage", noStage, cruncher.ErrKernel},
		{"kind", unknown, gpu.ErrInvalid},
		{"bound twice", twice, cruncher.ErrName},
		{"transition of one", alone, gpu.ErrInvalid},
		{"stage twice", again, gpu.ErrInvalid},
		{"output of two", shared, gpu.ErrInvalid},
		{"transition of three", third, gpu.ErrInvalid},
		{"does not compile", compile, gpu.ErrCompile},
		{"no begin", noBegin, gpu.ErrInvalid},
		{"nil stage", p.AddStage(nil), gpu.ErrInvalid},
		{"empty stage", p.AddStage(new(cruncher.DeviceStage)), gpu.ErrInvalid},
		{"bound late", s.Bind(cruncher.Input, words(t, "z", 1, zero)), gpu.ErrInvalid},
	} {
		isError(t, c.name, c.err, c.want)
	}
	check(t, p.Close())
	_, err := p.Feed(ctx)
	isError(t, "closed", err, gpu.ErrClosed)
	isError(t, "closed for stages", p.AddStage(stage(cruncher.Input, x)), gpu.ErrClosed)
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
		isError(t, "mode while begun", f.p.SetSerial(true), gpu.ErrInvalid)
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
