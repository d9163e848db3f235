// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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
	Shares    []cruncher.Share `json:"shares"` // Device is a place in --devices
	BytesUp   int64            `json:"bytes_up"`
	BytesDown int64            `json:"bytes_down"`
}

// run does the task and reports on it. What is wrong with files is found before a device is opened.
func (t *runTask) run(ctx context.Context) error {
	defer t.close()
	source, err := t.readSource()
	if err != nil {
		return err
	}
	outs := make([]io.Writer, len(t.results))
	for i, o := range t.results {
		if outs[i], err = t.create(o.value); err != nil {
			return err
		}
	}
	for _, a := range t.arrays {
		if a.path == "" {
			continue
		}
		if a.array, err = t.readArray(ctx, a.path, false, a.check); err != nil {
			return err
		}
	}
	if err := t.open(ctx, source); err != nil {
		return err
	}
	for _, a := range t.arrays {
		if err := a.wrap(t.opened); err != nil {
			return err
		}
	}
	r, err := t.call(ctx)
	if err != nil {
		return err
	}
	traffic := t.cr.Traffic()
	t.progress.enter("writing", 0)
	for i, o := range t.results {
		a := t.array(o.name)
		if err := t.cr.Fetch(ctx, a.param); err != nil { // what no flag brought back
			return err
		}
		if err := a.write(outs[i]); err != nil {
			return inFile(o.value, err)
		}
	}
	return t.report(r, func(w io.Writer) error { return t.print(w, r, traffic) })
}

// open opens the devices. What --devices counts are the adapters that fit the flags and compile WGSL.
func (t *runTask) open(ctx context.Context, source string) (err error) {
	s, _ := cli.Select(ctx, t.driver, t.adapter)
	if s = s.Kernels(); t.devices != nil {
		s = s.At(t.devices...)
	}
	if t.opened, err = s.Open(ctx); err == nil {
		t.cr, err = cruncher.New(ctx, t.opened, source)
	}
	return err
}

// close gives back the memory of devices.
func (t *runTask) close() {
	_ = t.cr.Close()
	for _, a := range t.arrays {
		_ = a.param.Close()
	}
	for _, d := range t.opened {
		_ = d.Close()
	}
}

// call makes the calls.
func (t *runTask) call(ctx context.Context) (*runReport, error) {
	r, params := &runReport{}, t.scalars
	for i, d := range t.opened {
		info := d.Info()
		r.Devices = append(r.Devices, deviceReport{i, info.Name, info.Driver, info.Kind.String()})
	}
	for _, a := range t.arrays {
		params = append(params, a.param)
	}
	if t.watch {
		t.progress.stop()
	}
	total := int64(t.calls)
	if total == 1 {
		total = 0 // nobody knows how far one is
	}
	t.progress.enter("computing", total)
	start := time.Now()
	for n := range t.calls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := t.cr.Compute(ctx, 1, t.entry, t.rang, params...)
		if errors.Is(err, gpu.ErrCompile) || errors.Is(err, kernel.ErrKernel) {
			return nil, inFile(t.file, err)
		}
		if err != nil {
			return nil, err
		}
		t.progress.add(1)
		last := t.cr.Last()
		if t.watch {
			var parts []string
			for s, percent := range shares(last) {
				parts = append(parts, fmt.Sprintf("device %d %.1f%% %.3f ms", s.Device, percent, s.Seconds*1000))
			}
			fmt.Fprintf(t.err, "call %d: %s\n", n+1, strings.Join(parts, ", "))
		}
		if t.json {
			r.Calls = append(r.Calls, callReport{append([]cruncher.Share{}, last.Shares...), last.Traffic.Up, last.Traffic.Down})
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// print prints what the last call did, and sums of all.
func (t *runTask) print(out io.Writer, r *runReport, sum cruncher.Traffic) error {
	rows := []string{"DEVICE\tADAPTER\tOFFSET\tITEMS\tSHARE\tSECONDS"}
	for s, percent := range shares(t.cr.Last()) {
		rows = append(rows, fmt.Sprintf("%d\t%s\t%d\t%d\t%.1f%%\t%.6f",
			s.Device, r.Devices[s.Device].Name, s.Offset, s.Count, percent, s.Seconds))
	}
	if err := printTable(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "calls: %d, seconds: %.3f, bytes up: %d, bytes down: %d, bytes between devices: %d\n",
		t.calls, r.Seconds, sum.Up, sum.Down, sum.Migrated)
	return err
}

// shares goes through the shares of a call, one for each device, and how many percent of its items they are.
func shares(r cruncher.Report) iter.Seq2[cruncher.Share, float64] {
	all := 0
	for _, s := range r.Shares {
		all += s.Count
	}
	return func(yield func(cruncher.Share, float64) bool) {
		for _, s := range r.Shares {
			if !yield(s, 100*float64(s.Count)/float64(max(all, 1))) {
				return
			}
		}
	}
}
