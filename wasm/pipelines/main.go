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
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/graph"
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

// maxDevices bounds how often the adapter is opened.
const maxDevices = 4

// traced is how many dispatches the page can see.
const traced = 2000

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
		s.devices = append(s.devices, page.Must(gpu.Open(ctx)))
	}
	return s.devices[:n]
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
