// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/gpu"
)

// Weights are those of a network of two layers: scores = tanh(x*W1 + B1)*W2 + B2, with the matrices row by row.
type Weights struct {
	Inputs, Hidden, Classes int
	W1, B1                  []float32 // Inputs x Hidden, 1 x Hidden
	W2, B2                  []float32 // Hidden x Classes, 1 x Classes
}

// maxUnits bounds the sizes of the layers.
const maxUnits = 1 << 14

// randomWeights makes random weights: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// AISTATS 2010. The same seed gives the same.
func randomWeights(inputs, hidden, classes int, seed uint64) (*Weights, error) {
	if inputs < 1 || hidden < 1 || classes < 1 || inputs > maxUnits || hidden > maxUnits || classes > maxUnits {
		return nil, fail("NewTrain", gpu.ErrInvalid, itoa(inputs), ", ", itoa(hidden), " and ", itoa(classes), " units")
	}
	r := rand.New(rand.NewPCG(seed, 3))
	w := newWeights(inputs, hidden, classes)
	uniform := func(v []float32, in, out int) {
		limit := math.Sqrt(6 / float64(in+out))
		for i := range v {
			v[i] = float32(limit * (2*r.Float64() - 1))
		}
	}
	uniform(w.W1, inputs, hidden)
	uniform(w.W2, hidden, classes)
	return w, nil
}

func newWeights(inputs, hidden, classes int) *Weights {
	return &Weights{
		inputs, hidden, classes,
		make([]float32, inputs*hidden), make([]float32, hidden), make([]float32, hidden*classes), make([]float32, classes),
	}
}

func (w *Weights) check(op string) error {
	if w == nil || w.Inputs < 1 || w.Hidden < 1 || w.Classes < 1 || w.Inputs > maxUnits || w.Hidden > maxUnits || w.Classes > maxUnits ||
		len(w.W1) != w.Inputs*w.Hidden || len(w.B1) != w.Hidden || len(w.W2) != w.Hidden*w.Classes || len(w.B2) != w.Classes {
		return fail(op, gpu.ErrInvalid, "weights that do not fit together")
	}
	return nil
}

// parts are the four matrices, in the order of the tasks that have them.
func (w *Weights) parts() [4][]float32 { return [...][]float32{w.W1, w.B1, w.W2, w.B2} }

// Predict returns the most likely class of each example, computed on the host. Features are whole examples.
func (w *Weights) Predict(features []float32) ([]uint8, error) {
	const op = "Predict"
	if err := w.check(op); err != nil {
		return nil, err
	}
	if len(features)%w.Inputs != 0 || w.Classes > 256 {
		return nil, fail(op, gpu.ErrInvalid, itoa(len(features)), " features of ", itoa(w.Inputs), ", ", itoa(w.Classes), " classes")
	}
	out := make([]uint8, len(features)/w.Inputs)
	h, z := make([]float32, w.Hidden), make([]float32, w.Classes)
	for i := range out {
		layer(h, features[i*w.Inputs:(i+1)*w.Inputs], w.W1, w.B1)
		for j, v := range h {
			h[j] = float32(math.Tanh(float64(v)))
		}
		layer(z, h, w.W2, w.B2)
		best := 0
		for k, v := range z {
			if v > z[best] {
				best = k
			}
		}
		out[i] = uint8(best)
	}
	return out, nil
}

// layer computes x*w + b.
func layer(out, x, w, b []float32) {
	copy(out, b)
	for i, v := range x {
		if v == 0 { // most pixels of a digit
			continue
		}
		for j, m := range w[i*len(out) : (i+1)*len(out)] {
			out[j] += v * m
		}
	}
}

// Errors returns the share of the examples whose class the weights do not find.
func (w *Weights) Errors(d *Data) (float32, error) {
	if err := d.check("Errors"); err != nil {
		return 0, err
	}
	got, err := w.Predict(d.Features)
	if err != nil {
		return 0, err
	}
	if len(got) != len(d.Labels) || len(got) == 0 {
		return 0, fail("Errors", gpu.ErrInvalid, itoa(len(got)), " examples of ", itoa(w.Inputs), " numbers for ", itoa(len(d.Labels)), " labels")
	}
	wrong := 0
	for i, l := range d.Labels {
		if got[i] != l {
			wrong++
		}
	}
	return float32(wrong) / float32(len(got)), nil
}
