// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sublet-gpu/sublet/matrix/graph"
)

// report prints what ran where, and writes the files that were asked for.
func (a *app) report(g *graph.Graph, took time.Duration) error {
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
