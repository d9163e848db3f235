// SPDX-License-Identifier: Apache-2.0

package pipelines_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

// model is the network in float64, on gonum.
type model struct {
	w1, b1, w2, b2 *mat.Dense
}

func dense(rows, cols int, v []float32) *mat.Dense {
	d := mat.NewDense(rows, cols, nil)
	for i, x := range v {
		d.Set(i/cols, i%cols, float64(x))
	}
	return d
}

func newModel(w [][]float32) *model {
	hidden, classes := len(w[1]), len(w[3])
	return &model{dense(len(w[0])/hidden, hidden, w[0]), dense(1, hidden, w[1]), dense(hidden, classes, w[2]), dense(1, classes, w[3])}
}

func product(a, b mat.Matrix) *mat.Dense {
	var c mat.Dense
	c.Mul(a, b)
	return &c
}

// colSums returns the sums of columns, as a row.
func colSums(a *mat.Dense) *mat.Dense {
	_, cols := a.Dims()
	out := mat.NewDense(1, cols, nil)
	for j := range cols {
		out.Set(0, j, floats.Sum(mat.Col(nil, j, a)))
	}
	return out
}

// step does one step and returns the loss and the share of errors before it.
func (m *model) step(x *mat.Dense, labels []int, rate float64) (loss, errors float64) {
	n := float64(len(labels))
	affine := func(x, w, b *mat.Dense) *mat.Dense {
		z := product(x, w)
		z.Apply(func(_, j int, v float64) float64 { return v + b.At(0, j) }, z)
		return z
	}
	h := affine(x, m.w1, m.b1)
	h.Apply(func(_, _ int, v float64) float64 { return math.Tanh(v) }, h)
	z := affine(h, m.w2, m.b2)
	for i, l := range labels {
		row := z.RawRowView(i)
		if floats.Max(row) > row[l] {
			errors += 1 / n
		}
		norm := floats.LogSumExp(row)
		loss -= (row[l] - norm) / n
		for j := range row {
			row[j] = math.Exp(row[j]-norm) / n
		}
		row[l] -= 1 / n
	}
	dh := product(z, m.w2.T())
	dh.Apply(func(i, j int, v float64) float64 { return v * (1 - h.At(i, j)*h.At(i, j)) }, dh)
	for _, u := range []struct{ w, g *mat.Dense }{
		{m.w1, product(x.T(), dh)}, {m.b1, colSums(dh)}, {m.w2, product(h.T(), z)}, {m.b2, colSums(z)},
	} {
		u.g.Scale(-rate, u.g)
		u.w.Add(u.w, u.g)
	}
	return loss, errors
}

// batch returns the examples of a step.
func batch(d *samples.Data, order []uint32) (*mat.Dense, []int) {
	x, labels := mat.NewDense(len(order), 2, nil), make([]int, len(order))
	for i, n := range order {
		for j, v := range d.Features[2*n : 2*n+2] {
			x.Set(i, j, float64(v))
		}
		labels[i] = int(d.Labels[n])
	}
	return x, labels
}

// same fails unless weights are those of the model within a tolerance, relative to the largest of them.
func (m *model) same(t *testing.T, w [][]float32, tolerance float64) {
	t.Helper()
	got := newModel(w)
	for i, pair := range [][2]*mat.Dense{{got.w1, m.w1}, {got.b1, m.b1}, {got.w2, m.w2}, {got.b2, m.b2}} {
		var diff mat.Dense
		diff.Sub(pair[0], pair[1])
		if far := mat.Norm(&diff, math.Inf(1)); !(far <= tolerance*mat.Norm(pair[1], math.Inf(1))) {
			t.Errorf("part %d is off by %g", i, far)
		}
	}
}

func spirals(t testing.TB, n int) *samples.Data {
	t.Helper()
	d, err := samples.Points("spirals", n, 1)
	check(t, err)
	return d
}

func config(d *samples.Data) pipelines.TrainConfig {
	return pipelines.TrainConfig{Features: d.Features, Labels: d.Labels, Classes: d.Classes}
}

// Each step's loss and errors, and the weights wherever they are given out, are those of the reference in float64: the losses to
// one part in 1e4, the weights to one in 2e-4 of the largest, over 30 steps. Nothing is left.
func TestTrain(t *testing.T) {
	const steps = 30
	data := spirals(t, 110)
	c := config(data)
	c.Hidden, c.Batch, c.Rate, c.Seed, c.SaveEvery, c.InFlight = 20, 25, 0.5, 9, 7, 3
	for _, driver := range []string{"cpu", compiles(t)} {
		for name, s := range setups(driver) {
			t.Run(driver+"/"+name, func(t *testing.T) {
				devices := open(t, s.Drivers...)
				goroutines := runtime.NumGoroutine()
				train, err := pipelines.NewTrain(devices, c, s.Config)
				check(t, err)
				defer closes(t, train.Graph, goroutines)
				for range 2 { // each stream begins with the first weights
					m, seen := newModel(train.First()), 0
					order := pipelines.Deal(len(data.Labels), c.Batch, steps, c.Seed)
					check(t, train.Run(t.Context(), steps, func(s pipelines.Step) (bool, error) {
						x, labels := batch(data, order[seen])
						loss, errors := m.step(x, labels, float64(c.Rate))
						if s.Number != seen || math.Abs(float64(s.Loss)-loss) > 1e-4*loss || math.Abs(float64(s.Errors)-errors) > 1e-6 {
							t.Errorf("%+v, want %d: %v, %v", s, seen, loss, errors)
						}
						seen++
						if want := seen%c.SaveEvery == 0 || seen == steps; want != (s.Weights != nil) {
							t.Errorf("weights after %d steps: %v", seen, s.Weights)
						} else if want {
							m.same(t, s.Weights, 2e-4)
						}
						return true, nil
					}))
					if seen != steps {
						t.Errorf("%d steps", seen)
					}
				}
				ran(t, train.Graph, 2*steps, 14)
			})
		}
	}
}

// It learns: the loss goes down, the classes are found, and learning goes on from weights that were given out.
func TestTrainLearns(t *testing.T) {
	data, rest := spirals(t, 600).Split(6)
	c := config(data)
	c.Hidden, c.Batch, c.Rate = 32, 25, 0.5
	var losses []float32
	for round := range 2 {
		train, err := pipelines.NewTrain(open(t, "cpu"), c)
		check(t, err)
		if n := train.Epoch; n != 20 {
			t.Errorf("%d steps an epoch", n)
		}
		check(t, train.Run(t.Context(), 600, func(s pipelines.Step) (bool, error) {
			losses = append(losses, s.Loss)
			c.Weights = s.Weights
			return true, nil
		}))
		check(t, train.Graph.Teardown())
		t.Logf("round %d: loss %v, errors %v", round, losses[len(losses)-1], rest.Errors(c.Weights))
	}
	mean := func(v []float32) (m float32) {
		for _, x := range v {
			m += x / float32(len(v))
		}
		return m
	}
	begin, middle, end := mean(losses[:50]), mean(losses[575:625]), mean(losses[1150:])
	wrong := rest.Errors(c.Weights)
	if !(middle < begin/2) || !(end < middle) || wrong > 0.05 {
		t.Errorf("losses %v, %v, %v; %v wrong", begin, middle, end, wrong)
	}
}

// Whatever ends a run, it can run again, beginning with the first weights, and nothing is left.
func TestTrainEnds(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	c := config(spirals(t, 90))
	c.Hidden, c.Batch = 5, 30
	train, err := pipelines.NewTrain(open(t, "cpu"), c)
	check(t, err)
	defer closes(t, train.Graph, goroutines)
	losses := func(steps int, enough int) (list []float32) {
		t.Helper()
		saved := 0
		check(t, train.Run(t.Context(), steps, func(s pipelines.Step) (bool, error) {
			if list = append(list, s.Loss); s.Weights != nil {
				saved++
			}
			return s.Number < enough, nil
		}))
		if saved != 1 {
			t.Errorf("weights were given out %d times", saved)
		}
		return list
	}
	all := losses(30, 30)
	if some := losses(1<<40, 9); len(some) < 10 || len(some) > 10+5 || !slices.Equal(some[:10], all[:10]) {
		t.Errorf("%v, want the begin of %v", some, all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	for _, end := range []struct {
		do   func() error
		want error
	}{
		{func() error { return errMine }, errMine},
		{func() error { cancel(); return nil }, context.Canceled},
		{func() error { go func() { stopped <- train.Graph.Stop(context.Background()) }(); return nil }, nil},
	} {
		run := t.Context()
		if errors.Is(end.want, context.Canceled) {
			run = ctx
		}
		err := train.Run(run, 1<<40, func(s pipelines.Step) (bool, error) {
			isError(t, train.Run(t.Context(), 1, func(pipelines.Step) (bool, error) { return true, nil }), graph.ErrBusy)
			if s.Number == 4 {
				return true, end.do()
			}
			return true, nil
		})
		if end.want == nil {
			check(t, err)
			check(t, <-stopped)
		} else {
			isError(t, err, end.want)
		}
		if again := losses(10, 10); !slices.Equal(again, all[:10]) {
			t.Errorf("%v, want %v", again, all[:10])
		}
	}
}

// Hostile arguments are errors.
func TestTrainErrors(t *testing.T) {
	device := open(t, "cpu")
	good := spirals(t, 30)
	inf := float32(math.Inf(1))
	small := [][]float32{make([]float32, 9), make([]float32, 3), make([]float32, 9), make([]float32, 3)}
	for i, change := range []func(c *pipelines.TrainConfig){
		func(c *pipelines.TrainConfig) { *c = pipelines.TrainConfig{} },
		func(c *pipelines.TrainConfig) { c.Classes = 1 },
		func(c *pipelines.TrainConfig) { c.Classes = 257 },
		func(c *pipelines.TrainConfig) { c.Labels = nil },
		func(c *pipelines.TrainConfig) { c.Features = nil },
		func(c *pipelines.TrainConfig) { c.Features = c.Features[1:] },
		func(c *pipelines.TrainConfig) { c.Labels = []uint8{2}; c.Classes = 2 },
		func(c *pipelines.TrainConfig) { c.Batch = 31 },
		func(c *pipelines.TrainConfig) { c.Batch = -1 },
		func(c *pipelines.TrainConfig) { c.Hidden = -1 },
		func(c *pipelines.TrainConfig) { c.Hidden = 1 << 30 },
		func(c *pipelines.TrainConfig) { c.Rate = -1 },
		func(c *pipelines.TrainConfig) { c.Rate = inf },
		func(c *pipelines.TrainConfig) { c.Rate = inf - inf },
		func(c *pipelines.TrainConfig) { c.SaveEvery = -1 },
		func(c *pipelines.TrainConfig) { c.InFlight = 65 },
		func(c *pipelines.TrainConfig) { c.InFlight = -1 },
		func(c *pipelines.TrainConfig) { c.Weights = small },
		func(c *pipelines.TrainConfig) { c.Weights = small[:3] },
		func(c *pipelines.TrainConfig) { c.Weights = make([][]float32, 4) },
	} {
		c := config(good)
		change(&c)
		if _, err := pipelines.NewTrain(device, c); err == nil {
			t.Errorf("%d: no error", i)
		} else {
			isError(t, err, gpu.ErrInvalid)
		}
	}
	_, err := pipelines.NewTrain(nil, config(good))
	isError(t, err, graph.ErrAffinity)
	_, err = pipelines.NewTrain(device, config(good), graph.Config{Trace: -1})
	isError(t, err, gpu.ErrInvalid)
	var none *pipelines.Train
	isError(t, none.Run(t.Context(), 1, nil), gpu.ErrInvalid)
	isError(t, new(pipelines.Train).Run(t.Context(), 1, func(pipelines.Step) (bool, error) { return false, nil }), gpu.ErrInvalid)
	_, err = samples.Points("squares", 5, 1)
	isError(t, err, gpu.ErrInvalid)
}

// The graph is as its picture says, with every kind of channel that CNTK's builder uses, and its trace has every task.
func TestTrainSeen(t *testing.T) {
	train, err := pipelines.NewTrain(open(t, "cpu"), config(spirals(t, 30)), graph.Config{Trace: 100})
	check(t, err)
	check(t, train.Run(t.Context(), 2, func(pipelines.Step) (bool, error) { return true, nil }))
	var trace, dot strings.Builder
	check(t, train.Graph.WriteTrace(&trace))
	check(t, train.Graph.WriteDOT(&dot))
	for _, task := range []string{
		"Read", "ForwardHidden", "ForwardOutput", "ForwardLoss", "BackpropLoss", "BackpropHidden", "BackpropOutputW", "BackpropOutputB",
		"BackpropHiddenW", "BackpropHiddenB", "UpdateW1", "Updateb1", "UpdateW2", "Updateb2",
	} {
		if strings.Count(trace.String(), `"name":"`+task+`"`) != 2 || !strings.Contains(dot.String(), task) {
			t.Errorf("%s is not in\n%s\n%s", task, trace.String(), dot.String())
		}
	}
	for want, n := range map[string]int{"CLOSE_ON_EOF": 4, "initializer": 4} {
		if got := strings.Count(dot.String(), want); got != n {
			t.Errorf("%d times %s, want %d", got, want, n)
		}
	}
	check(t, train.Graph.Teardown())
	if clones := train.Graph.Stats().Clones; clones != 0 {
		t.Errorf("%d clones: weights are to go round, not to be copied", clones)
	}
}

func BenchmarkTrain(b *testing.B) {
	data, err := samples.Points("spirals", 300, 1)
	check(b, err)
	train, err := pipelines.NewTrain(open(b, compiles(b)), config(data))
	check(b, err)
	check(b, train.Run(b.Context(), b.N, func(pipelines.Step) (bool, error) { return true, nil }))
	check(b, train.Graph.Teardown())
}
