// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package. Compare with errors.Is; all but [PrecisionError] come wrapped in a [gpu.OpError]. Others
// are those of packages gpu and buffer.
var (
	ErrType      = fault.New("ErrType", "element type that is not possible here")
	ErrLength    = fault.New("ErrLength", "sizes in bytes differ")
	ErrValue     = fault.New("ErrValue", "value that the element type does not have")
	ErrPrecision = fault.New("ErrPrecision", "value beyond the precision")
	ErrName      = fault.New("ErrName", "unknown name")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("ndarray: "+op, err, detail...)
}

func itoa(n int) string { return strconv.Itoa(n) }

// text writes a shape as "2x3", one without dimensions as "scalar".
func text(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var b []byte
	for i, d := range shape {
		if i > 0 {
			b = append(b, 'x')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return string(b)
}

// verify is the reference's VerifyDataType: at least one lane, and bits that are a power of two and a multiple of 8, or 1
// for TVM's older bool. Codes are not looked at. Unlike there, a type without bits is refused.
func verify(op string, t dtype.Type) error {
	power := t.Bits&(t.Bits-1) == 0 && t.Bits%8 == 0 && t.Bits != 0
	if t.Lanes >= 1 && (power || t.Bits == 1 && t.Code == dtype.Uint8.Code) {
		return nil
	}
	return fail(op, ErrType, t.String())
}
