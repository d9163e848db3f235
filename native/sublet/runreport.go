// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
)

// tally collects what the calls of a run did.
type tally struct {
	app     *app
	devices []deviceReport
	calls   int
	calling []callReport // for JSON
	last    cruncher.Report
	traffic cruncher.Traffic
	seconds float64
	watch   io.Writer // gets a line for each call; may be nil
}

// runReport is what --json prints for a run.
type runReport struct {
	Calls   []callReport   `json:"calls"`
	Devices []deviceReport `json:"devices"`
	Seconds float64        `json:"seconds"` // of all calls
}

type deviceReport struct {
	Index  int    `json:"index"` // its place in --devices
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Kind   string `json:"kind"`
}

type callReport struct {
	Shares    []shareReport `json:"shares"`
	BytesUp   int64         `json:"bytes_up"`
	BytesDown int64         `json:"bytes_down"`
}

type shareReport struct {
	Device  int     `json:"device"` // its place in --devices
	Offset  int     `json:"offset"`
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
}

func newTally(a *app, j *job) *tally {
	v := &tally{app: a}
	for i, d := range j.devices {
		info := d.Info()
		v.devices = append(v.devices, deviceReport{i, info.Name, info.Driver, info.Kind.String()})
	}
	if j.watch {
		v.watch = a.err
	}
	return v
}

// add takes the report of a call.
func (v *tally) add(r cruncher.Report) {
	v.calls++
	v.last = r
	v.traffic.Up += r.Traffic.Up
	v.traffic.Down += r.Traffic.Down
	v.traffic.Migrated += r.Traffic.Migrated
	v.printShares(r)
	if !v.app.json {
		return
	}
	c := callReport{Shares: []shareReport{}, BytesUp: r.Traffic.Up, BytesDown: r.Traffic.Down}
	for _, s := range r.Shares {
		c.Shares = append(c.Shares, shareReport(s))
	}
	v.calling = append(v.calling, c)
}

func (v *tally) print() error {
	return v.app.report(runReport{v.calling, v.devices, v.seconds}, v.table)
}

// table prints what the last call did, and sums of all.
func (v *tally) table(out io.Writer) error {
	total := items(v.last)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tADAPTER\tOFFSET\tITEMS\tSHARE\tSECONDS")
	for _, s := range v.last.Shares {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%.1f%%\t%.6f\n", s.Device, v.devices[s.Device].Name, s.Offset, s.Count, percent(s.Count, total), s.Seconds)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "calls: %d, seconds: %.3f, bytes up: %d, bytes down: %d, bytes between devices: %d\n",
		v.calls, v.seconds, v.traffic.Up, v.traffic.Down, v.traffic.Migrated)
	return err
}

func items(r cruncher.Report) int {
	n := 0
	for _, s := range r.Shares {
		n += s.Count
	}
	return n
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// printShares prints a line with the share of every device in a call.
func (v *tally) printShares(r cruncher.Report) {
	if v.watch == nil {
		return
	}
	counts, seconds := make([]int, len(v.devices)), make([]float64, len(v.devices))
	for _, s := range r.Shares {
		counts[s.Device] += s.Count
		seconds[s.Device] += s.Seconds
	}
	parts := make([]string, len(v.devices))
	for i := range parts {
		parts[i] = fmt.Sprintf("device %d %.1f%% %.3f ms", i, percent(counts[i], items(r)), seconds[i]*1000)
	}
	fmt.Fprintf(v.watch, "call %d: %s\n", v.calls, strings.Join(parts, ", "))
}
