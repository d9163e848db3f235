// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Conv is a convolution of images as in neural networks: the kernel is not flipped. Its weights have a row for each output
// channel: outputs x (channels/groups*kernelHeight*kernelWidth), each row in the order of an image's.
//
// It is a product of the weights and a matrix with the elements below each place of the window (im2col), which takes
// channels*kernelHeight*kernelWidth times the memory of one output channel while it is computed.
type Conv struct {
	Window
	Outputs int // channels of the result
	// Groups is into how many groups channels and outputs are divided, each of which sees its own alone. 0 is 1. Groups save weights
	// and no time: the product is that of a convolution without.
	Groups int
}

// kernelOf is a validated convolution.
type kernelOf struct {
	grid
	outputs, groups int
	cols            int // of the weights
}

func (c Conv) checked(op string) (k kernelOf, err error) {
	g, err := c.grid(op)
	if err != nil {
		return k, err
	}
	if c.Groups == 0 {
		c.Groups = 1
	}
	if c.Outputs < 1 || c.Groups < 0 || c.Outputs%c.Groups != 0 || c.Channels%c.Groups != 0 {
		return k, fail(op, gpu.ErrInvalid, "groups divide channels and outputs, of which there is at least one")
	}
	height, width := g.Height+(g.KernelHeight-1)*g.DilationHeight, g.Width+(g.KernelWidth-1)*g.DilationWidth
	err = counts(op, c.Outputs, max(g.kernel, g.out, g.image, height*width)) // height*width fits int32
	return kernelOf{g, c.Outputs, c.Groups, c.Channels / c.Groups * g.kernel}, err
}

// weights reads the weights, with zeros for the channels that are not in an output's group.
func (k kernelOf) weights(op string, w Operand) (*Expr, error) {
	e, shape, err := read(op, w)
	switch {
	case err != nil:
		return nil, err
	case shape != fault.Shape{k.outputs, k.cols}:
		return nil, shapeError(op, fitsSize(k.outputs, k.cols), shape, fault.Shape{k.outputs, k.cols})
	case k.groups == 1:
		return e, nil
	}
	i := rowsOf(k.outputs)
	return matrix.Gather(e, i, matrix.Sub(colsOf(k.Channels*k.kernel), k.firstOf(i))), nil
}

// operands reads n images, or results if set, and the weights.
func (c Conv) operands(op string, x, weights Operand, results bool) (k kernelOf, e, w *Expr, n int, err error) {
	if k, err = c.checked(op); err != nil {
		return k, nil, nil, 0, err
	}
	channels, size := k.Channels, k.image
	if results {
		channels, size = k.outputs, k.out
	}
	if e, n, err = k.images(op, x, channels, size); err != nil {
		return k, nil, nil, 0, err
	}
	w, err = k.weights(op, weights)
	return k, e, w, n, err
}

// firstOf is the first column of the full weight matrix that the group of a row uses.
func (k kernelOf) firstOf(row *whole) *whole { return times(over(row, k.outputs/k.groups), k.cols) }

// batches turns channels x (n*places) into n x (channels*places).
func batches(x *Expr, n, channels, places int) *Expr {
	j := colsOf(channels * places)
	return matrix.Gather(x, over(j, places), times(rowsOf(n), places).Add(rest(j, places)))
}

// Forward is the convolution of n images, n x (channels*height*width), with weights, plus bias: n x (outputs*outHeight*outWidth).
// The bias has an element for each output, 1 x outputs or outputs x 1, or is nil. Element-wise functions of the result, as in
// conv.Forward(x, w, b).Relu(), are computed in the kernel that adds the bias.
func (c Conv) Forward(x, weights, bias Operand) *Expr {
	const op = "Conv.Forward"
	k, e, w, n, err := c.operands(op, x, weights, false)
	if err != nil {
		return failed(err)
	}
	image, height, width := padded(k.grid, e, 0)
	y := batches(matrix.Mul(w, columns(k.grid, image, k.forward(n, height, width), false)), n, k.outputs, k.out)
	if bias == nil {
		return y
	}
	b, shape, err := read(op, bias)
	if err == nil && (min(shape[0], shape[1]) != 1 || max(shape[0], shape[1]) != k.outputs) {
		err = shapeError(op, "a row or a column of "+itoa(k.outputs)+" is needed", shape, fault.Shape{1, k.outputs})
	}
	if err != nil {
		return failed(err)
	}
	output := over(colsOf(k.outputs*k.out), k.out)
	if shape[0] == 1 {
		return y.Add(matrix.Gather(b, number(0), output))
	}
	return y.Add(matrix.Gather(b, output, number(0)))
}

// DataGrad is the gradient of a loss by the images, n x (channels*height*width), given d, the one by Forward's result. It is also
// what networks call a transposed convolution or deconvolution of d.
func (c Conv) DataGrad(d, weights Operand) *Expr {
	const op = "Conv.DataGrad"
	k, e, w, n, err := c.operands(op, d, weights, true)
	if err != nil {
		return failed(err)
	}
	// The weights with channels for rows, each window turned round.
	q := colsOf(k.outputs * k.kernel)
	place := plus(times(rowsOf(k.Channels), k.kernel), k.kernel-1).Sub(rest(q, k.kernel))
	turned := matrix.Gather(w, over(q, k.kernel), place)
	from, height, width := spread(k.grid, e, k.outputs)
	all := columns(k.grid, from, k.backward(n, k.outputs, height, width), false)
	return batches(matrix.Mul(turned, all), n, k.Channels, k.image)
}

// KernelGrad is the gradient of a loss by the weights, of their size, given d, the one by Forward's result, and the images x.
func (c Conv) KernelGrad(d, x Operand) *Expr {
	const op = "Conv.KernelGrad"
	k, err := c.checked(op)
	if err != nil {
		return failed(err)
	}
	e, n, err := k.images(op, x, k.Channels, k.image)
	if err != nil {
		return failed(err)
	}
	grad, m, err := k.images(op, d, k.outputs, k.out)
	if err == nil && m != n {
		err = shapeError(op, fitsRows, fault.Shape{m, k.outputs * k.out}, fault.Shape{n, k.Channels * k.image})
	}
	if err != nil {
		return failed(err)
	}
	image, height, width := padded(k.grid, e, 0)
	all := columns(k.grid, image, k.forward(n, height, width), false)
	j := colsOf(n * k.out)
	byOutput := matrix.Gather(grad, over(j, k.out), times(rowsOf(k.outputs), k.out).Add(rest(j, k.out)))
	full := matrix.Mul(byOutput, all.T())
	if k.groups == 1 {
		return full
	}
	i := rowsOf(k.outputs)
	return matrix.Gather(full, i, colsOf(k.cols).Add(k.firstOf(i)))
}

// BiasGrad is the gradient of a loss by the bias, 1 x outputs, given d, the one by Forward's result.
func (c Conv) BiasGrad(d Operand) *Expr {
	const op = "Conv.BiasGrad"
	k, err := c.checked(op)
	if err != nil {
		return failed(err)
	}
	e, _, err := k.images(op, d, k.outputs, k.out)
	if err != nil {
		return failed(err)
	}
	return matrix.Reshape(e.SumCols(), k.outputs, k.out).SumRows().T()
}
