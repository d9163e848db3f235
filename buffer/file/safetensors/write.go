// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// NewWriter writes the header of a file of these tensors, in this order. metadata, if it is not nil, is written into the
// header: texts under names of their own. Equal input gives equal bytes. Nothing is written when the arguments are wrong.
//
// Name, Type and Shape of the headers count, Offset and Size do not. uint1 is written as BOOL. A type that the format does
// not have is [file.ErrType], a name that occurs twice [file.ErrDuplicate], and a name or a text that is not UTF-8, or the
// name "__metadata__", [file.ErrFormat].
func NewWriter(w io.Writer, headers []file.Header, metadata map[string]string) (file.Writer, error) {
	if w == nil {
		return nil, fault.Fail("safetensors: NewWriter", fault.ErrInvalid, "no output")
	}
	headers, err := stream.Check("safetensors", headers)
	if err != nil {
		return nil, err
	}
	text, err := headerText(headers, metadata)
	if err != nil {
		return nil, err
	}
	return (&stream.Writer{Out: stream.Counter{W: w}, Headers: headers, Fail: fail}).Begin(text)
}

// headerText returns a file's bytes before the data, which end at a multiple of 8.
func headerText(headers []file.Header, metadata map[string]string) ([]byte, error) {
	b := append(make([]byte, lengthSize), '{')
	if metadata != nil {
		b = append(b, `"`+metadataKey+`":{`...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, fail(0, file.ErrFormat, "metadata, ", stream.Quote(key), ": not UTF-8")
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(append(appendText(b, key), ':'), metadata[key])
		}
		b = append(b, '}')
	}
	at := int64(0)
	for _, h := range headers {
		t := rank(h.Type)
		switch {
		case t < 0:
			return nil, fail(0, file.ErrType, stream.Quote(h.Name), ": ", h.Type.String())
		case h.Name == metadataKey || !utf8.ValidString(h.Name):
			return nil, fail(0, file.ErrFormat, stream.Quote(h.Name), " can be no name")
		}
		if len(b) > lengthSize+1 {
			b = append(b, ',')
		}
		shape := strings.ReplaceAll(fmt.Sprint(h.Shape), " ", ",")
		b = fmt.Appendf(appendText(b, h.Name), `:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, types[t].name, shape, at, at+h.Size)
		at += h.Size
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	n := len(b) - lengthSize
	if n > maxHeader {
		return nil, fail(0, file.ErrTooLarge, "a header of ", n, " bytes")
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
