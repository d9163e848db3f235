// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command pipelines is the program of web/demo/pipelines.html, which shows the task graphs of package matrix/graph/pipelines.
package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"syscall/js"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// server is what the page's commands act on. There is one thread.
type server struct {
	*page.Session
	devices []*gpu.Device
	busy    bool
	stopped bool // the run is to come to its end
	graph   *graph.Graph
	begun   time.Time
	took    time.Duration // of the last run
}

func main() { page.Main(serve) }

// exportPipelines tells the loader which of our programs this is.
//
//go:wasmexport sublet_pipelines
func exportPipelines() {} //nolint:unused // by Go

func serve(dev *gpu.Device, p page.Page) *page.Session {
	s := &server{devices: []*gpu.Device{dev}}
	s.Session = page.New(p, s, commands)
	return s.Session
}

var commands = []page.Spec[*server]{
	page.CmdEdges:      {Later: (*server).edges},
	page.CmdTrain:      {Later: (*server).train},
	page.CmdStop:       {Now: func(s *server, _ *page.Reader) any { s.stopped = true; return nil }},
	page.CmdTrace:      {Now: func(s *server, _ *page.Reader) any { return s.text((*graph.Graph).WriteTrace) }},
	page.CmdDOT:        {Now: func(s *server, _ *page.Reader) any { return s.text((*graph.Graph).WriteDOT) }},
	page.CmdGraphStats: {Now: (*server).stats},
}

// call calls a function of the page's. What it throws is an error.
func call(f any, args ...any) (v js.Value, err error) {
	err = page.Guard(func() { v = js.ValueOf(f).Invoke(args...) })
	return v, err
}

const (
	maxDevices = 4    // how often the adapter is opened at the most
	traced     = 2000 // dispatches that the page can see
	points     = 900  // examples to learn from

	// The picture of what the network decides has side by side points, from -edge to edge in both directions.
	side = 120
	edge = 2.4
)

// setup is what both runs are asked for.
type setup struct {
	devices, inFlight int
	config            graph.Config
}

// setup reads how many devices there are to be, the mode, whether to wait after each dispatch, and how many runs are in flight.
func (s *server) setup(r *page.Reader) setup {
	c := setup{devices: r.Int(), config: graph.Config{Trace: traced, Mode: graph.Mode(r.Word()), Sync: r.Bool()}, inFlight: r.Int()}
	if c.devices < 1 || c.devices > maxDevices {
		page.Invalid("1 to 4 devices")
	}
	return c
}

// open returns devices that work.
func (s *server) open(ctx context.Context, n int) []*gpu.Device {
	s.devices = slices.DeleteFunc(s.devices, func(d *gpu.Device) bool { return d.Usable() != nil && d.Reopen(ctx) != nil })
	for len(s.devices) < n {
		s.devices = append(s.devices, s.another(ctx))
	}
	return s.devices[:n]
}

// another opens a processor that none of the devices is, or the best one again. Software for graphics beside the driver simd is no other
// processor: both are the CPU.
func (s *server) another(ctx context.Context) *gpu.Device {
	at := func(p func(gpu.AdapterInfo) bool) bool {
		return slices.ContainsFunc(s.devices, func(d *gpu.Device) bool { return p(d.Info()) })
	}
	for a, err := range gpu.Adapters(ctx) {
		if err != nil || a.Info.Driver == "cpu" || at(func(i gpu.AdapterInfo) bool { return i.Name == a.Info.Name && i.Driver == a.Info.Driver }) {
			continue
		}
		if a.Info.Kind == driver.KindCPU && at(func(i gpu.AdapterInfo) bool { return i.Driver == "simd" }) {
			continue
		}
		if d, err := a.Open(ctx); err == nil {
			return d
		}
	}
	return page.Must(gpu.Open(ctx))
}

// run does a run of a graph's, one at a time.
func (s *server) run(g *graph.Graph, f func() error) (any, error) {
	if s.busy {
		_ = g.Teardown() // nothing has run
		return nil, fault.Fail("pipelines", graph.ErrBusy)
	}
	s.busy, s.stopped, s.graph, s.begun, s.took = true, false, g, time.Now(), 0
	defer func() {
		s.busy, s.took = false, time.Since(s.begun)
		_ = g.Teardown() // the trace and the statistics stay
	}()
	return nil, f()
}

// text returns what the graph writes.
func (s *server) text(write func(*graph.Graph, io.Writer) error) string {
	var b strings.Builder
	if s.graph == nil || write(s.graph, &b) != nil {
		return ""
	}
	return b.String()
}

// stats tells what the graph has done, times in milliseconds.
func (s *server) stats(*page.Reader) any {
	took := s.took
	if s.busy {
		took = time.Since(s.begun)
	}
	all := s.graph.Stats()
	tasks, lanes := []any{}, []any{}
	for _, t := range all.Tasks {
		tasks = append(tasks, page.Object(
			"name", t.Name, "runs", t.Dispatches, "devices", page.List(t.Devices), "run", ms(t.Run), "wait", ms(t.Wait),
		))
	}
	for _, l := range all.Devices {
		lanes = append(lanes, page.Object("name", l.Name, "runs", l.Dispatches, "busy", ms(l.Run)))
	}
	return page.Object(
		"took", ms(took), "tasks", tasks, "lanes", lanes, "blocks", all.Blocks, "clones", all.Clones, "up", all.BytesUp, "down", all.BytesDown,
	)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// edges runs the pipeline of images until the page stops it. The function frame returns frame n as bytes, or nothing if there are
// no more; without it they are of a moving scene. The function show gets what came of each. Arrays serve again for later frames.
func (s *server) edges(r *page.Reader) page.Work {
	set := s.setup(r)
	c := pipelines.EdgesConfig{Width: r.Int(), Height: r.Int(), Sigma: r.Float(), Gain: r.Float(), InFlight: set.inFlight}
	frame, show := js.ValueOf(r.Object()), r.Object()
	return func(ctx context.Context) (any, error) {
		e := page.Must(pipelines.NewEdges(s.open(ctx, set.devices), c, set.config))
		array := func(kind string, size int) js.Value { return js.Global().Get(kind).New(size) }
		pixels := func() js.Value { return array("Uint8ClampedArray", 4*c.Width*c.Height) }
		blurred, edges, histogram := pixels(), pixels(), array("Uint8Array", 4*256)
		inputs := []js.Value{pixels()}
		for range max(c.InFlight, 1) { // the page is shown frames that are on their way, too
			inputs = append(inputs, pixels())
		}
		next := func(n int, into []byte) (bool, error) {
			if frame.Type() == js.TypeFunction {
				v, err := call(frame, n)
				if err == nil && v.Truthy() {
					err = page.Guard(func() { s.Load(v, 0, into) })
				}
				if err != nil || !v.Truthy() {
					return false, err
				}
			} else {
				samples.Scene(into, c.Width, c.Height, n)
			}
			js.CopyBytesToJS(inputs[n%len(inputs)], into)
			return !s.stopped, nil
		}
		return s.run(e.Graph, func() error {
			return e.Run(ctx, next, func(f *pipelines.EdgesFrame) (bool, error) {
				js.CopyBytesToJS(blurred, f.Blurred)
				js.CopyBytesToJS(edges, f.Edges)
				js.CopyBytesToJS(histogram, matrix.Host(f.Histogram).Bytes)
				_, err := call(show, page.Object(
					"number", f.Number, "input", inputs[f.Number%len(inputs)], "blurred", blurred, "edges", edges,
					"histogram", histogram, "mean", f.Mean, "threshold", f.Threshold, "share", f.Share,
				))
				return !s.stopped, err
			})
		})
	}
}

// train trains the network until it has done its steps or the page stops it. The function shown gets the examples, numbers that
// are x, y and class one after the other; the function step the number, the loss and the share of errors of each step; the function
// picture a byte for each point of the picture, its class, and the share of all examples that are not found.
func (s *server) train(r *page.Reader) page.Work {
	set := s.setup(r)
	name, c := r.Text(), pipelines.TrainConfig{Hidden: r.Int(), Batch: r.Int(), Rate: r.Float(), Seed: 1, InFlight: set.inFlight}
	steps := r.Int()
	c.SaveEvery = r.Int()
	shown, step, picture := r.Object(), r.Object(), r.Object()
	return func(ctx context.Context) (any, error) {
		data := page.Must(samples.Points(name, points, 1))
		c.Features, c.Labels, c.Classes = data.Features, data.Labels, data.Classes
		t := page.Must(pipelines.NewTrain(s.open(ctx, set.devices), c, set.config))
		list := []any{}
		for i, l := range data.Labels {
			list = append(list, data.Features[2*i], data.Features[2*i+1], l)
		}
		var grid []float32
		for i := range side * side {
			at := func(k int) float32 { return edge * (2*float32(k)/(side-1) - 1) }
			grid = append(grid, at(i%side), at(i/side))
		}
		return s.run(t.Graph, func() error {
			if _, err := call(shown, list, edge, data.Classes); err != nil {
				return err
			}
			return t.Run(ctx, steps, func(now pipelines.Step) (bool, error) {
				_, err := call(step, now.Number, now.Loss, now.Errors)
				if err == nil && now.Weights != nil {
					classes := samples.Predict(now.Weights, grid)
					array := js.Global().Get("Uint8Array").New(len(classes))
					js.CopyBytesToJS(array, classes)
					_, err = call(picture, array, side, data.Errors(now.Weights))
				}
				return !s.stopped, err
			})
		})
	}
}
