// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// MaxPool is the largest element below each place of the window, for each channel: n x (channels*outHeight*outWidth) of
// n x (channels*height*width). Padding is never the largest, a NaN is.
func (w Window) MaxPool(x Operand) *Expr {
	g, e, n, err := w.read("MaxPool", x)
	if err != nil {
		return failed(err)
	}
	return matrix.Reshape(g.windows(e, n, float32(math.Inf(-1))).MaxCols(), n, g.Channels*g.out)
}

// read reads n images.
func (w Window) read(op string, x Operand) (g grid, e *Expr, n int, err error) {
	if g, err = w.grid(op); err == nil {
		e, n, err = g.images(op, x, g.Channels, g.image)
	}
	return g, e, n, err
}

// windows has a column for each image, channel and place of the window, with other for padding.
func (g grid) windows(x *Expr, n int, other float32) *Expr {
	image, height, width := padded(g, x, other)
	return columns(g, image, g.forward(n, height, width), true)
}

// MaxPoolGrad is the gradient of a loss by x, given the one by MaxPool(x): d, of its size. It goes to the largest element below each
// place of the window, to the first one, row by row, of several, of which padding may be the first if
// they are all -Inf. Where windows overlap gradients add.
func (w Window) MaxPoolGrad(d, x Operand) *Expr { return w.scatter("MaxPoolGrad", d, x) }

// MaxUnpool puts the elements of y, of the size of MaxPool(x), where the largest elements of x are that MaxPool takes, and 0
// elsewhere. Where windows overlap elements add: it is the same function as [Window.MaxPoolGrad].
func (w Window) MaxUnpool(y, x Operand) *Expr { return w.scatter("MaxUnpool", y, x) }

func (w Window) scatter(op string, d, x Operand) *Expr {
	g, e, n, err := w.read(op, x)
	if err != nil {
		return failed(err)
	}
	grad, m, err := g.images(op, d, g.Channels, g.out)
	if err == nil && m != n {
		err = shapeError(op, fitsRows, fault.Shape{m, g.Channels * g.out}, fault.Shape{n, g.Channels * g.image})
	}
	if err != nil {
		return failed(err)
	}
	chosen := matrix.Reshape(g.windows(e, n, float32(math.Inf(-1))).ArgMaxCols(), n, g.Channels*g.out)
	at, height, width := spread(g, chosen, g.Channels)
	from, _, _ := spread(g, grad, g.Channels)
	back := g.backward(n, g.Channels, height, width)
	// Element r of the window turned round is element kernel-1-r of the window.
	mine := matrix.Equal(columns(g, at, back, true), matrix.Sub(number(g.kernel-1), rowsOf(g.kernel)))
	return matrix.Reshape(where(mine, columns(g, from, back, true)).SumCols(), n, g.Channels*g.image)
}

// AveragePool is the mean of the elements below each place of the window, for each channel: n x (channels*outHeight*outWidth) of
// n x (channels*height*width). Padding counts as zeros if includePad is set; otherwise it does not count, and a window that sees
// nothing else is 0.
func (w Window) AveragePool(x Operand, includePad bool) *Expr {
	g, e, n, err := w.read("AveragePool", x)
	if err != nil {
		return failed(err)
	}
	sums := matrix.Reshape(g.windows(e, n, 0).SumCols(), n, g.Channels*g.out)
	return g.averaged(sums, includePad)
}

// averaged divides what is n x (channels*out) by how many elements each window has.
func (g grid) averaged(x *Expr, includePad bool) *Expr {
	if includePad || g.Top+g.Bottom+g.Left+g.Right == 0 {
		return x.DivScalar(float32(g.kernel))
	}
	one := g
	one.Channels = 1
	counts := one.windows(matrix.Fill[float32](1, g.image, 1), 1, 0).SumCols() // 1 x out
	count := matrix.Gather(counts, number(0), rest(colsOf(g.Channels*g.out), g.out))
	return x.DivElem(count.MaxScalar(1))
}

// AveragePoolGrad is the gradient of a loss by x, given the one by AveragePool(x, includePad): d, of its size.
func (w Window) AveragePoolGrad(d Operand, includePad bool) *Expr {
	const op = "AveragePoolGrad"
	g, err := w.grid(op)
	if err != nil {
		return failed(err)
	}
	e, n, err := g.images(op, d, g.Channels, g.out)
	if err != nil {
		return failed(err)
	}
	from, height, width := spread(g, g.averaged(e, includePad), g.Channels)
	all := columns(g, from, g.backward(n, g.Channels, height, width), true)
	return matrix.Reshape(all.SumCols(), n, g.Channels*g.image)
}
