// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

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
	watch   *watch
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
	var names []string
	for i, d := range j.devices {
		info := d.Info()
		names = append(names, info.Name)
		v.devices = append(v.devices, deviceReport{i, info.Name, info.Driver, info.Kind.String()})
	}
	if !j.watch {
		return v
	}
	v.watch = newWatch(a.err, names)
	f, ok := a.err.(*os.File)
	if v.watch.plain = !ok || !term.IsTerminal(int(f.Fd())); v.watch.plain {
		return v
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		v.watch.width = w
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
	v.watch.draw(v.calls, r)
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
	if v.app.json {
		return writeJSON(v.app.out, runReport{v.calling, v.devices, v.seconds})
	}
	total := items(v.last)
	w := tabwriter.NewWriter(v.app.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tADAPTER\tOFFSET\tITEMS\tSHARE\tSECONDS")
	for _, s := range v.last.Shares {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%.1f%%\t%.6f\n", s.Device, v.devices[s.Device].Name, s.Offset, s.Count, percent(s.Count, total), s.Seconds)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(v.app.out, "calls: %d, seconds: %.3f, bytes up: %d, bytes down: %d, bytes between devices: %d\n",
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

// watchEvery is how often bars are drawn at most.
const watchEvery = 50 * time.Millisecond

// watch draws a bar for each device, one below the other, over the ones it drew before. A plain one, for what is no terminal,
// writes a line for each call. A nil one draws nothing.
type watch struct {
	w     io.Writer
	names []string
	plain bool
	width int // of the terminal, in characters
	drawn bool
	next  time.Time
	calls int // those of the report that is not drawn yet
	late  *cruncher.Report
}

func newWatch(w io.Writer, names []string) *watch { return &watch{w: w, names: names, width: 80} }

// draw shows the shares after so many calls, unless it drew a moment ago.
func (v *watch) draw(calls int, r cruncher.Report) {
	if v == nil {
		return
	}
	v.calls, v.late = calls, &r
	if v.plain {
		v.finish()
		return
	}
	if now := time.Now(); !now.Before(v.next) {
		v.next = now.Add(watchEvery)
		v.finish()
	}
}

// finish draws what draw left out.
func (v *watch) finish() {
	if v == nil || v.late == nil {
		return
	}
	counts, seconds := make([]int, len(v.names)), make([]float64, len(v.names))
	for _, s := range v.late.Shares {
		counts[s.Device] += s.Count
		seconds[s.Device] += s.Seconds
	}
	total := items(*v.late)
	var b strings.Builder
	if v.plain {
		parts := make([]string, len(v.names))
		for i := range v.names {
			parts[i] = fmt.Sprintf("device %d %.1f%% %.3f ms", i, percent(counts[i], total), seconds[i]*1000)
		}
		fmt.Fprintf(&b, "call %d: %s\n", v.calls, strings.Join(parts, ", "))
	} else {
		v.bars(&b, counts, total, seconds)
	}
	v.drawn, v.late = true, nil
	_, _ = io.WriteString(v.w, b.String()) // a terminal that is gone is no reason to stop
}

// bars draws over the bars that were drawn before.
func (v *watch) bars(b *strings.Builder, counts []int, total int, seconds []float64) {
	if v.drawn {
		fmt.Fprintf(b, "\x1b[%dA", len(v.names)+1) // up to where the last ones began
	}
	v.line(b, fmt.Sprintf("call %d", v.calls))
	for i, name := range v.names {
		share := percent(counts[i], total)
		full := int(share*barWidth/100 + 0.5)
		bar := strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
		v.line(b, fmt.Sprintf("%3d %s %5.1f%% %9.3f ms  %s", i, bar, share, seconds[i]*1000, name))
	}
}

const barWidth = 30

// line writes a line that fits the terminal over what is there.
func (v *watch) line(b *strings.Builder, s string) {
	if r := []rune(s); len(r) >= v.width {
		s = string(r[:max(v.width-1, 0)])
	}
	b.WriteString("\r\x1b[2K" + s + "\n")
}
