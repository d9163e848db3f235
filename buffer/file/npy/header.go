// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Header says what an array holds and how.
type Header struct {
	Type      dtype.Type
	BigEndian bool // how the file holds it; what is read is converted
	Fortran   bool // the first index varies fastest: column by column
	Shape     []int64
}

// Len returns how many elements there are, or 0 where the shape is impossible.
func (h Header) Len() int64 {
	n, _, _ := h.Type.Bytes(h.Shape)
	return n
}

const (
	magic = "\x93NUMPY"
	// maxHeader is far beyond any header of an array of numbers. NumPy itself refuses more than 10,000 bytes.
	maxHeader = 64 << 10
	// align is the multiple of bytes at which NumPy starts the elements.
	align = 64
)

// place is where an array is, for errors.
type place struct {
	member string // of an archive, quoted; "" outside of one
	base   int64  // of the array's first byte
	packed bool   // so that no byte of the file belongs to a byte of the array
}

// failArchive makes the errors that are about no member, or about all.
var failArchive = stream.Errors("npz")

func (p place) fail(at int64, err error, detail ...any) error {
	if p.packed {
		at = 0
	}
	text := fault.Text(detail...)
	if p.member == "" {
		return stream.Errors("npy")(p.base+at, err, text)
	}
	if text != "" {
		text = ": " + text
	}
	return failArchive(p.base+at, err, p.member, text)
}

// readHeader reads what is before the elements.
func readHeader(src *stream.Source, p place) (Header, error) {
	var pre [12]byte
	err := src.Full(pre[:8])
	if n := min(int(src.Pos), len(magic)); string(pre[:n]) != magic[:n] {
		return Header{}, p.fail(0, file.ErrFormat, `it does not start with \x93NUMPY`)
	}
	if err != nil {
		return Header{}, err
	}
	if pre[6] < 1 || pre[6] > 3 || pre[7] != 0 {
		return Header{}, p.fail(6, file.ErrFormat, "unknown version ", int(pre[6]), ".", int(pre[7]))
	}
	at := 12
	if pre[6] == 1 {
		at = 10
	}
	if err := src.Full(pre[8:at]); err != nil {
		return Header{}, err
	}
	length := int64(binary.LittleEndian.Uint32(pre[8:]))
	if length > maxHeader {
		return Header{}, p.fail(8, file.ErrTooLarge, "header of ", length, " bytes")
	}
	text, err := src.Bytes(nil, length)
	if err != nil {
		return Header{}, err
	}
	return parseHeader(text, func(i int64, err error, detail ...any) error { return p.fail(int64(at)+i, err, detail...) })
}

// text returns the bytes of a file before the elements, or false for a type that NumPy does not have.
func (h Header) text() ([]byte, bool) {
	descr, ok := descrOf(h.Type)
	fortran := "False"
	if h.Fortran {
		fortran = "True"
	}
	s := "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shapeText(h.Shape) + ", }"
	const prefix = len(magic) + 4
	n := (prefix+len(s)+1+align-1)/align*align - prefix
	out := append([]byte(magic), 1, 0, byte(n), byte(n>>8))
	return fmt.Appendf(out, "%-*s\n", n-1, s), ok
}

// shapeText writes a shape as Python does.
func shapeText(shape []int64) string {
	s := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	if len(shape) == 1 {
		s += ","
	}
	return "(" + s + ")"
}

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

// descrOf is the inverse for little-endian bytes.
func descrOf(t dtype.Type) (string, bool) {
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

// entry is a key of the one Python literal that a header is, a dictionary, with its value: a text without escapes, a truth,
// a tuple of numbers, which Python 2 wrote with an L, or the list that a type of several fields is. Then comes a comma, or
// the end.
var entry = regexp.MustCompile(`^\s*(?:'(\w+)'|"(\w+)")\s*:\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(True|False)|\(([-\dL,\s]*)\)|(\[.*\]))\s*(,\s*\}|,|\})`)

// parseHeader reads the text of a header. Offsets of errors are those of the text.
func parseHeader(text []byte, fail stream.Fail) (h Header, err error) {
	rest, _ := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n\f"), []byte("{"))
	stop := func(err error, detail ...any) (Header, error) {
		return Header{}, fail(int64(len(text)-len(rest)), err, detail...)
	}
	seen := map[string]bool{}
	for end := false; !end; {
		m := entry.FindSubmatch(rest)
		if m == nil {
			return stop(file.ErrFormat, "expected a key and its value before ", stream.Quote(string(rest)))
		}
		key, value := string(m[1])+string(m[2]), string(m[3])+string(m[4])
		isText := m[3] != nil || m[4] != nil
		switch {
		case seen[key]:
			return stop(file.ErrDuplicate, stream.Quote(key))
		case key == "descr" && m[7] != nil:
			return stop(file.ErrType, "a structure of several fields: ", stream.Quote(string(m[7])))
		case key == "descr" && isText:
			var ok bool
			if h.Type, h.BigEndian, ok = typeOf(value); !ok {
				return stop(file.ErrType, stream.Quote(value), "; read are bool, int8 to int64, uint8 to uint64, float16 to float64, "+
					"complex64 and 128, and not bfloat16, which NumPy writes as V2")
			}
		case key == "fortran_order" && m[5] != nil:
			h.Fortran = string(m[5]) == "True"
		case key == "shape" && m[6] != nil:
			var ok bool
			if h.Shape, ok = tuple(string(m[6])); !ok {
				return stop(file.ErrFormat, "impossible shape ", stream.Quote(string(m[6])))
			}
			if len(h.Shape) > stream.MaxDims {
				return stop(file.ErrTooLarge, len(h.Shape), " dimensions")
			}
		default:
			return stop(file.ErrFormat, "unknown key or value ", stream.Quote(string(m[0])))
		}
		seen[key] = true
		rest, end = rest[len(m[0]):], m[8][len(m[8])-1] == '}'
	}
	if len(seen) != 3 || len(bytes.TrimSpace(rest)) > 0 {
		return stop(file.ErrFormat, "a header has the keys descr, fortran_order and shape and nothing after them")
	}
	if _, _, ok := h.Type.Bytes(h.Shape); !ok {
		return stop(file.ErrFormat, impossible(h.Shape), shapeText(h.Shape))
	}
	return h, nil
}

// impossible says what is wrong with a shape that no array has.
func impossible(shape []int64) string {
	if slices.ContainsFunc(shape, func(n int64) bool { return n < 0 }) {
		return "negative numbers in the shape "
	}
	return "impossible shape "
}

// tuple reads numbers that commas part. A single one has a comma behind it.
func tuple(s string) ([]int64, bool) {
	parts := strings.Split(s, ",")
	last := len(parts) - 1
	switch {
	case strings.TrimSpace(parts[last]) == "":
		parts = parts[:last]
	case last == 0:
		return nil, false
	}
	shape := []int64{}
	for _, part := range parts {
		digits := strings.TrimSuffix(strings.TrimSpace(part), "L")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || len(digits) > 1 && digits[0] == '0' || strings.HasPrefix(digits, "-0") {
			return nil, false
		}
		shape = append(shape, n)
	}
	return shape, true
}
