// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// types are what NumPy writes for a type after the sign of the byte order, and the type's one letter, which it reads, too.
// Letters whose size depends on the machine are missing.
var types = []struct {
	descr, letter string
	dtype         dtype.Type
}{
	{"b1", "?", dtype.Bool8},
	{"i1", "b", dtype.Int8},
	{"i2", "h", dtype.Int16},
	{"i4", "i", dtype.Int32},
	{"i8", "q", dtype.Int64},
	{"u1", "B", dtype.Uint8},
	{"u2", "H", dtype.Uint16},
	{"u4", "I", dtype.Uint32},
	{"u8", "Q", dtype.Uint64},
	{"f2", "e", dtype.Float16},
	{"f4", "f", dtype.Float32},
	{"f8", "d", dtype.Float64},
	{"c8", "F", dtype.Complex64},
	{"c16", "D", dtype.Complex128},
}

// typeOf returns the type that NumPy's text stands for, such as <f4, >f or float32, and whether its bytes are big-endian.
func typeOf(s string) (t dtype.Type, big, ok bool) {
	name := s
	if s != "" && strings.IndexByte("<|=>", s[0]) >= 0 { // = and | were written on, and for, little-endian machines
		name, big = s[1:], s[0] == '>'
	}
	for _, known := range types {
		t := known.dtype
		if name == known.descr || name == known.letter || s == t.String() { // NumPy wants no byte order before a name
			return t, big && t.Size() > 1, true
		}
	}
	return dtype.Type{}, false, false
}

// descrOf is the inverse for little-endian bytes. TVM's bool of one bit, a byte in memory, is NumPy's bool.
func descrOf(t dtype.Type) (string, bool) {
	if t == dtype.Bool1 {
		t = dtype.Bool8
	}
	order := "<"
	if t.Size() == 1 {
		order = "|"
	}
	for _, known := range types {
		if known.dtype == t {
			return order + known.descr, true
		}
	}
	return "", false
}

// unit returns the size of what a byte order applies to: a complex number's parts are turned one by one.
func unit(t dtype.Type) int {
	if t.Code == dtype.Complex64.Code {
		return t.Size() / 2
	}
	return t.Size()
}
