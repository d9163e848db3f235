// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
)

// stageKernels: a stage multiplies by three, adds its own number and how often it ran, and looks at all of its input.
const stageKernels = `
fn begin(i: u32) { runs[i] = 100u; }
fn work(i: u32) { runs[i] = runs[i] + 1u; tmp[i] = in[i] * 3u + number + in[arrayLength(&in) - 1u - i]; }
fn last(i: u32) { out[i] = tmp[i] + runs[i]; }
fn both(i: u32) { out[i] = in[i] + more[i]; }
fn bad(i: u32) { out[i] = oops; }
`

const stageItems = 48

// stage makes stage number k. Its input and output are arrays of its own.
func newStage(t *testing.T, devices []*gpu.Device, k int, opts ...cruncher.Option) (s *cruncher.Stage, in, out *cruncher.Array[uint32]) {
	t.Helper()
	s = must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices, stageKernels, opts...))
	in, out = words(t, "in", stageItems, zero), words(t, "out", stageItems, zero)
	check(t, s.AddInputs(in))
	check(t, s.AddHidden(words(t, "runs", stageItems, zero), words(t, "tmp", stageItems, zero), cruncher.NewScalar("number", uint32(k))))
	check(t, s.AddOutputs(out))
	check(t, s.AddInitializers("begin", cruncher.Range{Global: stageItems}))
	check(t, s.AddKernels("work", cruncher.Range{Global: stageItems, Local: 4}))
	check(t, s.AddKernels("last", cruncher.Range{Global: stageItems, Local: 8}))
	return s, in, out
}

// chain makes a pipeline of stages on devices of their own.
type chain struct {
	p       *cruncher.Pipeline
	last    *cruncher.Stage
	in, out *cruncher.Array[uint32]
	devices []*gpu.Device
}

func newChain(t *testing.T, stages, perStage int, opts ...cruncher.Option) *chain {
	t.Helper()
	c := &chain{devices: openDevices(t, 2)}
	tidy(t, c.devices)
	var prev *cruncher.Stage
	for k := range stages {
		var mine []*gpu.Device
		for i := range perStage {
			mine = append(mine, c.devices[(k+i)%2])
		}
		var of []cruncher.Option
		if k == stages-1 {
			of = opts
		}
		s, in, out := newStage(t, mine, k, of...)
		if k == 0 {
			c.in = in
		} else if k%2 == 0 {
			check(t, s.AppendTo(prev))
		} else {
			check(t, prev.PrependTo(s))
		}
		c.out, prev = out, s
	}
	c.last = prev
	c.p = must[*cruncher.Pipeline](t)(prev.Pipeline(t.Context()))
	t.Cleanup(func() { check(t, c.p.Close()) })
	return c
}

// data is what is pushed first, second, ...
func data(push int) []uint32 {
	v := make([]uint32, stageItems)
	for i := range v {
		v[i] = uint32(i*i + 7*push)
	}
	return v
}

// through computes what the stages make of data that is their run'th, counted from 1.
func through(stages int, v []uint32, run int) []uint32 {
	for k := range stages {
		next := make([]uint32, len(v))
		for i := range v {
			next[i] = v[i]*3 + uint32(k) + v[len(v)-1-i] + 100 + uint32(run)
		}
		v = next
	}
	return v
}

// TestPipeline counts the pushes until results come, and compares all of them to a computation without a pipeline.
func TestPipeline(t *testing.T) {
	for stages := 1; stages <= 4; stages++ {
		for perStage := 1; perStage <= 2; perStage++ {
			for _, c := range []struct{ in, out bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
				latency := 2*stages - 1
				in, out := words(t, "any", stageItems, zero), words(t, "other", stageItems, zero)
				ch := newChain(t, stages, perStage)
				source, sink := ch.in, ch.out
				var from, to *cruncher.Group
				if c.in {
					source, from, latency = in, cruncher.Params(in), latency+1
				}
				if c.out {
					sink, to, latency = out, cruncher.Params(out), latency+1
				}
				for push := 1; push <= latency+5; push++ {
					copy(source.Data(), data(push))
					came := must[bool](t)(ch.p.Push(t.Context(), from, to))
					if came != (push >= latency) {
						t.Fatalf("%d stages, %+v: push %d says %v", stages, c, push, came)
					}
					if came {
						n := push - latency + 1
						equals(t, "results", sink.Data(), through(stages, data(n), n))
					}
				}
				runs := int64(1 + latency + 5) // with the initializers
				if c.in {
					runs-- // at the first push there are no data
				}
				got := ch.last.Cruncher().Traffic()
				if want := runs * 4 * stageItems; stages == 1 && perStage == 1 && (got.Up != want || got.Down != want) { // although there are two kernels
					t.Errorf("%+v: %+v in %d runs", c, got, runs)
				}
				check(t, ch.p.Close())
			}
		}
	}
}

// TestPipelineInPlace takes data from the array that results are written to.
func TestPipelineInPlace(t *testing.T) {
	ch := newChain(t, 2, 1)
	x := words(t, "x", stageItems, zero)
	copy(x.Data(), data(1))
	for push := 1; push <= 5; push++ {
		must[bool](t)(ch.p.Push(t.Context(), cruncher.Params(x), cruncher.Params(x)))
		if push < 5 {
			equals(t, "data", x.Data(), data(1))
		}
	}
	equals(t, "results", x.Data(), through(2, data(1), 1))
}

// TestPipelineEmpties pushes two, and then nothing until both are out.
func TestPipelineEmpties(t *testing.T) {
	ch := newChain(t, 3, 1)
	x, y := words(t, "x", stageItems, zero), words(t, "y", stageItems, zero)
	var came []int
	for push := 1; push <= 12; push++ {
		in := cruncher.Params()
		if push == 1 || push == 3 {
			copy(x.Data(), data(push))
			in = cruncher.Params(x)
		}
		if must[bool](t)(ch.p.Push(t.Context(), in, cruncher.Params(y))) {
			came = append(came, push)
			equals(t, "results", y.Data(), through(3, data(push-6), (push-6+1)/2))
		}
	}
	if len(came) != 2 || came[0] != 7 || came[1] != 9 {
		t.Errorf("results came at %v", came)
	}
}

// TestPipelineMixes changes between arrays of the stages and others.
func TestPipelineMixes(t *testing.T) {
	ch := newChain(t, 1, 1)
	x, y := words(t, "x", stageItems, zero), words(t, "y", stageItems, zero)
	copy(x.Data(), data(1))
	if must[bool](t)(ch.p.Push(t.Context(), cruncher.Params(x), nil)) {
		t.Error("results of nothing")
	}
	copy(ch.in.Data(), data(2))
	if !must[bool](t)(ch.p.Push(t.Context(), nil, nil)) { // x is computed
		t.Error("no results")
	}
	equals(t, "of data pushed", ch.out.Data(), through(1, data(1), 1))
	if must[bool](t)(ch.p.Push(t.Context(), nil, cruncher.Params(y))) {
		t.Error("results too soon")
	}
	if !must[bool](t)(ch.p.Push(t.Context(), cruncher.Params(), cruncher.Params(y))) {
		t.Error("no results at last")
	}
	equals(t, "of the stage's array", y.Data(), through(1, data(2), 2))
}

// TestPipelineFanOut gives one output to all inputs of the next stage.
func TestPipelineFanOut(t *testing.T) {
	devices := openDevices(t, 2)
	a, in, _ := newStage(t, devices[:1], 0)
	b := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices[1:], stageKernels))
	out := words(t, "out", stageItems, zero)
	check(t, b.AddInputs(words(t, "in", stageItems, zero), words(t, "more", stageItems, zero)))
	check(t, b.AddOutputs(out))
	check(t, b.AddKernels("both", cruncher.Range{Global: stageItems}))
	check(t, a.PrependTo(b))
	p := must[*cruncher.Pipeline](t)(a.Pipeline(t.Context()))
	copy(in.Data(), data(1))
	for push := 1; push <= 3; push++ {
		must[bool](t)(p.Push(t.Context(), nil, nil))
	}
	want := through(1, data(1), 1)
	for i := range want {
		want[i] *= 2
	}
	equals(t, "both", out.Data(), want)
	check(t, p.Close())
}

// TestPipelineRanges has kernels with ranges of their own write one output.
func TestPipelineRanges(t *testing.T) {
	for n := 1; n <= 2; n++ {
		s := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), openDevices(t, n), `
fn wide(i: u32) { out[i] = in[i] + 1u; }
fn few(i: u32) { out[i] = out[i] * 10u; }`))
		in, out := words(t, "in", stageItems, ordinal), words(t, "out", stageItems, zero)
		edit(in).PartialRead(true)
		check(t, s.AddInputs(in))
		check(t, s.AddOutputs(out))
		check(t, s.AddKernels("wide", cruncher.Range{Global: stageItems, Local: 8}))
		check(t, s.AddKernels("few", cruncher.Range{Global: 8, Offset: 20, Local: 1}))
		p := must[*cruncher.Pipeline](t)(s.Pipeline(t.Context()))
		for range 2 {
			must[bool](t)(p.Push(t.Context(), nil, nil))
		}
		for i, v := range out.Data() {
			want := uint32(i + 1)
			if i >= 20 && i < 28 {
				want *= 10
			}
			if v != want {
				t.Fatalf("%d devices: element %d is %d, want %d", n, i, v, want)
			}
		}
		check(t, p.Close())
	}
}

// fickle is a balancer that fails when told to.
type fickle struct {
	balance.Balancer
	fails *atomic.Bool
}

var errFickle = errors.New("not now")

func (f fickle) Split(r balance.Request) ([]int, error) {
	if f.fails.Load() {
		return nil, errFickle
	}
	return f.Balancer.Split(r)
}

// TestPipelineFails has the last stage fail now and then. The others do not compute anything twice.
func TestPipelineFails(t *testing.T) {
	var fails atomic.Bool
	b := fickle{must[balance.Balancer](t)(balance.New()), &fails}
	ch := newChain(t, 3, 2, cruncher.WithBalancer(b))
	x, y := words(t, "x", stageItems, zero), words(t, "y", stageItems, zero)
	results := 0
	for push := 1; push <= 12; push++ {
		copy(x.Data(), data(push))
		fails.Store(push%2 == 0 && push >= 6)
		came, err := ch.p.Push(t.Context(), cruncher.Params(x), cruncher.Params(y))
		if fails.Load() {
			isError(t, "the last stage", err, errFickle)
			_, err = ch.p.Push(t.Context(), nil, cruncher.Params(y))
			isError(t, "another push", err, gpu.ErrInvalid)
			fails.Store(false)
			came, err = ch.p.Push(t.Context(), cruncher.Params(x), cruncher.Params(y))
		}
		check(t, err)
		if came {
			results++
			equals(t, "results", y.Data(), through(3, data(push-6), push-6))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ch.p.Push(ctx, cruncher.Params(x), cruncher.Params(y))
	isError(t, "cancelled", err, context.Canceled)
	if must[bool](t)(ch.p.Push(t.Context(), cruncher.Params(), cruncher.Params(y))) {
		results++
		equals(t, "after the cancelled push", y.Data(), through(3, data(7), 7))
	}
	if results != 7 {
		t.Errorf("%d results", results)
	}
}

func TestPipelineMistakes(t *testing.T) {
	devices := openDevices(t, 1)
	tidy(t, devices)
	ctx := t.Context()
	r := cruncher.Range{Global: stageItems}
	a, in, out := newStage(t, devices, 0)
	b, _, _ := newStage(t, devices, 1)
	short := words(t, "in", 7, zero)
	wide := must[*cruncher.Array[float32]](t)(cruncher.NewArray[float32]("in", stageItems))
	readOnly, writeOnly := words(t, "ro", stageItems, zero), words(t, "wo", stageItems, zero)
	edit(readOnly).ReadOnly(true)
	edit(writeOnly).WriteOnly(true)
	closed := words(t, "closed", stageItems, zero)
	check(t, closed.Close())
	scalar := cruncher.NewScalar("s", uint32(1))
	_, nobody := cruncher.NewStage(t.Context(), nil, stageKernels)
	other := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices, stageKernels))
	_, empty := other.Pipeline(ctx)
	isError(t, "no kernel", empty, cruncher.ErrKernel)
	check(t, other.AddInputs(short))
	check(t, other.AddKernels("last", r))
	check(t, a.PrependTo(other))
	_, lengths := a.Pipeline(ctx)
	c, _, _ := newStage(t, devices, 0)
	d, _, _ := newStage(t, devices, 1)
	check(t, c.PrependTo(d))
	p := must[*cruncher.Pipeline](t)(d.Pipeline(ctx))
	push := func(in, out *cruncher.Group) error { _, err := p.Push(ctx, in, out); return err }
	_, twice := c.Pipeline(ctx)
	failing := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices, stageKernels))
	check(t, failing.AddOutputs(words(t, "out", stageItems, zero)))
	check(t, failing.AddInitializers("bad", r))
	check(t, failing.AddKernels("bad", r))
	_, compile := failing.Pipeline(ctx)
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"no device", nobody, cruncher.ErrDevices},
		{"branch", a.PrependTo(b), gpu.ErrInvalid},
		{"ring", other.PrependTo(a), gpu.ErrInvalid},
		{"with itself", b.AppendTo(b), gpu.ErrInvalid},
		{"nil stage", b.AppendTo(nil), gpu.ErrInvalid},
		{"empty stage", new(cruncher.Stage).AddInputs(in), gpu.ErrInvalid},
		{"lengths in the chain", lengths, cruncher.ErrLength},
		{"unknown kernel", b.AddKernels("nowhere", r), cruncher.ErrKernel},
		{"no kernel", b.AddKernels("", r), cruncher.ErrKernel},
		{"range", b.AddInitializers("begin", cruncher.Range{Global: -1}), cruncher.ErrRange},
		{"the same name", b.AddOutputs(short), cruncher.ErrName},
		{"scalar input", b.AddInputs(scalar), gpu.ErrInvalid},
		{"scalar output", b.AddOutputs(scalar), gpu.ErrInvalid},
		{"read-only output", b.AddOutputs(readOnly), gpu.ErrInvalid},
		{"write-only input", b.AddInputs(writeOnly), gpu.ErrInvalid},
		{"closed array", b.AddHidden(closed), gpu.ErrClosed},
		{"twice", twice, gpu.ErrInvalid},
		{"stage of a pipeline", d.AddKernels("last", r), gpu.ErrInvalid},
		{"initializer", compile, gpu.ErrCompile},
		{"too few", push(nil, cruncher.Params()), cruncher.ErrLength},
		{"too many", push(cruncher.Params(in, out), nil), cruncher.ErrLength},
		{"length", push(cruncher.Params(short), nil), cruncher.ErrLength},
		{"type", push(cruncher.Params(wide), nil), cruncher.ErrLength},
		{"scalar", push(cruncher.Params(scalar), nil), gpu.ErrInvalid},
		{"closed", push(cruncher.Params(closed), nil), gpu.ErrClosed},
		{"nil in a group", push(nil, cruncher.Params(nil)), gpu.ErrInvalid},
	} {
		isError(t, c.name, c.err, c.want)
	}
	check(t, push(nil, nil)) // nothing of that has moved anything
	check(t, p.Close())
	check(t, p.Close())
	isError(t, "closed pipeline", push(nil, nil), gpu.ErrClosed)
	isError(t, "no pipeline", func() error { _, err := (*cruncher.Pipeline)(nil).Push(ctx, nil, nil); return err }(), gpu.ErrClosed)
	check(t, new(cruncher.Pipeline).Close())
	check(t, (*cruncher.Pipeline)(nil).Close())
}

// TestPipelineSharedMemory refuses to write results where data are read at the same time.
func TestPipelineSharedMemory(t *testing.T) {
	devices := openDevices(t, 1)
	mem := make([]uint32, stageItems+1)
	for _, other := range [][]uint32{mem[1:], make([]uint32, stageItems)} {
		first := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices, `fn f(i: u32) { mid[i] = x[i]; }`))
		check(t, first.AddInputs(must[*cruncher.Array[uint32]](t)(cruncher.Wrap("x", mem[:stageItems]))))
		check(t, first.AddOutputs(words(t, "mid", stageItems, zero)))
		check(t, first.AddKernels("f", cruncher.Range{Global: stageItems}))
		last := must[*cruncher.Stage](t)(cruncher.NewStage(t.Context(), devices, `fn f(i: u32) { x[i] = mid[i]; }`))
		check(t, last.AddInputs(words(t, "mid", stageItems, zero)))
		check(t, last.AddOutputs(must[*cruncher.Array[uint32]](t)(cruncher.Wrap("x", other))))
		check(t, last.AddKernels("f", cruncher.Range{Global: stageItems}))
		check(t, last.AppendTo(first))
		p := must[*cruncher.Pipeline](t)(last.Pipeline(t.Context()))
		_, err := p.Push(t.Context(), nil, nil)
		if shared := &other[0] == &mem[1]; shared {
			isError(t, "shared memory", err, gpu.ErrInvalid)
		} else {
			check(t, err)
		}
		check(t, p.Close())
	}
}

// TestPipelineClose closes a pipeline while it is pushed.
func TestPipelineClose(t *testing.T) {
	ch := newChain(t, 2, 2)
	started, ended := make(chan struct{}), make(chan error)
	go func() {
		for i := 0; ; i++ {
			if _, err := ch.p.Push(context.Background(), nil, nil); err != nil {
				ended <- err
				return
			}
			if i == 3 {
				close(started)
			}
		}
	}()
	<-started
	check(t, ch.p.Close())
	isError(t, "the push", <-ended, gpu.ErrClosed)
}
