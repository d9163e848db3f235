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
	fmt.Fprintln(w, "TASK\tRUNS\tMEAN ms\tBIND ms\tWAIT ms\tRAN ON")
	for _, t := range s.Tasks {
		n := time.Duration(max(t.Dispatches+t.Retries, 1))
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", t.Name, t.Dispatches, ms(t.Run/n), ms(t.Bind/n), ms(t.Wait/n), places(t.Devices))
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "DEVICE\tRUNS\tBUSY s\tBUSY %")
	var busy time.Duration
	for _, l := range s.Devices {
		busy += l.Busy
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.1f\n", l.Name, l.Dispatches, l.Busy.Seconds(), 100*l.Busy.Seconds()/took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%.3f s, in which the devices and the host worked %.3f s: overlap %.2f\n", took.Seconds(), busy.Seconds(), busy.Seconds()/took.Seconds())
	fmt.Fprintf(a.out, "moved %s up and %s down, %d clones\n", amount(s.BytesUp), amount(s.BytesDown), s.Clones)
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

func ms(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }

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

func amount(n uint64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
