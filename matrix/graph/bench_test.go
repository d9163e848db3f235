// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// BenchmarkDispatch measures what scheduling costs: a dispatch of a task that does nothing, in graphs of several sizes and in
// every mode, with the block that it takes and the one that it makes.
func BenchmarkDispatch(b *testing.B) {
	for _, tasks := range []int{1, 10, 1000} {
		for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
			b.Run(strconv.Itoa(tasks)+"/"+graph.ModeNames[mode], func(b *testing.B) {
				g := must[*graph.Graph](b)(graph.New(open(b, "cpu"), graph.Config{Mode: mode}))
				m := g.Template("m", 1, 1, dtype.Float32)
				var in *graph.Input
				var last *graph.Port
				for i := range tasks {
					k := g.Task(strconv.Itoa(i), graph.Func(func(*graph.Dispatch) error { return nil }), graph.In("x", m), graph.Out("y", m))
					if in == nil {
						in = g.Input("in", k.Port("x"))
					} else {
						g.Connect(last, k.Port("x"))
					}
					last = k.Port("y")
				}
				out := g.Output("out", last)
				check(b, g.Run(b.Context()))
				n := 0
				done := make(chan error)
				go func() {
					for {
						x, err := out.Pull(b.Context())
						if err != nil {
							done <- nil
							return
						}
						x.Release()
					}
				}()
				for b.Loop() {
					x, err := m.New()
					if err == nil {
						err = in.Push(b.Context(), x)
					}
					check(b, err)
					n++
				}
				check(b, g.Stop(b.Context()))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*tasks)/1e3, "us/dispatch")
				check(b, g.Teardown())
				check(b, <-done)
			})
		}
	}
}

// BenchmarkReady measures what scheduling costs where many tasks are ready at once, on two devices: as much for each dispatch, however
// many there are.
func BenchmarkReady(b *testing.B) {
	for _, tasks := range []int{10, 10000} {
		for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
			b.Run(strconv.Itoa(tasks)+"/"+graph.ModeNames[mode], func(b *testing.B) { ready(b, graph.Config{Mode: mode}, tasks) })
		}
		b.Run(strconv.Itoa(tasks)+"/deterministic", func(b *testing.B) { ready(b, graph.Config{Deterministic: true}, tasks) })
	}
}

func ready(b *testing.B, conf graph.Config, tasks int) {
	g := must[*graph.Graph](b)(graph.New(open(b, "cpu", "cpu"), conf))
	m := g.Template("m", 1, 1, dtype.Float32)
	ins, outs := make([]*graph.Input, tasks), make([]*graph.Output, tasks)
	for i := range tasks {
		name := strconv.Itoa(i)
		k := g.Task(name, graph.Func(func(*graph.Dispatch) error { return nil }), graph.In("x", m), graph.Out("y", m))
		ins[i], outs[i] = g.Input(name, k.Port("x")), g.Output(name, k.Port("y"))
	}
	check(b, g.Run(b.Context()))
	n := 0
	for b.Loop() {
		for _, in := range ins {
			x, err := m.New()
			if err == nil {
				err = in.Push(b.Context(), x)
			}
			check(b, err)
		}
		for _, out := range outs {
			x, err := out.Pull(b.Context())
			check(b, err)
			x.Release()
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*tasks)/1e3, "us/dispatch")
	check(b, g.Teardown())
}

// sleeper is a kernel that uses y and keeps a device of the oracle busy for as long, without keeping a core busy: what a device of
// its own hardware is to the host.
func sleeper(took time.Duration, use buffer.Intent, ended func()) graph.Body {
	desc := gpu.KernelDesc{
		Source:    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(1) fn main() { x[0] += 1.0; } // " + took.String(),
		Bindings:  []driver.Access{driver.AccessReadWrite},
		Reference: func([3]uint32, []byte, [][]byte) { time.Sleep(took); ended() },
	}
	return graph.Func(func(d *graph.Dispatch) error {
		k, err := d.Device().Kernel(d.Context(), desc)
		if err != nil {
			return err
		}
		y, err := d.Block("y")
		if err != nil {
			return err
		}
		b, err := y.On(d.Context(), d.Device(), buffer.Writes)
		if err != nil {
			return err
		}
		mem, err := b.Memory(use)
		if err == nil {
			err = k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: mem})
		}
		if err != nil {
			return err
		}
		b.Wrote(b.Device(), buffer.Range(0, b.Size()))
		return d.Device().Flush()
	})
}

// BenchmarkPipeline measures overlap: three stages with transfers between them on two devices. The first and the last one's
// kernels run on one device each; the one between is the host's, which reads what the first one made and changes it. The
// time for each block is compared with that of the slowest stage, which is the first.
func BenchmarkPipeline(b *testing.B) {
	const slowest = 10 * time.Millisecond
	devs := open(b, "cpu", "cpu")
	g := must[*graph.Graph](b)(graph.New(devs))
	m := g.Template("m", 256, 1024, dtype.Float32) // 1 MiB
	one := g.Task("one", sleeper(slowest, buffer.Writes, func() {}), graph.In("x", m), graph.Out("y", m, graph.PortConfig{InPlace: "x"}), graph.Require(devs[0]))
	two := g.Task("two", graph.Host(func(d *graph.Dispatch) error {
		return d.Update("y", func(mem []byte) error { mem[0]++; time.Sleep(slowest * 3 / 4); return nil })
	}), graph.In("x", m), graph.Out("y", m, graph.PortConfig{InPlace: "x"}))
	three := g.Task("three", sleeper(slowest*9/10, buffer.Writes, func() {}), graph.In("x", m), graph.Out("y", m, graph.PortConfig{InPlace: "x"}), graph.Require(devs[1]))
	in := g.Input("in", one.Port("x"))
	g.Connect(one.Port("y"), two.Port("x"))
	g.Connect(two.Port("y"), three.Port("x"))
	out := g.Output("out", three.Port("y"))
	check(b, g.Run(b.Context()))
	push := func() {
		x, err := m.New()
		if err == nil {
			err = in.Push(b.Context(), x)
		}
		check(b, err)
	}
	pull := func() {
		x, err := out.Pull(b.Context())
		check(b, err)
		check(b, x.View(b.Context(), func([]byte) error { return nil }))
		x.Release()
	}
	const ahead = 8
	for range ahead {
		push()
	}
	pull()
	n := 0
	for b.Loop() {
		push()
		pull()
		n++
	}
	b.ReportMetric(float64(b.Elapsed())/float64(n)/float64(slowest), "x-slowest-stage")
	check(b, g.Teardown())
}
