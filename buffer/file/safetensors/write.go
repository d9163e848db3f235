// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

var _ file.Writer = (*Writer)(nil)

// Writer writes a file of tensors.
type Writer struct{ out stream.Sink }

// NewWriter writes the header of a file of these tensors, in this order, for which [Sort] has a proposal. Equal input
// gives equal bytes. Nothing is written when the arguments are wrong.
//
// Name, Type and Shape of the headers count, Offset and Size do not. uint1 is written as BOOL. A type that the format does
// not have is [file.ErrType], a name that occurs twice [file.ErrDuplicate], and a name or a text that is not UTF-8, or the
// name "__metadata__", [file.ErrFormat].
func NewWriter(w io.Writer, headers []file.Header, opts ...Option) (*Writer, error) {
	c, err := configure(forWriter, opts)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, c.invalid("no output")
	}
	sizes, total, err := stream.Check("safetensors", headers)
	if err != nil {
		return nil, err
	}
	text, err := headerText(headers, sizes, c.metadata)
	if err != nil {
		return nil, err
	}
	s := &Writer{stream.Sink{Counter: stream.Counter{W: w}, Left: total, Fail: fail}}
	if _, err := s.out.Write(text); err != nil {
		return nil, fail(s.out.N, err, "")
	}
	return s, nil
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
		return nil, fail(0, file.ErrTooLarge, "a header of "+strconv.Itoa(n)+" bytes")
	}
	for i := range lengthSize {
		b[i] = byte(n >> (8 * i))
	}
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

// Write writes the data of the tensors one after the other. More than there are is [file.ErrFormat], and none of it is
// written.
func (s *Writer) Write(p []byte) (int, error) {
	return s.out.WriteData("safetensors: Writer.Write", p)
}

// Close ends the file. While data are missing it is [file.ErrTruncated], and writing may go on. A second Close does
// nothing.
func (s *Writer) Close() error { return s.out.Close() }
