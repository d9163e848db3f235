// SPDX-License-Identifier: Apache-2.0

package dtype_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

func TestNames(t *testing.T) {
	for want, typ := range map[string]dtype.Type{
		"int8": dtype.Int8, "uint64": dtype.Uint64, "float16": dtype.Float16, "bfloat16": dtype.BFloat16,
		"complex64": dtype.Complex64, "bool": dtype.Bool8, "uint1": dtype.Bool1, "float32x4": {dtype.Float32.Code, 32, 4},
		"float8_e4m3fn": {10, 8, 1}, "float4_e2m1fn": {17, 4, 1},
		"float6_e3m2fnx2": {16, 6, 2}, "code99_8": {99, 8, 1}, "handle64": {3, 64, 1},
		"float32x0": {dtype.Float32.Code, 32, 0}, "code6_1": {6, 1, 1},
	} {
		if got := typ.String(); got != want {
			t.Errorf("%v: %q, want %q", typ, got, want)
		}
		if got, ok := dtype.Parse(want); !ok || got != typ {
			t.Errorf("Parse(%q): %#v, %v", want, got, ok)
		}
	}
	for _, s := range []string{"", "float", "int300", "x4", "float32x", "float32x99999", "float032", "bool8", "code_8", "int8x1", "FLOAT32"} {
		if got, ok := dtype.Parse(s); ok {
			t.Errorf("Parse(%q): %v", s, got)
		}
	}
}

// TestEveryType holds Parse to String for whatever a hostile file may name.
func TestEveryType(t *testing.T) {
	for code := range 256 {
		for bits := range 256 {
			for _, lanes := range []uint16{0, 1, 2, math.MaxUint16} {
				typ := dtype.Type{Code: uint8(code), Bits: uint8(bits), Lanes: lanes}
				if got, ok := dtype.Parse(typ.String()); !ok || got != typ {
					t.Fatalf("%v: Parse(%q): %v, %v", typ, typ.String(), got, ok)
				}
			}
		}
	}
}

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		t     dtype.Type
		shape []int64
		n, b  int64
		ok    bool
	}{
		{dtype.Float32, nil, 1, 4, true},
		{dtype.Float32, []int64{2, 3}, 6, 24, true},
		{dtype.Bool1, []int64{5}, 5, 5, true},
		{dtype.Float16, []int64{math.MaxInt64, 0, math.MaxInt64}, 0, 0, true},
		{dtype.Float32, []int64{-1, -2}, 0, 0, false},
		{dtype.Float32, []int64{0, -2}, 0, 0, false},
		{dtype.Int8, []int64{1<<62 + 1, 4}, 0, 0, false},
		{dtype.Int8, []int64{math.MaxInt64}, math.MaxInt64, math.MaxInt64, true},
		{dtype.Int16, []int64{math.MaxInt64}, 0, 0, false},
	} {
		if n, b, ok := c.t.Bytes(c.shape); n != c.n || b != c.b || ok != c.ok {
			t.Errorf("%v %v: %d, %d, %v", c.t, c.shape, n, b, ok)
		}
	}
}
