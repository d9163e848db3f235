// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// The format takes for a type whatever numpy.dtype takes. What is expected here is what NumPy 1.24.2 makes of each text, but
// for those that are refused because they depend on the machine, or are no type of ours.
func TestTypeNames(t *testing.T) {
	type want struct {
		typ dtype.Type
		big bool
	}
	little := func(t dtype.Type) want { return want{t, false} }
	for descr, w := range map[string]want{
		"f4": little(dtype.Float32), "=f4": little(dtype.Float32), "|f4": little(dtype.Float32), ">f4": {dtype.Float32, true},
		"<f": little(dtype.Float32), ">f": {dtype.Float32, true}, "f": little(dtype.Float32), "d": little(dtype.Float64),
		"e": little(dtype.Float16), ">F": {dtype.Complex64, true}, "D": little(dtype.Complex128), "?": little(dtype.Bool8),
		">?": little(dtype.Bool8), "b": little(dtype.Int8), "b1": little(dtype.Bool8), "B": little(dtype.Uint8), "h": little(dtype.Int16),
		"H": little(dtype.Uint16), "<i": little(dtype.Int32), "I": little(dtype.Uint32), ">q": {dtype.Int64, true}, "Q": little(dtype.Uint64),
		"float32": little(dtype.Float32), "bool": little(dtype.Bool8), "uint16": little(dtype.Uint16), "complex128": little(dtype.Complex128),
		// Of 4 or 8 bytes, as the machine has it.
		"l": {}, "<L": {}, "int": {},
		// Not NumPy's.
		">float32": {}, "bfloat16": {}, "uint1": {}, "float8_e5m2": {}, "code6_8": {}, "float32x2": {}, "F4": {}, "??": {}, "<": {},
		// Not ours.
		"g": {}, "O": {}, "c": {}, "object": {}, "str": {}, "float128": {},
	} {
		data := npyFile(1, "{'descr': '"+descr+"', 'fortran_order': False, 'shape': ()}", strings.Repeat("\x00", 16))
		r, err := npy.NewReader(strings.NewReader(data), int64(len(data)))
		if w == (want{}) {
			if !errors.Is(err, file.ErrType) {
				t.Errorf("%s: error %v", descr, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", descr, err)
		} else if h := r.Header(); h.Type != w.typ || h.BigEndian != w.big {
			t.Errorf("%s: %+v", descr, h)
		}
	}
}
