// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
	headers, err := stream.Check(fail, headers)
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
			if i > 0 {
				b = append(b, ',')
			}
			var errKey, errText error
			b, errKey = jsontext.AppendQuote(b, key)
			b, errText = jsontext.AppendQuote(append(b, ':'), metadata[key])
			if errKey != nil || errText != nil {
				return nil, fail(0, file.ErrFormat, "metadata, ", stream.Quote(key), ": not UTF-8")
			}
		}
		b = append(b, '}')
	}
	at := int64(0)
	for _, h := range headers {
		if len(b) > lengthSize+1 {
			b = append(b, ',')
		}
		typ := nameOf(h.Type)
		var err error
		b, err = jsontext.AppendQuote(b, h.Name)
		switch {
		case typ == "":
			return nil, fail(0, file.ErrType, stream.Quote(h.Name), ": ", h.Type.String())
		case h.Name == metadataKey || err != nil:
			return nil, fail(0, file.ErrFormat, stream.Quote(h.Name), " can be no name")
		}
		shape := strings.ReplaceAll(fmt.Sprint(h.Shape), " ", ",")
		b = fmt.Appendf(b, `:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, typ, shape, at, at+h.Size)
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
