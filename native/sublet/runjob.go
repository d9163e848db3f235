// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

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

// run does the task and reports on it.
func (t *runTask) run(ctx context.Context) error {
	p := newProgress(t.app.err)
	defer p.stop()
	for _, o := range t.outputs {
		t.app.claim(o.value)
	}
	source, entry, err := readSource(t.file, t.entry)
	if err != nil {
		return err
	}
	p.enter("reading", 0)
	for _, a := range t.arrays {
		err := a.open(p)
		defer a.file.close()
		if err != nil {
			return err
		}
	}
	var outs []*output
	for _, o := range t.outputs {
		out, err := t.app.createOutput(o.value)
		if err != nil {
			return err
		}
		defer out.discard()
		outs = append(outs, out)
	}
	devices, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, d := range devices {
			_ = d.Close() // the results are here
		}
	}()
	cr, err := cruncher.New(ctx, devices, source)
	if err != nil {
		return err
	}
	defer func() { _ = cr.Close() }()
	return t.crunch(ctx, &crunch{cr, entry, devices, p}, outs)
}

// open opens the devices. What --devices counts are the adapters that fit the flags and compile WGSL.
func (t *runTask) open(ctx context.Context) ([]*gpu.Device, error) {
	s, _ := cli.Select(ctx, t.app.driver, t.app.adapter)
	if s = s.Kernels(); t.devices != nil {
		s = s.At(t.devices...)
	}
	return s.Open(ctx)
}

// crunch is what a run works with.
type crunch struct {
	*cruncher.Cruncher
	entry    string
	devices  []*gpu.Device
	progress *progress
}

// crunch loads the arrays, calls the kernels, writes the outputs and reports.
func (t *runTask) crunch(ctx context.Context, c *crunch, outs []*output) error {
	params := t.scalars
	for _, a := range t.arrays {
		err := a.load(ctx, c.devices)
		defer a.Close()
		if err != nil {
			return err
		}
		params = append(params, a.Any)
	}
	r := &runReport{}
	for i, d := range c.devices {
		info := d.Info()
		r.Devices = append(r.Devices, deviceReport{i, info.Name, info.Driver, info.Kind.String()})
	}
	if err := t.call(ctx, c, params, r); err != nil {
		return err
	}
	traffic := c.Traffic()
	if err := t.save(ctx, c, outs); err != nil {
		return err
	}
	c.progress.stop()
	return t.app.report(r, func(w io.Writer) error { return t.print(w, c, r, traffic) })
}

// call makes the calls.
func (t *runTask) call(ctx context.Context, c *crunch, params []cruncher.Param, r *runReport) error {
	if t.watch {
		c.progress.stop()
	}
	total := int64(t.calls)
	if total == 1 {
		total = 0 // nobody knows how far one is
	}
	c.progress.enter("computing", total)
	start := time.Now()
	for n := range t.calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.Compute(ctx, 1, c.entry, t.rang, params...)
		if errors.Is(err, gpu.ErrCompile) || errors.Is(err, kernel.ErrKernel) {
			return inFile(t.file, err)
		}
		if err != nil {
			return err
		}
		c.progress.add(1)
		last := c.Last()
		if t.watch {
			t.printShares(n+1, last, len(c.devices))
		}
		if t.app.json {
			call := callReport{[]shareReport{}, last.Traffic.Up, last.Traffic.Down}
			for _, s := range last.Shares {
				call.Shares = append(call.Shares, shareReport(s))
			}
			r.Calls = append(r.Calls, call)
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return nil
}

// save writes the outputs. None gets its name before all are written.
func (t *runTask) save(ctx context.Context, c *crunch, outs []*output) error {
	c.progress.enter("writing", 0)
	for i, o := range t.outputs {
		a := t.array(o.name)
		if err := c.Fetch(ctx, a.Any); err != nil { // what no flag brought back
			return err
		}
		c.progress.expect(int64(len(a.memory)))
		if err := a.write(io.MultiWriter(outs[i], c.progress)); err != nil {
			return inFile(o.value, err)
		}
	}
	for _, out := range outs {
		if err := out.commit(); err != nil {
			return err
		}
	}
	return nil
}

// print prints what the last call did, and sums of all.
func (t *runTask) print(out io.Writer, c *crunch, r *runReport, sum cruncher.Traffic) error {
	last := c.Last()
	rows := []string{"DEVICE\tADAPTER\tOFFSET\tITEMS\tSHARE\tSECONDS"}
	for _, s := range last.Shares {
		rows = append(rows, fmt.Sprintf("%d\t%s\t%d\t%d\t%.1f%%\t%.6f",
			s.Device, r.Devices[s.Device].Name, s.Offset, s.Count, percent(s.Count, last), s.Seconds))
	}
	if err := printTable(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "calls: %d, seconds: %.3f, bytes up: %d, bytes down: %d, bytes between devices: %d\n",
		t.calls, r.Seconds, sum.Up, sum.Down, sum.Migrated)
	return err
}

// percent returns how much of a call's items some are.
func percent(n int, r cruncher.Report) float64 {
	all := 0
	for _, s := range r.Shares {
		all += s.Count
	}
	return 100 * float64(n) / float64(max(all, 1))
}

// printShares prints a line with the share of every device in a call.
func (t *runTask) printShares(call int, r cruncher.Report, devices int) {
	all := make([]cruncher.Share, devices)
	for _, s := range r.Shares {
		all[s.Device].Count += s.Count
		all[s.Device].Seconds += s.Seconds
	}
	var parts []string
	for i, s := range all {
		parts = append(parts, fmt.Sprintf("device %d %.1f%% %.3f ms", i, percent(s.Count, r), s.Seconds*1000))
	}
	fmt.Fprintf(t.app.err, "call %d: %s\n", call, strings.Join(parts, ", "))
}
