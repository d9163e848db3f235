// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// types are the format's types with their names, in the order of the reference implementation, which sorts tensors by it so
// that each is aligned. Missing are those that pack elements of less than a byte: F4, F6_E2M3 and F6_E3M2.
var types = []struct{ name, typ string }{
	{"BOOL", "bool"},
	{"U8", "uint8"},
	{"I8", "int8"},
	{"F8_E5M2", "float8_e5m2"},
	{"F8_E4M3", "float8_e4m3fn"},
	{"F8_E8M0", "float8_e8m0fnu"},
	{"F8_E4M3FNUZ", "float8_e4m3fnuz"},
	{"F8_E5M2FNUZ", "float8_e5m2fnuz"},
	{"I16", "int16"},
	{"U16", "uint16"},
	{"F16", "float16"},
	{"BF16", "bfloat16"},
	{"I32", "int32"},
	{"U32", "uint32"},
	{"F32", "float32"},
	{"C64", "complex64"},
	{"F64", "float64"},
	{"I64", "int64"},
	{"U64", "uint64"},
}

// typeOf returns the type that has the name in the format.
func typeOf(name string) (dtype.Type, bool) {
	for _, t := range types {
		if t.name == name {
			return dtype.Parse(t.typ)
		}
	}
	return dtype.Type{}, false
}

// rank returns the place of a type in types, or -1. TVM's bool of one bit, a byte in memory, is the format's BOOL.
func rank(t dtype.Type) int {
	if t == dtype.Bool1 {
		t = dtype.Bool8
	}
	name := t.String()
	return slices.IndexFunc(types, func(x struct{ name, typ string }) bool { return x.typ == name })
}
