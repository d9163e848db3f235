// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// entry is a key of the one Python literal that a header is, a dictionary, with its value: a text without escapes, a truth,
// a tuple of numbers, which Python 2 wrote with an L, or the list that a type of several fields is. Then comes a comma, or
// the end.
var entry = regexp.MustCompile(`^\s*(?:'(\w+)'|"(\w+)")\s*:\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(True|False)|\(([\dL,\s]*)\)|(\[.*\]))\s*(,\s*\}|,|\})`)

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
		return stop(file.ErrFormat, "impossible shape ", shapeText(h.Shape))
	}
	return h, nil
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
		if err != nil || len(digits) > 1 && digits[0] == '0' {
			return nil, false
		}
		shape = append(shape, n)
	}
	return shape, true
}
