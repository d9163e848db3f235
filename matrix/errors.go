// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// The errors of this package. Compare with errors.Is; all come wrapped in a [gpu.OpError]. Others are those of
// package gpu, such as [gpu.ErrInvalid], and [buffer.ErrSize].
var (
	ErrAlignment      = fault.New("ErrAlignment", "not aligned")
	ErrCapacity       = fault.New("ErrCapacity", "stride too small for padding")
	ErrExternalResize = fault.New("ErrExternalResize", "external memory cannot be resized")
	ErrView           = fault.New("ErrView", "a view cannot be resized")
	ErrSyntax         = fault.New("ErrSyntax", "malformed expression")
	ErrName           = fault.New("ErrName", "unknown name")

	ErrShape  = buffer.ErrShape
	ErrIndex  = buffer.ErrIndex
	ErrStride = buffer.ErrStride
	ErrNil    = buffer.ErrNil
	ErrShort  = buffer.ErrShort
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("matrix: "+op, err, detail...)
}

func shapeError(op string, shapes ...gpu.Shape) error { return expr.ShapeError(op, shapes...) }

func itoa(n int) string { return strconv.Itoa(n) }
