// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
)

// types are the format's types in the order of the reference implementation, which sorts tensors by it so that each is
// aligned to its type. Missing are those that pack elements of less than a byte: F4, F6_E2M3 and F6_E3M2.
var types = []struct {
	name string
	typ  dtype.Type
}{
	{"BOOL", dtype.Bool8},
	{"U8", dtype.Uint8},
	{"I8", dtype.Int8},
	{"F8_E5M2", dtype.Type{Code: dtype.Float8E5M2, Bits: 8, Lanes: 1}},
	{"F8_E4M3", dtype.Type{Code: dtype.Float8E4M3FN, Bits: 8, Lanes: 1}},
	{"F8_E8M0", dtype.Type{Code: dtype.Float8E8M0FNU, Bits: 8, Lanes: 1}},
	{"F8_E4M3FNUZ", dtype.Type{Code: dtype.Float8E4M3FNUZ, Bits: 8, Lanes: 1}},
	{"F8_E5M2FNUZ", dtype.Type{Code: dtype.Float8E5M2FNUZ, Bits: 8, Lanes: 1}},
	{"I16", dtype.Int16},
	{"U16", dtype.Uint16},
	{"F16", dtype.Float16},
	{"BF16", dtype.BFloat16},
	{"I32", dtype.Int32},
	{"U32", dtype.Uint32},
	{"F32", dtype.Float32},
	{"C64", dtype.Complex64},
	{"F64", dtype.Float64},
	{"I64", dtype.Int64},
	{"U64", dtype.Uint64},
}

func typeOf(name string) (dtype.Type, bool) {
	for _, t := range types {
		if t.name == name {
			return t.typ, true
		}
	}
	return dtype.Type{}, false
}

// rank returns a type's place in types, or -1. TVM's bool of one bit, a byte in memory, is the format's BOOL.
func rank(t dtype.Type) int {
	if t == dtype.Bool1 {
		t = dtype.Bool8
	}
	for i := range types {
		if types[i].typ == t {
			return i
		}
	}
	return -1
}

// Sort puts tensors into the order in which the reference implementation writes them: the largest types first, then by
// name. Then all data are aligned to their elements, which other readers may want.
func Sort(headers []file.Header) {
	slices.SortStableFunc(headers, func(a, b file.Header) int {
		return cmp.Or(cmp.Compare(rank(b.Type), rank(a.Type)), strings.Compare(a.Name, b.Name))
	})
}
