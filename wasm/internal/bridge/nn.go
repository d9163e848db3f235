// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The kinds of OpLayer, their operands and numbers. A window is 13 numbers, in the order of the fields of [nn.Window]; a convolution is
// a window and the numbers of outputs and groups. Operands are float32, labels int32.
const (
	layerConv             = iota // x weights [bias]: convolution
	layerDataGrad                // d weights: convolution
	layerKernelGrad              // d x: convolution
	layerBiasGrad                // d: convolution
	layerMaxPool                 // x: window
	layerMaxPoolGrad             // d x: window
	layerAveragePool             // x: window, 1 if padding counts
	layerAveragePoolGrad         // d: window, 1 if padding counts
	layerInfer                   // x scale bias mean variance: channels epsilon
	layerBackward                // d x scale mean invStd: channels epsilon, which of the gradients by x, scale and bias
	layerCrossEntropy            // x labels
	layerCrossEntropyGrad        // x labels
	layerMSE                     // x target
	layerMSEGrad                 // x target
	layerDropout                 // x mask: the share that is kept
	layerEmbedding               // table labels
	layerEmbeddingGrad           // d labels: rows of the table
	layerDequantise              // levels lower upper: rows bits
	layerKinds
)

// layers are how many operands and numbers the kinds have.
var layers = [layerKinds]struct{ least, most, numbers int }{
	layerConv: {2, 3, 15}, layerDataGrad: {2, 2, 15}, layerKernelGrad: {2, 2, 15}, layerBiasGrad: {1, 1, 15},
	layerMaxPool: {1, 1, 13}, layerMaxPoolGrad: {2, 2, 13}, layerAveragePool: {1, 1, 14}, layerAveragePoolGrad: {1, 1, 14},
	layerInfer: {5, 5, 2}, layerBackward: {5, 5, 3},
	layerCrossEntropy: {2, 2, 0}, layerCrossEntropyGrad: {2, 2, 0}, layerMSE: {2, 2, 0}, layerMSEGrad: {2, 2, 0},
	layerDropout: {2, 2, 1}, layerEmbedding: {2, 2, 0}, layerEmbeddingGrad: {2, 2, 1}, layerDequantise: {3, 3, 2},
}

// layer decodes an operation of package nn.
func (p *program) layer() anyExpr {
	kind, count := p.index(), p.index()
	x := layer{p, append([]anyArg{}, p.some(count)...), p.doubles()}
	if kind >= layerKinds || len(x.args) != count {
		page.Invalid("layer " + itoa(kind) + " of " + itoa(count) + " operands")
	}
	if want := layers[kind]; count < want.least || count > want.most || len(x.numbers) != want.numbers {
		page.Invalid("layer " + itoa(kind) + " of " + itoa(count) + " operands and " + itoa(len(x.numbers)) + " numbers")
	}
	var e *nn.Expr
	switch {
	case kind <= layerBiasGrad:
		e = x.conv(kind)
	case kind <= layerAveragePoolGrad:
		e = x.pool(kind)
	case kind <= layerBackward:
		e = x.normalised(kind)
	case kind == layerDequantise:
		e = x.dequantised()
	default:
		e = x.lossOrLookup(kind)
	}
	return matrix.Convert[matrix.Any](e)
}

// layer is an operation with its operands and numbers.
type layer struct {
	p       *program
	args    []anyArg
	numbers []float64
}

// typed returns a value as an expression of its element type.
func typed[T matrix.Elem](x anyArg, t matrix.DType) *matrix.Expr[T] {
	e := x.(anyExpr)
	if e.DType() != t {
		page.Check(fault.Fail("nn", fault.ErrInvalid, e.DType().String(), " where ", t.String(), " is needed"))
	}
	return matrix.Convert[T](e)
}

func (x *layer) operand(i int) *nn.Expr { return typed[float32](x.args[i], matrix.Float32) }

// labels are the second operand.
func (x *layer) labels() nn.Labels { return typed[int32](x.args[1], matrix.Int32) }

// whole is a number that is an integer.
func (x *layer) whole(i int) int {
	v := x.numbers[i]
	if v != math.Trunc(v) || math.Abs(v) > math.MaxUint32 {
		page.Invalid("a number that is no integer")
	}
	return int(v)
}

func (x *layer) window() nn.Window {
	var n [13]int
	for i := range n {
		n[i] = x.whole(i)
	}
	return nn.Window{
		Channels: n[0], Height: n[1], Width: n[2], KernelHeight: n[3], KernelWidth: n[4], StrideHeight: n[5], StrideWidth: n[6],
		DilationHeight: n[7], DilationWidth: n[8], Top: n[9], Bottom: n[10], Left: n[11], Right: n[12],
	}
}

func (x *layer) conv(kind int) *nn.Expr {
	c := nn.Conv{Window: x.window(), Outputs: x.whole(13), Groups: x.whole(14)}
	switch kind {
	case layerDataGrad:
		return c.DataGrad(x.operand(0), x.operand(1))
	case layerKernelGrad:
		return c.KernelGrad(x.operand(0), x.operand(1))
	case layerBiasGrad:
		return c.BiasGrad(x.operand(0))
	}
	if len(x.args) == 2 {
		return c.Forward(x.operand(0), x.operand(1), nil)
	}
	return c.Forward(x.operand(0), x.operand(1), x.operand(2))
}

func (x *layer) pool(kind int) *nn.Expr {
	w := x.window()
	switch kind {
	case layerMaxPool:
		return w.MaxPool(x.operand(0))
	case layerMaxPoolGrad:
		return w.MaxPoolGrad(x.operand(0), x.operand(1))
	case layerAveragePool:
		return w.AveragePool(x.operand(0), x.numbers[13] != 0)
	}
	return w.AveragePoolGrad(x.operand(0), x.numbers[13] != 0)
}

func (x *layer) normalised(kind int) *nn.Expr {
	b := nn.BatchNorm{Channels: x.whole(0), Epsilon: float32(x.numbers[1])}
	if kind == layerInfer {
		return b.Infer(x.operand(0), x.operand(1), x.operand(2), x.operand(3), x.operand(4))
	}
	s := &nn.Statistics{Mean: dense[float32](x.p.part(x.args[3].(anyExpr))), InvStd: dense[float32](x.p.part(x.args[4].(anyExpr)))}
	dx, dscale, dbias := b.Backward(x.operand(0), x.operand(1), x.operand(2), s)
	switch x.whole(2) {
	case 0:
		return dx
	case 1:
		return dscale
	}
	return dbias
}

// dense is a matrix of an element type of Go's.
func dense[T, F matrix.Elem](m *matrix.Dense[F]) *matrix.Dense[T] { return page.Must(matrix.As[T](m)) }

func (x *layer) dequantised() *nn.Expr {
	part := func(i int) *anyDense { return x.p.part(x.args[i].(anyExpr)) }
	q := &nn.Quantised{Levels: dense[uint8](part(0)), Lower: dense[float32](part(1)), Upper: dense[float32](part(2))}
	q.Rows, q.Bits = x.whole(0), x.whole(1)
	return q.Dequantise()
}

func (x *layer) lossOrLookup(kind int) *nn.Expr {
	first := x.operand(0)
	switch kind {
	case layerCrossEntropy:
		return nn.CrossEntropy(first, x.labels())
	case layerCrossEntropyGrad:
		return nn.CrossEntropyGrad(first, x.labels())
	case layerMSE:
		return nn.MSE(first, x.operand(1))
	case layerMSEGrad:
		return nn.MSEGrad(first, x.operand(1))
	case layerDropout:
		return nn.Dropout(first, x.operand(1), float32(x.numbers[0]))
	case layerEmbedding:
		return nn.Embedding(first, x.labels())
	}
	return nn.EmbeddingGrad(first, x.labels(), x.whole(0))
}
