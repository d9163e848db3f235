// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

// schedule is how long and how fast the network learns.
type schedule struct {
	epochs, batch int
	rate          float64
	seed          uint64
}

// steps is how many there are for so many examples. What does not fill a batch is left out of an epoch.
func (s schedule) steps(examples int) int { return s.epochs * (examples / s.batch) }

// train makes a network of the examples. Each step is reported with its loss.
func train(ctx context.Context, dev *gpu.Device, d *samples.Data, s schedule, report func(loss float32)) (n network, err error) {
	if n, err = newNetwork(dev, s.seed); err != nil {
		return nil, err
	}
	opt := &nn.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	var a activations
	// The batch is the program's own memory, which the matrices wrap: written here, read by the device.
	images, labels := make([]float32, s.batch*mnist.Pixels), make([]int32, s.batch)
	x, err := matrix.Wrap(dev, s.batch, mnist.Pixels, images)
	y, err2 := matrix.Wrap(dev, s.batch, 1, labels)
	defer func() {
		err = errors.Join(err, opt.Close(), a.found.Close(), a.hidden.Close(), a.logits.Close(), x.Close(), y.Close())
	}()
	if err = errors.Join(err, err2); err != nil {
		return n, err
	}
	r := rand.New(rand.NewPCG(s.seed, 4))
	all := s.steps(len(d.Labels))
	var order []int
	for step := range all {
		if len(order) < s.batch {
			order = r.Perm(len(d.Labels))
		}
		for i, example := range order[:s.batch] {
			vary(images[i*mnist.Pixels:(i+1)*mnist.Pixels], image(d, example), r)
			labels[i] = int32(d.Labels[example])
		}
		order = order[s.batch:]
		opt.Rate = float32(s.rate * rateAt(float64(step)/float64(all)))
		if err = errors.Join(x.Touch(), y.Touch()); err != nil {
			return n, err
		}
		loss, err := n.step(opt, &a, x, y)
		if err != nil {
			return n, err
		}
		value, err := loss.Read(ctx)
		if err != nil {
			return n, err
		}
		report(value[0])
	}
	return n, nil
}

// rateAt is the share of the learning rate at a time from 0 to 1: it rises quickly, and falls along a cosine.
func rateAt(t float64) float64 {
	const warm = 0.05
	if t < warm {
		return (t + 0.002) / warm
	}
	return 0.5 * (1 + math.Cos(math.Pi*(t-warm)/(1-warm)))
}
