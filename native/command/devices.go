// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// selected is what --devices says.
type selected struct {
	devices []int // nil: all
	chosen  bool  // the flag is there
}

const (
	maxDevices   = 1024 // what balancers take
	devicesUsage = "`NUMBERS` of devices with commas between, or all"
)

func (s *selected) addDevices(text string) error {
	list, ok := numbers(text, ",")
	if text != "all" && !ok || len(list) > maxDevices {
		return cli.Usagef("want all, or up to %d numbers with commas between", maxDevices)
	}
	s.devices, s.chosen = list, true // nil: all
	return nil
}

// open opens the devices. What --devices counts are the adapters that fit the flags and compile WGSL.
func (s *selected) open(ctx context.Context, a *app) ([]*gpu.Device, error) {
	adapters, _ := cli.Select(ctx, a.driver, a.adapter)
	if adapters = adapters.Kernels(); s.devices != nil {
		adapters = adapters.At(s.devices...)
	}
	return adapters.Open(ctx)
}

// deviceReport is a device in --json.
type deviceReport struct {
	Index  int    `json:"index"` // its place in --devices
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Kind   string `json:"kind"`
}

func deviceReports(devices []*gpu.Device) (list []deviceReport) {
	for i, d := range devices {
		info := d.Info()
		list = append(list, deviceReport{i, info.Name, info.Driver, info.Kind.String()})
	}
	return list
}

// inGroup evaluates the text on all devices of --devices. The result is in host memory.
func (t *task) inGroup(ctx context.Context, vars map[string]matrix.Operand[matrix.Any]) (results, error) {
	e := matrix.Eval(t.expr, vars)
	if err := e.Err(); err != nil {
		return nil, err
	}
	rows, cols := e.Dims()
	size := e.DType().Size()
	if most := t.dev.Info().Limits.MaxBufferSize; cols > 0 && uint64(rows) > most/uint64(cols)/uint64(size) {
		return nil, fault.Fail("--devices", gpu.ErrLimit, fmt.Sprintf("a result of %dx%d, the largest buffer has %d bytes", rows, cols, most))
	}
	mem := gpu.HostBytes(make([]byte, rows*cols*size))
	m, err := matrix.FromBuffer[matrix.Any](t.dev, rows, cols, mem, buffer.DontOwnBuffer, matrix.Options{Type: e.DType()})
	if err != nil {
		return nil, err
	}
	if err = t.group.Assign(ctx, matrix.Into(m, e)); err != nil {
		_ = m.Close() // nothing reads it
		return nil, err
	}
	return results{{Matrix: m}}, nil
}

// printShares prints what each device computed.
func (r *result) printShares(w io.Writer) error {
	table := []string{"DEVICE\tADAPTER\tROWS\tSECONDS"}
	for _, s := range r.Shares {
		table = append(table, fmt.Sprintf("%d\t%s\t%d\t%.6f", s.Device, r.Devices[s.Device].Name, s.Count, s.Seconds))
	}
	return printTable(w, table)
}
