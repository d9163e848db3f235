// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver/expected"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func (a *app) infoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "List the drivers and adapters of this machine",
		Long: `List the drivers that are linked in and the adapters they find, best first within a driver. Without --driver and --adapter
the first adapter of the lowest rank is used.
An experimental adapter is used only where it is asked for by --driver, or where
nothing but the oracle is left; what its driver is known to do wrong, by the tests of drivers, is listed below the adapters.
With --driver or --adapter only those that fit are listed. What they do with float32 in functions of your own that
IEEE 754 does not allow is computed on each: "flushes subnormals" (results below 2^-126 become 0), "reassociates"
((x + y) - x becomes y) and "fuses" (x * y - z is rounded once). Sums and differences of this program are written so
that only subnormals are lost. TUNED says of how many sizes that sublet tune timed another kernel than the usual one is
used; --json names the file of the timings.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.info(c.Context()) },
	}
}

// info is the result of sublet info.
type info struct {
	Drivers  []string  `json:"drivers"`
	Adapters []adapter `json:"adapters"`
	Failures []failure `json:"expected_failures"`
}

// failure is a test that a driver is expected to fail on this platform.
type failure struct {
	Driver string `json:"driver"`
	Case   string `json:"case"`
	Why    string `json:"why"`
}

type adapter struct {
	Driver string `json:"driver"`
	// Experimental is that of gpu.Adapter.
	Experimental bool `json:"experimental"`
	// Rank and Why are those of gpu.Adapter.Rank.
	Rank     int      `json:"rank"`
	Why      string   `json:"why"`
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Backend  string   `json:"backend"`
	Limits   limits   `json:"limits"`
	Features []string `json:"features"`
	// Arithmetic is nil where no device can be opened.
	Arithmetic *arithmetic `json:"arithmetic"`
	Tuning     tuned       `json:"tuning"`
}

// limits are those of gpu.Limits.
type limits struct {
	MaxBufferSize       uint64    `json:"max_buffer_size"`
	MaxBindingSize      uint64    `json:"max_binding_size"`
	MaxStorageBuffers   uint32    `json:"max_storage_buffers"`
	MaxGroups           uint32    `json:"max_groups"`
	MaxInvocations      uint32    `json:"max_invocations"`
	MaxGroupSize        [3]uint32 `json:"max_group_size"`
	MaxWorkgroupMemory  uint32    `json:"max_workgroup_memory"`
	BindingOffsetAlign  uint32    `json:"binding_offset_align"`
	MaxLoopsPerInvoking uint32    `json:"max_loops_per_invoking"`
	TimestampPeriod     float32   `json:"timestamp_period"`
}

func (a *app) info(ctx context.Context) error {
	found := info{Drivers: gpu.Drivers(), Adapters: []adapter{}, Failures: []failure{}}
	if a.driver != "" && !slices.Contains(found.Drivers, a.driver) {
		return fault.Fail("info", gpu.ErrNoAdapter, "no driver ", strconv.Quote(a.driver), "; there are: ", strings.Join(found.Drivers, ", "))
	}
	for _, d := range found.Drivers {
		for _, f := range expected.For(d) {
			if a.driver == "" || a.driver == d {
				found.Failures = append(found.Failures, failure{d, f.Case, f.Why})
			}
		}
	}
	for ad, err := range gpu.Adapters(ctx) {
		if err != nil { // one driver fails, the others may do
			fmt.Fprintln(a.err, "sublet: warning: "+cli.OneLine(err.Error()))
			continue
		}
		i := ad.Info
		if (a.driver == "" || a.driver == i.Driver) && strings.Contains(strings.ToLower(i.Name), strings.ToLower(a.adapter)) {
			rank, why := ad.Rank()
			one := adapter{i.Driver, ad.Experimental, rank, why, i.Name, i.Kind.String(), i.Backend, limits(i.Limits), i.Features.Names(), nil, tuned{}}
			one.Tuning = tuning(i)
			if done, err := probe(ctx, ad); err == nil {
				one.Arithmetic = &done
			} else {
				fmt.Fprintln(a.err, "sublet: warning: "+cli.OneLine(i.Name+": "+err.Error()))
			}
			found.Adapters = append(found.Adapters, one)
		}
	}
	if len(found.Adapters) == 0 && !a.json {
		fmt.Fprintln(a.err, "sublet: no adapter fits; drivers:", strings.Join(found.Drivers, ", "))
	}
	return a.report(found, found.print)
}

func (found info) print(out io.Writer) error {
	rows := []string{"DRIVER\tADAPTER\tKIND\tBACKEND\tLARGEST BUFFER\tFLOAT32\tFEATURES\tTUNED\tRANK"}
	for _, ad := range found.Adapters {
		name := ad.Driver
		if ad.Experimental {
			name += " (experimental)"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%d MiB\t%s\t%s\t%s\t%d: %s",
			name, ad.Name, ad.Kind, ad.Backend, ad.Limits.MaxBufferSize>>20, ad.Arithmetic, strings.Join(ad.Features, " "), ad.Tuning, ad.Rank, ad.Why))
	}
	if err := printTable(out, rows); err != nil || len(found.Failures) == 0 {
		return err
	}
	rows = []string{"DRIVER\tEXPECTED FAILURE\tWHY"}
	for _, f := range found.Failures {
		rows = append(rows, f.Driver+"\t"+f.Case+"\t"+f.Why)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return printTable(out, rows)
}
