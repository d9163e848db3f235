// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

const (
	side    = 28 // pixels of an image, in both directions
	classes = 10
)

// The network: a convolution of 7x7 that stands at every third pixel, a hidden layer of all that it finds, and a layer from there to
// the ten digits. web/demo/digits-reader.mjs computes the same.
var (
	conv = nn.Conv{Window: nn.Window{
		Channels: 1, Height: side, Width: side, KernelHeight: 7, KernelWidth: 7, StrideHeight: 3, StrideWidth: 3,
	}, Outputs: 16}
	features = conv.Outputs * places * places
)

const (
	places = 8 // of the window, in both directions
	hidden = 64
)

// shapes are the parameters in the order of the file. Biases have one row.
var shapes = []struct {
	name       string
	rows, cols int
	inputs     int // that are added up
}{
	{"conv_weight", conv.Outputs, 49, 49},
	{"conv_bias", 1, conv.Outputs, 0},
	{"hidden_weight", features, hidden, features},
	{"hidden_bias", 1, hidden, 0},
	{"output_weight", hidden, classes, hidden},
	{"output_bias", 1, classes, 0},
}

// network is the parameters, in the order of shapes.
type network []*nn.Dense

// newNetwork makes a network of random weights: normal ones whose variance is 2 over the inputs that are added up (He and others,
// "Delving Deep into Rectifiers", 2015).
func newNetwork(dev *gpu.Device, seed uint64) (n network, err error) {
	r := rand.New(rand.NewPCG(seed, 2))
	for _, s := range shapes {
		values := make([]float32, s.rows*s.cols)
		for i := range values {
			if s.inputs > 0 {
				values[i] = float32(r.NormFloat64() * math.Sqrt(2/float64(s.inputs)))
			}
		}
		m, err := matrix.FromSlice(dev, s.rows, s.cols, values)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n = append(n, m)
	}
	return n, nil
}

func (n network) close() error {
	var err error
	for _, m := range n {
		err = errors.Join(err, m.Close())
	}
	return err
}

// activations are what the layers make of a batch.
type activations struct{ found, hidden, logits nn.Dense }

// forward computes the activations of images, a row each.
func (n network) forward(a *activations, x nn.Operand) error {
	return errors.Join(
		a.found.Assign(conv.Forward(x, n[0], n[1]).Relu()),
		a.hidden.Assign(matrix.Mul(&a.found, n[2]).Add(n[3]).Relu()),
		a.logits.Assign(matrix.Mul(&a.hidden, n[4]).Add(n[5])),
	)
}

// step moves the parameters against the gradient of the mean loss of a batch, and returns the loss before.
func (n network) step(opt nn.Optimiser, a *activations, x *nn.Dense, labels *matrix.Dense[int32]) (*nn.Expr, error) {
	if err := n.forward(a, x); err != nil {
		return nil, err
	}
	loss := nn.CrossEntropy(&a.logits, labels).Mean()
	rows, _ := x.Dims()
	var d, dHidden, dFound nn.Dense // the loss by the layers' results
	defer func() { _ = errors.Join(d.Close(), dHidden.Close(), dFound.Close()) }()
	err := errors.Join(
		d.Assign(nn.CrossEntropyGrad(&a.logits, labels).Scale(1/float32(rows))),
		dHidden.Assign(matrix.ReluGrad(matrix.Mul(&d, n[4].T()), &a.hidden)),
		dFound.Assign(matrix.ReluGrad(matrix.Mul(&dHidden, n[2].T()), &a.found)),
	)
	for i, grad := range []*nn.Expr{
		conv.KernelGrad(&dFound, x), conv.BiasGrad(&dFound), matrix.Mul(a.found.T(), &dHidden), matrix.SumCols(&dHidden),
		matrix.Mul(a.hidden.T(), &d), matrix.SumCols(&d),
	} {
		err = errors.Join(err, opt.Step(n[i], grad))
	}
	return loss, err
}

// predict returns the likeliest digit of each image.
func (n network) predict(ctx context.Context, images []float32) ([]int32, error) {
	x, err := matrix.Wrap(n[0].Device(), len(images)/mnist.Pixels, mnist.Pixels, images)
	if err != nil {
		return nil, err
	}
	var a activations
	defer func() { _ = errors.Join(x.Close(), a.found.Close(), a.hidden.Close(), a.logits.Close()) }()
	if err := n.forward(&a, x); err != nil {
		return nil, err
	}
	return matrix.ArgMaxRows(&a.logits).Read(ctx)
}

// save writes the parameters as a dictionary.
func (n network) save(ctx context.Context, w io.Writer) error {
	var p ndarray.Params
	defer func() { _ = p.Close() }()
	for i, m := range n {
		a, err := m.Array()
		if err != nil {
			return err
		}
		p = append(p, ndarray.Param{Name: shapes[i].name, Array: a})
	}
	return ndarray.SaveParams(ctx, w, p, params.Options{})
}

// load reads what save has written.
func load(ctx context.Context, dev *gpu.Device, r io.Reader) (n network, err error) {
	p, err := ndarray.LoadParams(ctx, dev, r, ndarray.LoadOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	for _, s := range shapes {
		a, err := p.Get(s.name)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		m, err := matrix.FromArray[float32](a)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n = append(n, m)
	}
	return n, nil
}
