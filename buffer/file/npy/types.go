// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// kinds are NumPy's letters for kinds of numbers, and the sizes in bytes that they have here.
var kinds = []struct {
	letter byte
	code   uint8
	sizes  string // one byte each
}{
	{'b', dtype.Bool8.Code, "\x01"},
	{'i', dtype.Int, "\x01\x02\x04\x08"},
	{'u', dtype.UInt, "\x01\x02\x04\x08"},
	{'f', dtype.Float, "\x02\x04\x08"},
	{'c', dtype.Complex64.Code, "\x08\x10"},
}

// letters are NumPy's types of one letter, and what it writes for them. Those that depend on the machine are missing.
var letters = map[string]string{
	"?": "b1", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "q": "i8", "Q": "u8",
	"e": "f2", "f": "f4", "d": "f8", "F": "c8", "D": "c16",
}

// typeNamed returns the type that has the name in NumPy, for example float32.
func typeNamed(s string) (dtype.Type, bool) {
	t, ok := dtype.Parse(s)
	if _, has := descrOf(t); !has || t == dtype.Bool1 {
		return dtype.Type{}, false
	}
	return t, ok
}

// typeOf returns the type that NumPy writes as, for example, f4 and also knows as f.
func typeOf(s string) (dtype.Type, bool) {
	if meant, ok := letters[s]; ok {
		s = meant
	}
	if s == "" {
		return dtype.Type{}, false
	}
	size, err := strconv.ParseUint(s[1:], 10, 8)
	for _, k := range kinds {
		if k.letter == s[0] && err == nil && strings.IndexByte(k.sizes, byte(size)) >= 0 {
			return dtype.Type{Code: k.code, Bits: uint8(8 * size), Lanes: 1}, true
		}
	}
	return dtype.Type{}, false
}

// descrOf is the inverse, with the sign of little-endian bytes in front. TVM's bool of one bit, a byte in memory, is
// NumPy's bool.
func descrOf(t dtype.Type) (string, bool) {
	if t == dtype.Bool1 {
		t = dtype.Bool8
	}
	order := "<"
	if t.Size() == 1 {
		order = "|"
	}
	for _, k := range kinds {
		if k.code == t.Code && t.Lanes == 1 && t.Bits%8 == 0 && strings.IndexByte(k.sizes, t.Bits/8) >= 0 {
			return order + string(k.letter) + strconv.Itoa(t.Size()), true
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
