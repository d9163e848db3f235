// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package. Compare with errors.Is; all come wrapped in a [gpu.OpError]. Others are those of packages gpu and
// buffer, such as [gpu.ErrInvalid], [buffer.ErrShape] and [buffer.ErrNil].
var (
	ErrAlignment      = fault.New("ErrAlignment", "not aligned")
	ErrCapacity       = fault.New("ErrCapacity", "stride too small for padding")
	ErrExternalResize = fault.New("ErrExternalResize", "external memory cannot be resized")
	ErrView           = fault.New("ErrView", "a view cannot be resized")
	ErrSyntax         = fault.New("ErrSyntax", "malformed expression")
	ErrName           = fault.New("ErrName", "unknown name")
	ErrSparse         = fault.New("ErrSparse", "broken sparse structure")
	ErrOrder          = fault.New("ErrOrder", "entry out of storage order")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("matrix: "+op, err, detail...)
}

func firstError(errs ...error) error { return cmp.Or(errs...) }

func itoa(n int) string { return strconv.Itoa(n) }
