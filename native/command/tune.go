// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/tune"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func (a *app) tuneCommand() *cobra.Command {
	var rounds int
	c := &cobra.Command{
		Use:   "tune [FAMILY:SIZES]...",
		Short: "Time the variants of kernels on an adapter, and use the fastest",
		Long: `Time the variants of kernels on an adapter, and use the fastest from then on: in this command, and in programs that
import package matrix/tune. It takes a minute or so, best on a machine that does nothing else. A variant is used where it is
clearly faster than the usual one, by a twentieth in the lower quartile of its timings, and its first call is no later.

Without arguments common sizes are timed. They serve sizes up to twice and down to half of these, too. With arguments
those are timed and added: product:ROWSxINNERxCOLUMNS, with :tn, :nt or :tt behind it where factors are stored by columns,
vector:1xINNERxCOLUMNS, sparse:ROWSxENTRIESxCOLUMNS with as many entries in each row, and reduce-rows, reduce-columns, softmax,
transpose, elementwise or grid with ROWSxCOLUMNS.

The timings are in a file for each adapter in the user's cache folder, which sublet info names. One that is broken, of
another adapter or driver, or of another version's kernels is ignored, with a warning. With SUBLET_TUNE=off all are.`,
		Example: `  sublet tune
  sublet tune product:300x500x700 softmax:777x333
  sublet tune export -o laptop.json
  sublet tune import laptop.json
  sublet tune off`,
		RunE: func(c *cobra.Command, args []string) error {
			o := tune.Options{Rounds: rounds}
			for _, text := range args {
				w, err := tune.ParseWork(text)
				if err != nil {
					return cli.Usagef("%s", err.Error())
				}
				o.Work = append(o.Work, w)
			}
			return a.tune(c.Context(), o)
		},
	}
	c.Flags().IntVar(&rounds, "rounds", 0, "how often each variant is timed; 0 is 15")
	c.AddCommand(a.tuneExport(), a.tuneImport(), a.tuneSwitch("off", "Compute as usual, and keep the timings", true), a.tuneSwitch("on", "Use the timings again", false))
	return c
}

// tuned is what sublet info has of an adapter's timings, and what sublet tune and its subcommands print.
type tuned struct {
	File  string `json:"file"`
	State string `json:"state"` // "none", "on", "off", or why the file is ignored
	// Choices are sizes that were timed, and Other those where another variant than the usual one is used.
	Choices int `json:"choices"`
	Other   int `json:"other"`
}

// tuning returns what there is of an adapter.
func tuning(i gpu.AdapterInfo) (t tuned) {
	t.State = "none"
	t.File, _ = tune.Path(i)
	r, err := tune.Load(i)
	switch {
	case err != nil:
		t.State = "ignored: " + cli.OneLine(err.Error())
		return t
	case r.Off || strings.EqualFold(os.Getenv("SUBLET_TUNE"), "off"):
		t.State = "off"
	case len(r.Choices) > 0:
		t.State = "on"
	}
	t.Choices, t.Other = len(r.Choices), r.Other()
	return t
}

// String is a cell of a table.
func (t tuned) String() string {
	if t.State == "on" {
		return fmt.Sprintf("%d of %d", t.Other, t.Choices)
	}
	return t.State
}

// useTuning has a device compute by the timings of its adapter.
func (a *app) useTuning(dev *gpu.Device) {
	if err := tune.Use(dev); err != nil {
		fmt.Fprintln(a.err, "sublet: warning: "+cli.OneLine(err.Error()))
	}
}

// onDevice opens the device that was asked for.
func (a *app) onDevice(ctx context.Context, fn func(*gpu.Device) error) error {
	dev, err := gpu.Open(ctx, gpu.WithDriver(a.driver), gpu.WithAdapter(a.adapter))
	if err != nil {
		return err
	}
	return errors.Join(fn(dev), dev.Close())
}

// tune is sublet tune.
func (a *app) tune(ctx context.Context, o tune.Options) error {
	return a.onDevice(ctx, func(dev *gpu.Device) error {
		made := []tune.Choice{}
		rows := []string{"TIMED\tUSUAL\tTIME\tBEST\tTIME\tFASTER BY"}
		a.progress.enter("timing kernels", 0)
		o.Progress = func(c *tune.Choice, done, all int) {
			a.progress.enter(fmt.Sprintf("timing kernels, %d of %d", done, all), 0)
			if c != nil {
				made, rows = append(made, *c), append(rows, choiceRow(c))
			}
		}
		r, err := tune.Run(ctx, dev, o)
		if err == nil {
			err = tune.Save(r, dev.Info())
		}
		if err != nil {
			return err
		}
		t := tuning(dev.Info())
		result := struct {
			tuned
			Adapter tune.Adapter  `json:"adapter"`
			Timed   []tune.Choice `json:"timed"`
		}{t, r.Adapter, made}
		return a.report(result, func(w io.Writer) error {
			if err := printTable(w, rows); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "\n%s by %s: another variant than the usual one for %d of %d choices, in %s\n", r.Adapter.Name, r.Adapter.Driver, t.Other, t.Choices, t.File)
			return err
		})
	})
}

// choiceRow is a row of the table of sublet tune.
func choiceRow(c *tune.Choice) string {
	row := fmt.Sprintf("%s\t%s\t%.0f us", c.Shape, c.Usual, c.Quartile(c.Usual)/1e3)
	if c.Best == "" {
		return row + "\tthe usual\t\t"
	}
	return row + fmt.Sprintf("\t%s\t%.0f us\t%.0f %%", c.Best, c.Quartile(c.Best)/1e3, 100*(c.Quartile(c.Usual)/c.Quartile(c.Best)-1))
}

func (a *app) tuneExport() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "export", Short: "Write the timings of an adapter as JSON", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.onDevice(c.Context(), func(dev *gpu.Device) error {
				r, err := tune.Load(dev.Info())
				if err != nil {
					return err
				}
				if output == "" {
					return r.Write(a.out)
				}
				w, err := a.create(output)
				if err == nil {
					err = r.Write(w)
				}
				if err != nil {
					return err
				}
				return a.reportTuning(dev)
			})
		},
	}
	a.outputFlag(c, &output, "`FILE` to write to, in place of standard output")
	return c
}

func (a *app) tuneImport() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Use timings that were exported, perhaps on another machine with the same adapter", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.onDevice(c.Context(), func(dev *gpu.Device) error {
				from := io.Reader(a.in)
				if args[0] != standard {
					f, err := os.Open(args[0])
					if err != nil {
						return err
					}
					defer func() { _ = f.Close() }() // it was only read
					from = f
				}
				r, err := tune.Read(from, dev.Info())
				if err == nil {
					err = tune.Save(r, dev.Info())
				}
				if err != nil {
					return err
				}
				return a.reportTuning(dev)
			})
		},
	}
}

func (a *app) tuneSwitch(name, short string, off bool) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.onDevice(c.Context(), func(dev *gpu.Device) error {
				r, err := tune.Load(dev.Info())
				if err == nil {
					r.Off = off
					err = tune.Save(r, dev.Info())
				}
				if err != nil {
					return err
				}
				return a.reportTuning(dev)
			})
		},
	}
}

// reportTuning prints what there is of the device's adapter.
func (a *app) reportTuning(dev *gpu.Device) error {
	t := tuning(dev.Info())
	return a.report(t, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "timings of %s: %s, %s\n", dev.Info().Name, t, t.File)
		return err
	})
}
