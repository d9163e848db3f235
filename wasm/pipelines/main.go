// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command pipelines is the program of web/demo/pipelines.html, which shows the task graphs of package matrix/graph/pipelines. It
// works with Go's own wasm_exec.js.
package main

import (
	"context"
	"io"
	"strings"
	"syscall/js"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// startKey is the symbol under which the page leaves what it wants called. It is gone as soon as it is read.
const startKey = "sublet.pipelines"

func main() {
	key := js.Global().Get("Symbol").Call("for", startKey)
	reflect := js.Global().Get("Reflect")
	start := reflect.Call("get", js.Global(), key)
	reflect.Call("deleteProperty", js.Global(), key)
	if start.Type() != js.TypeObject {
		println("pipelines: this program belongs to pipelines.html")
		return
	}
	p := &page{}
	dev, err := gpu.Open(context.Background())
	if err != nil {
		start.Get("failed").Invoke(gpu.Code(err), err.Error())
		return
	}
	p.devices = append(p.devices, dev)
	info := dev.Info()
	start.Get("ready").Invoke(map[string]any{
		"info":  map[string]any{"driver": info.Driver, "name": info.Name, "vendor": info.Vendor, "backend": info.Backend, "kind": info.Kind.String()},
		"edges": promising(p.edges),
		"train": promising(p.train),
		"stop":  calling(func() any { p.stopped = true; return nil }),
		"trace": calling(func() any { return p.text((*graph.Graph).WriteTrace) }),
		"dot":   calling(func() any { return p.text((*graph.Graph).WriteDOT) }),
		"stats": calling(func() any { return p.stats() }),
	})
	select {} // the page calls from here on
}

// page is what the functions that the page calls have in common. There is one thread.
type page struct {
	devices []*gpu.Device
	busy    bool
	stopped bool // the run is to come to its end
	graph   *graph.Graph
	begun   time.Time
	took    time.Duration // of the last run
}

// calling makes a function of JavaScript's that answers at once. What it calls takes no longer than the graph's lock.
func calling(f func() any) js.Func {
	return js.FuncOf(func(js.Value, []js.Value) any { return f() })
}

// promising makes a function of JavaScript's that takes options and functions to call, and returns a promise.
func promising(f func(options, hooks js.Value) error) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		args = append(args, js.Undefined(), js.Undefined())
		options, hooks := args[0], args[1]
		var executor js.Func
		executor = js.FuncOf(func(_ js.Value, settle []js.Value) any {
			executor.Release()
			go func() {
				err := protect(func() error { return f(options, hooks) })
				if err == nil {
					settle[0].Invoke()
					return
				}
				e := js.Global().Get("Error").New(err.Error())
				e.Set("code", gpu.Code(err))
				settle[1].Invoke(e)
			}()
			return nil
		})
		return js.Global().Get("Promise").New(executor)
	})
}

// protect makes an error of what JavaScript throws, or of an argument that is not what it should be.
func protect(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = fault.Fail("pipelines", gpu.ErrInvalid, r.Error())
		default:
			err = fault.Fail("pipelines", gpu.ErrInvalid, "panic")
		}
	}()
	return f()
}

// invoke calls a function of the page's.
func invoke(f js.Value, args ...any) (v js.Value, err error) {
	err = protect(func() error { v = f.Invoke(args...); return nil })
	return v, err
}

// maxDevices bounds how often the adapter is opened.
const maxDevices = 4

// traced is how many dispatches the page can see.
const traced = 2000

// setup returns the devices and options that were asked for.
func (p *page) setup(ctx context.Context, o js.Value) ([]*gpu.Device, []graph.Option, error) {
	n := integer(o, "devices")
	if n < 1 || n > maxDevices {
		return nil, nil, fault.Fail("pipelines", gpu.ErrInvalid, "1 to 4 devices")
	}
	for i, d := range p.devices {
		if d.Usable() == nil {
			continue
		}
		if err := d.Reopen(ctx); err != nil {
			p.devices = p.devices[:i]
			break
		}
	}
	for len(p.devices) < n {
		d, err := gpu.Open(ctx)
		if err != nil {
			return nil, nil, err
		}
		p.devices = append(p.devices, d)
	}
	opts := []graph.Option{graph.WithTrace(traced), graph.WithMode(graph.Mode(integer(o, "mode")))}
	if o.Get("sync").Truthy() {
		opts = append(opts, graph.WithSync())
	}
	return p.devices[:n], opts, nil
}

// integer reads a number from options. What is not one that fits is -1, which no option takes.
func integer(o js.Value, name string) int {
	v := o.Get(name)
	if v.Type() != js.TypeNumber || !(v.Float() >= 0 && v.Float() < 1<<30) {
		return -1
	}
	return v.Int()
}

func number(o js.Value, name string) float32 {
	if v := o.Get(name); v.Type() == js.TypeNumber {
		return float32(v.Float())
	}
	return -1
}

// run does a run of a graph's, one at a time.
func (p *page) run(g *graph.Graph, f func() error) error {
	if p.busy {
		_ = g.Teardown() // nothing has run
		return fault.Fail("pipelines", graph.ErrBusy)
	}
	p.busy, p.stopped, p.graph, p.begun, p.took = true, false, g, time.Now(), 0
	defer func() {
		p.busy, p.took = false, time.Since(p.begun)
		_ = g.Teardown() // the trace and the statistics stay
	}()
	return f()
}

// text returns what the graph writes.
func (p *page) text(write func(*graph.Graph, io.Writer) error) string {
	var b strings.Builder
	if p.graph == nil || write(p.graph, &b) != nil {
		return ""
	}
	return b.String()
}

// stats tells what the graph has done, times in milliseconds.
func (p *page) stats() any {
	took := p.took
	if p.busy {
		took = time.Since(p.begun)
	}
	s := p.graph.Stats()
	tasks, lanes := []any{}, []any{}
	for _, t := range s.Tasks {
		devices := []any{}
		for _, n := range t.Devices {
			devices = append(devices, n)
		}
		tasks = append(tasks, map[string]any{
			"name": t.Name, "runs": t.Dispatches, "devices": devices, "run": ms(t.Run), "bind": ms(t.Bind), "wait": ms(t.Wait),
		})
	}
	for _, l := range s.Devices {
		lanes = append(lanes, map[string]any{"name": l.Name, "runs": l.Dispatches, "busy": ms(l.Busy)})
	}
	return map[string]any{
		"took": ms(took), "tasks": tasks, "lanes": lanes, "blocks": s.Blocks, "clones": s.Clones, "up": s.BytesUp, "down": s.BytesDown,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
