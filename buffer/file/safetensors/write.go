// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// NewWriter writes the header of a file of these tensors, in this order. metadata, if it
// is not nil, is written into the header for whoever reads it: texts under names of their own. Equal input gives equal
// bytes. Nothing is written when the arguments are wrong.
//
// Name, Type and Shape of the headers count, Offset and Size do not. uint1 is written as BOOL. A type that the format does
// not have is [file.ErrType], a name that occurs twice [file.ErrDuplicate], and a name or a text that is not UTF-8, or the
// name "__metadata__", [file.ErrFormat].
func NewWriter(w io.Writer, headers []file.Header, metadata map[string]string) (file.Writer, error) {
	if w == nil {
		return nil, fault.Fail("safetensors: NewWriter", fault.ErrInvalid, "no output")
	}
	sizes, err := stream.Check("safetensors", headers)
	if err != nil {
		return nil, err
	}
	text, err := headerText(headers, sizes, metadata)
	if err != nil {
		return nil, err
	}
	return (&stream.Writer{Out: stream.Counter{W: w}, Sizes: sizes, Fail: fail}).Begin(text)
}

// headerText returns a file's bytes before the data, which end at a multiple of 8.
func headerText(headers []file.Header, sizes []int64, metadata map[string]string) ([]byte, error) {
	b := append(make([]byte, lengthSize), '{')
	if metadata != nil {
		b = append(b, `"`+metadataKey+`":{`...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, fail(0, file.ErrFormat, "metadata, "+stream.Quote(key)+": not UTF-8")
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(append(appendText(b, key), ':'), metadata[key])
		}
		b = append(b, '}')
	}
	at := int64(0)
	for i, h := range headers {
		t := rank(h.Type)
		switch {
		case t < 0:
			return nil, fail(0, file.ErrType, stream.Quote(h.Name)+": "+h.Type.String())
		case h.Name == metadataKey || !utf8.ValidString(h.Name):
			return nil, fail(0, file.ErrFormat, stream.Quote(h.Name)+" can be no name")
		}
		if len(b) > lengthSize+1 {
			b = append(b, ',')
		}
		b = append(appendText(b, h.Name), `:{"dtype":"`+types[t].name+`","shape":[`...)
		for k, d := range h.Shape {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, d, 10)
		}
		b = append(strconv.AppendInt(append(b, `],"data_offsets":[`...), at, 10), ',')
		at += sizes[i]
		b = append(strconv.AppendInt(b, at, 10), "]}"...)
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	n := len(b) - lengthSize
	if n > maxHeader {
		return nil, fail(0, file.ErrTooLarge, "a header of "+stream.Decimal(n)+" bytes")
	}
	binary.LittleEndian.PutUint64(b, uint64(n))
	return b, nil
}

// appendText appends a JSON string as the reference implementation writes it.
func appendText(b []byte, s string) []byte {
	const letters, meant, hex = `"\bfnrt`, "\"\\\b\f\n\r\t", "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch k := strings.IndexByte(meant, c); {
		case k >= 0:
			b = append(b, '\\', letters[k])
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
