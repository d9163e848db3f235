// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// TrainConfig says what [Train] learns, and how.
type TrainConfig struct {
	Data      *Data    // it must not change while it is in use
	Hidden    int      // units of the hidden layer; 0 stands for 64
	Batch     int      // examples of a step; 0 stands for 64, or all if there are fewer
	Rate      float32  // the learning rate; 0 stands for 0.1
	Seed      uint64   // of the order of the examples, and of the weights
	Weights   *Weights // to begin with; random ones without
	SaveEvery int      // steps after which the weights are given out; 0 stands for the last one only
	InFlight  int      // how many steps are on their way at once, up to 64; 0 stands for 4
}

// Train trains a network of two layers by stochastic gradient descent, as CNTK's builder for PTask maps a network: a task for each
// node's forward and backward computation and for each update, with matrices that are pointed at the blocks on each dispatch.
//
//	order -> Read -> x, labels                                  the host gathers the examples of a step
//	ForwardHidden  h = tanh(x*W1 + b1)                          BackpropLoss     dz = (softmax(z) - labels) / batch
//	ForwardOutput  z = h*W2 + b2                                BackpropOutputW  gW2 = T(h) * dz
//	ForwardLoss    loss, errors, probabilities -> /dev/null     BackpropOutputB  gb2 = sums of dz's columns
//	UpdateW1 ...   W1 = W1 - rate*gW1                           BackpropHidden   dh = (dz*T(W2)) % (1 - h%h)
//	                                                            BackpropHiddenW, BackpropHiddenB: gW1, gb1
//
// Each of W1, b1, W2 and b2 is one block that goes round: from the task that reads it through the others, which pass it on, to its
// update, which changes it in place and feeds it back. An initialiser begins with its first value at the begin of a stream. At the
// end of one, or where [TrainConfig].SaveEvery says, the updated blocks leave for the caller. The learning rate is sticky.
type Train struct {
	pipeline
	Epoch  int // how many steps see all examples once
	c      TrainConfig
	in     *graph.Input
	order  *graph.Template
	rates  []*graph.Port
	loss   *graph.Output
	errors *graph.Output
	saved  [4]*graph.Output
	open   bool // a stream has begun and not ended
}

// Step is what came of a step.
type Step struct {
	Number  int
	Loss    float32  // cross entropy, the mean of the step's examples before the update
	Errors  float32  // the share of them whose class was not found
	Weights *Weights // after the update, if it was one whose weights are saved; they are the caller's
}

// NewTrain makes the pipeline on the devices, which stay the caller's. What does not fit together, or makes no sense, is
// [gpu.ErrInvalid].
func NewTrain(devices []*gpu.Device, c TrainConfig, opts ...graph.Option) (*Train, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	t := &Train{c: c, Epoch: len(c.Data.Labels) / c.Batch}
	t.constants = t.setRates
	if err := t.init(devices, opts, t.build); err != nil {
		return nil, err
	}
	return t, nil
}

func (c *TrainConfig) complete() error {
	const op = "NewTrain"
	if err := c.Data.check(op); err != nil {
		return err
	}
	if c.Hidden == 0 {
		c.Hidden = 64
	}
	if c.Batch == 0 {
		c.Batch = min(64, len(c.Data.Labels))
	}
	if c.Rate == 0 {
		c.Rate = 0.1
	}
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	switch {
	case c.Batch < 1 || c.Batch > len(c.Data.Labels):
		return fail(op, gpu.ErrInvalid, "batches of ", itoa(c.Batch), " of ", itoa(len(c.Data.Labels)), " examples")
	case !(c.Rate > 0 && c.Rate <= math.MaxFloat32):
		return fail(op, gpu.ErrInvalid, "a rate that is not positive")
	case c.SaveEvery < 0 || c.InFlight < 1 || c.InFlight > maxInFlight:
		return fail(op, gpu.ErrInvalid, itoa(c.InFlight), " steps in flight, weights every ", itoa(c.SaveEvery))
	}
	if c.Weights == nil {
		w, err := randomWeights(c.Data.Inputs, c.Hidden, c.Data.Classes, c.Seed)
		c.Weights = w
		return err
	}
	if err := c.Weights.check(op); err != nil {
		return err
	}
	c.Hidden = c.Weights.Hidden
	if c.Weights.Inputs != c.Data.Inputs || c.Weights.Classes != c.Data.Classes {
		return fail(op, gpu.ErrInvalid, "weights for other data")
	}
	return nil
}

// setRates gives the updates their learning rate.
func (t *Train) setRates() error {
	var errs []error
	for _, p := range t.rates {
		errs = append(errs, graph.SetValues(p, t.c.Rate))
	}
	return errors.Join(errs...)
}

// read is the task that gathers the examples of a step.
func (t *Train) read(d *graph.Dispatch) error {
	data, order := t.c.Data, make([]int, t.c.Batch)
	err := d.View("order", func(mem []byte) error {
		for i := range order {
			order[i] = int(binary.LittleEndian.Uint32(mem[4*i:]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	row := 4 * data.Inputs
	err = d.Update("x", func(mem []byte) error {
		for i, n := range order {
			copy(mem[i*row:], matrix.Host(data.Features[n*data.Inputs:(n+1)*data.Inputs]).Bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.Update("labels", func(mem []byte) error {
		clear(mem)
		for i, n := range order {
			binary.LittleEndian.PutUint32(mem[4*(i*data.Classes+int(data.Labels[n])):], math.Float32bits(1))
		}
		return nil
	})
}

// Run trains for so many steps, or until show has seen enough, and then stops the graph. Each Run is a stream of its own, which
// begins with the first weights again; to go on with others, give them to [NewTrain]. show gets the steps in their order and
// reports whether it wants more; the last one has the weights. An error of its, or of a task, ends it. One Run at a time: else it
// is [graph.ErrBusy].
func (t *Train) Run(ctx context.Context, steps int, show func(Step) (bool, error)) error {
	if t == nil || t.Graph == nil || ctx == nil || show == nil || steps < 1 {
		return fail("Run", gpu.ErrInvalid, "no argument may be nil, no step is none")
	}
	if err := t.claim(); err != nil {
		return err
	}
	defer t.busy.Store(false)
	if t.open { // somebody stopped the graph, and weights are still on their way round
		if err := t.Graph.Teardown(); err != nil {
			return err
		}
	}
	cards := newDeck(len(t.c.Data.Labels), t.c.Seed)
	saves := make([]bool, 0, t.c.InFlight) // of the steps that are on their way
	send := func(n int, stop bool) (sent, more bool, err error) {
		s, last := graph.Signals(0), stop || n == steps-1
		if n == 0 {
			s |= graph.BOF
		}
		if last {
			s |= graph.EOF
		}
		if t.c.SaveEvery > 0 && (n+1)%t.c.SaveEvery == 0 {
			s |= graph.EndIteration
		}
		b, err := graph.FromSlice(t.order, cards.deal(t.c.Batch))
		if err == nil {
			err = push(ctx, t.in, b, s)
		}
		if err != nil {
			return false, false, err
		}
		t.open = !last
		saves = append(saves, last || s.Has(graph.EndIteration))
		return true, !last, nil
	}
	return t.stream(ctx, t.c.InFlight, send, func(n int) (bool, error) {
		step, err := t.take(ctx, n, saves[0])
		if err != nil {
			return false, err
		}
		saves = append(saves[:0], saves[1:]...)
		return show(step)
	})
}

// take waits for what comes of the next step.
func (t *Train) take(ctx context.Context, n int, saved bool) (Step, error) {
	step := Step{Number: n}
	var v [2]float32
	for i, out := range [...]*graph.Output{t.loss, t.errors} {
		if err := pull(ctx, out, matrix.Host(v[i:i+1]).Bytes); err != nil {
			return step, err
		}
	}
	step.Loss, step.Errors = v[0], v[1]
	if !saved {
		return step, nil
	}
	step.Weights = newWeights(t.c.Data.Inputs, t.c.Hidden, t.c.Data.Classes)
	for i, part := range step.Weights.parts() {
		if err := pull(ctx, t.saved[i], matrix.Host(part).Bytes); err != nil {
			return step, err
		}
	}
	return step, nil
}
