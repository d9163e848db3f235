// SPDX-License-Identifier: Apache-2.0

package matrix

// The methods of an expression append to it, so that a computation reads in the order in which it happens:
//
//	err = y.Assign(matrix.Mul(w, x).Add(bias).Tanh())

// Mul is the matrix product e * b.
func (e *Expr[T]) Mul(b Operand[T]) *Expr[T] { return Mul(e, b) }

// Add is e + b.
func (e *Expr[T]) Add(b Operand[T]) *Expr[T] { return Add(e, b) }

// Sub is e - b.
func (e *Expr[T]) Sub(b Operand[T]) *Expr[T] { return Sub(e, b) }

// MulElem is the element-wise product.
func (e *Expr[T]) MulElem(b Operand[T]) *Expr[T] { return MulElem(e, b) }

// DivElem is the element-wise quotient.
func (e *Expr[T]) DivElem(b Operand[T]) *Expr[T] { return DivElem(e, b) }

// Min is the element-wise minimum.
func (e *Expr[T]) Min(b Operand[T]) *Expr[T] { return Min(e, b) }

// Max is the element-wise maximum.
func (e *Expr[T]) Max(b Operand[T]) *Expr[T] { return Max(e, b) }

// Pow is e to the power b, element by element.
func (e *Expr[T]) Pow(b Operand[T]) *Expr[T] { return Pow(e, b) }

// Scale is s * e.
func (e *Expr[T]) Scale(s T) *Expr[T] { return Scale(s, e) }

// AddScalar is e + s.
func (e *Expr[T]) AddScalar(s T) *Expr[T] { return AddScalar(e, s) }

// DivScalar is e / s.
func (e *Expr[T]) DivScalar(s T) *Expr[T] { return DivScalar(e, s) }

// MinScalar is the smaller of each element and s.
func (e *Expr[T]) MinScalar(s T) *Expr[T] { return MinScalar(e, s) }

// MaxScalar is the larger of each element and s.
func (e *Expr[T]) MaxScalar(s T) *Expr[T] { return MaxScalar(e, s) }

// PowScalar is e to the power s.
func (e *Expr[T]) PowScalar(s T) *Expr[T] { return PowScalar(e, s) }

// Clamp limits e to lo..hi.
func (e *Expr[T]) Clamp(lo, hi T) *Expr[T] { return Clamp(e, lo, hi) }

// Neg is -e.
func (e *Expr[T]) Neg() *Expr[T] { return Neg(e) }

// Abs is the absolute value.
func (e *Expr[T]) Abs() *Expr[T] { return Abs(e) }

// Square is e * e, element by element.
func (e *Expr[T]) Square() *Expr[T] { return Square(e) }

// Sqrt is the square root.
func (e *Expr[T]) Sqrt() *Expr[T] { return Sqrt(e) }

// Exp is the exponential.
func (e *Expr[T]) Exp() *Expr[T] { return Exp(e) }

// Log is the natural logarithm.
func (e *Expr[T]) Log() *Expr[T] { return Log(e) }

// Tanh is the hyperbolic tangent.
func (e *Expr[T]) Tanh() *Expr[T] { return Tanh(e) }

// Sigmoid is 1 / (1 + exp(-e)).
func (e *Expr[T]) Sigmoid() *Expr[T] { return Sigmoid(e) }

// Relu is e where it is positive and 0 elsewhere.
func (e *Expr[T]) Relu() *Expr[T] { return Relu(e) }

// T is the transpose.
func (e *Expr[T]) T() *Expr[T] { return Transpose(e) }

// Sum is the sum of all elements.
func (e *Expr[T]) Sum() *Expr[T] { return Sum(e) }

// SumRows is the sum of each row.
func (e *Expr[T]) SumRows() *Expr[T] { return SumRows(e) }

// SumCols is the sum of each column.
func (e *Expr[T]) SumCols() *Expr[T] { return SumCols(e) }

// Softmax is exp(e) divided by its sum, row by row.
func (e *Expr[T]) Softmax() *Expr[T] { return Softmax(e) }

// Apply applies a function of the user's of one argument.
func (e *Expr[T]) Apply(f *Func) *Expr[T] { return Apply(f, e) }
