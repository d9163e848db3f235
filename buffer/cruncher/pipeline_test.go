// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
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
func newStage(t *testing.T, devices []*gpu.Device, k int, opts ...cruncher.Option) (s cruncher.Stage, in, out *cruncher.Array[uint32]) {
	t.Helper()
	in, out = words(t, "in", stageItems, zero), words(t, "out", stageItems, zero)
	return cruncher.Stage{
		Devices: devices, WGSL: stageKernels, Options: opts,
		Inputs:       []cruncher.Param{in},
		Hidden:       []cruncher.Param{words(t, "runs", stageItems, zero), words(t, "tmp", stageItems, zero), cruncher.NewScalar("number", uint32(k))},
		Outputs:      []cruncher.Param{out},
		Initializers: []cruncher.Step{{Kernels: "begin", Range: cruncher.Range{Global: stageItems}}},
		Kernels: []cruncher.Step{
			{Kernels: "work", Range: cruncher.Range{Global: stageItems, Local: 4}},
			{Kernels: "last", Range: cruncher.Range{Global: stageItems, Local: 8}},
		},
	}, in, out
}

// chain makes a pipeline of stages on devices of their own.
type chain struct {
	p       *cruncher.Pipeline
	last    int
	in, out *cruncher.Array[uint32]
	devices []*gpu.Device
}

func newChain(t *testing.T, stages, perStage int, opts ...cruncher.Option) *chain {
	t.Helper()
	c := &chain{devices: openDevices(t, 2)}
	tidy(t, c.devices)
	var list []cruncher.Stage
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
		}
		c.out, c.last = out, k
		list = append(list, s)
	}
	c.p = must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(), list...))
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
				var from, to cruncher.Param
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
				got := ch.p.Cruncher(ch.last).Traffic()
				const once = 4 * stageItems // although there are two kernels, of which one writes the output
				if stages == 1 && perStage == 1 && (got.Up != runs*once || got.Down != (runs-1)*once) {
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
	out := words(t, "out", stageItems, zero)
	p := must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(), a, cruncher.Stage{
		Devices: devices[1:], WGSL: stageKernels,
		Inputs:  []cruncher.Param{words(t, "in", stageItems, zero), words(t, "more", stageItems, zero)},
		Outputs: []cruncher.Param{out},
		Kernels: []cruncher.Step{{Kernels: "both", Range: cruncher.Range{Global: stageItems}}},
	}))
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
		in, out := words(t, "in", stageItems, ordinal), words(t, "out", stageItems, zero)
		edit(in).PartialRead(true)
		p := must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(), cruncher.Stage{
			Devices: openDevices(t, n), WGSL: "fn wide(i: u32) { out[i] = in[i] + 1u; }\nfn few(i: u32) { out[i] = out[i] * 10u; }",
			Inputs: []cruncher.Param{in}, Outputs: []cruncher.Param{out},
			Kernels: []cruncher.Step{
				{Kernels: "wide", Range: cruncher.Range{Global: stageItems, Local: 8}},
				{Kernels: "few", Range: cruncher.Range{Global: 8, Offset: 20, Local: 1}},
			},
		}))
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
	b := fickle{balance.New(), &fails}
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
			isError(t, "another push", err, errFickle)
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
	p := must[*cruncher.Pipeline](t)(cruncher.NewPipeline(ctx, a, b))
	push := func(in, out cruncher.Param) error { _, err := p.Push(ctx, in, out); return err }
	made := func(change func(s *cruncher.Stage)) error {
		s := a
		change(&s)
		_, err := cruncher.NewPipeline(ctx, s)
		return err
	}
	none := func(stages ...cruncher.Stage) error { _, err := cruncher.NewPipeline(ctx, stages...); return err }
	step := func(kernels string, r cruncher.Range) []cruncher.Step {
		return []cruncher.Step{{Kernels: kernels, Range: r}}
	}
	type list = []cruncher.Param
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"no stage", none(), gpu.ErrInvalid},
		{"no device", made(func(s *cruncher.Stage) { s.Devices = nil }), cruncher.ErrDevices},
		{"empty stage", none(a, cruncher.Stage{}), cruncher.ErrDevices},
		{"no kernel", made(func(s *cruncher.Stage) { s.Kernels = nil }), kernel.ErrKernel},
		{"lengths in the chain", none(a, cruncher.Stage{Devices: devices, WGSL: stageKernels, Inputs: list{short}, Kernels: a.Kernels}), cruncher.ErrLength},
		{"unknown kernel", made(func(s *cruncher.Stage) { s.Kernels = step("nowhere", r) }), kernel.ErrKernel},
		{"no name", made(func(s *cruncher.Stage) { s.Kernels = step("", r) }), kernel.ErrKernel},
		{"range", made(func(s *cruncher.Stage) { s.Initializers = step("begin", cruncher.Range{Global: -1}) }), cruncher.ErrRange},
		{"the same name", made(func(s *cruncher.Stage) { s.Outputs = list{short} }), cruncher.ErrName},
		{"scalar input", made(func(s *cruncher.Stage) { s.Inputs = list{scalar} }), gpu.ErrInvalid},
		{"scalar output", made(func(s *cruncher.Stage) { s.Outputs = list{scalar} }), gpu.ErrInvalid},
		{"read-only output", made(func(s *cruncher.Stage) { s.Outputs = list{readOnly} }), gpu.ErrInvalid},
		{"write-only input", made(func(s *cruncher.Stage) { s.Inputs = list{writeOnly} }), gpu.ErrInvalid},
		{"closed array", made(func(s *cruncher.Stage) { s.Hidden = list{closed} }), gpu.ErrClosed},
		{"nil array", made(func(s *cruncher.Stage) { s.Hidden = list{nil} }), gpu.ErrInvalid},
		{"initializer", made(func(s *cruncher.Stage) { s.Initializers = step("bad", r) }), gpu.ErrCompile},
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

// TestPipelineSharedMemory writes results where data are read at the same time.
func TestPipelineSharedMemory(t *testing.T) {
	devices := openDevices(t, 1)
	mem := make([]uint32, stageItems+1)
	stage := func(wgsl string, in, out cruncher.Param) cruncher.Stage {
		return cruncher.Stage{
			Devices: devices, WGSL: wgsl, Inputs: []cruncher.Param{in}, Outputs: []cruncher.Param{out},
			Kernels: []cruncher.Step{{Kernels: "f", Range: cruncher.Range{Global: stageItems}}},
		}
	}
	p := must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(),
		stage(`fn f(i: u32) { mid[i] = x[i]; }`, wrap(t, "x", mem[:stageItems]), words(t, "mid", stageItems, zero)),
		stage(`fn f(i: u32) { x[i] = mid[i]; }`, words(t, "mid", stageItems, zero), wrap(t, "x", mem[1:]))))
	for push := 1; push <= 6; push++ {
		copy(mem, data(push))
		if came := must[bool](t)(p.Push(t.Context(), nil, nil)); came {
			equals(t, "results", mem[1:], data(push-2))
		} else {
			equals(t, "data", mem[:stageItems], data(push))
		}
	}
	check(t, p.Close())
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

// strange is memory that only its own functions know.
type strange []byte

func (m strange) Load(at int, into []byte) int { return copy(into, m[at:]) }

func (m strange) Store(at int, from []byte) int { return copy(m[at:], from) }

// TestPipelineForeign pushes memory that is not Go's, such as that of a page, and memory that has become shorter than it was.
func TestPipelineForeign(t *testing.T) {
	c := newChain(t, 1, 1)
	mem := make(strange, 4+4*stageItems)
	for i := range stageItems {
		mem[4+4*i] = byte(i)
	}
	push := func(mem strange, at int) (bool, error) {
		a := must[*cruncher.Any](t)(cruncher.WrapHost("a", dtype.Uint32, gpu.Host{Foreign: mem, Offset: at, Size: 4 * stageItems}, nil))
		return c.p.Push(t.Context(), a, nil)
	}
	for n := range 2 {
		came, err := push(mem, 4)
		check(t, err)
		if came != (n == 1) {
			t.Errorf("push %d brings %t", n, came)
		}
	}
	for i, v := range c.out.Data() {
		if want := uint32(3*i + stageItems - 1 - i + 101); v != want {
			t.Fatalf("element %d is %d, want %d", i, v, want)
		}
	}
	_, err := push(mem[:8], 4)
	refused(t, "memory that is shorter", err, gpu.ErrInvalid)
	a := must[*cruncher.Any](t)(cruncher.WrapHost("a", dtype.Uint32, gpu.Host{Foreign: 5, Size: 4 * stageItems}, nil))
	_, err = c.p.Push(t.Context(), a, nil)
	refused(t, "memory that nobody knows", err, gpu.ErrUnsupported)
}
