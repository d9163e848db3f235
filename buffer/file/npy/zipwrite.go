// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"archive/zip"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// zipWriter makes the members of an archive.
type zipWriter struct {
	out        stream.Writer
	zip        *zip.Writer
	method     uint16
	descriptor int64 // bytes that the archive's writer puts before the next member
}

// NewZipWriter begins an archive of the arrays that the headers tell of, a .npz file, as NumPy's savez writes it: in C
// order and little-endian. With [zip.Store] as the method the arrays are not compressed, and elements start at a multiple
// of 64 bytes of the file; with [zip.Deflate] it is the file of savez_compressed. Another method is [fault.ErrInvalid].
// Equal input gives equal bytes.
//
// Name, Type and Shape of the headers count, Offset and Size do not. uint1 is written as bool. A type that NumPy does not
// have is [file.ErrType], a name that occurs twice [file.ErrDuplicate], and a name that would lead out of a folder when
// somebody unpacks the archive [file.ErrFormat].
func NewZipWriter(w io.Writer, headers []file.Header, method uint16) (file.Writer, error) {
	if w == nil || method != zip.Store && method != zip.Deflate {
		return nil, fault.Fail("npy: NewZipWriter", fault.ErrInvalid, "no output, or neither stored nor deflated")
	}
	headers, err := stream.Check(failArchive, headers)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		p := place{member: stream.Quote(h.Name), packed: true}
		_, known := descrOf(h.Type)
		switch {
		case !known:
			return nil, p.fail(0, file.ErrType, h.Type.String())
		case strings.Contains(h.Name, "\x00") || leadsOut(h.Name):
			return nil, p.fail(0, file.ErrFormat, "a name that is no path within a folder")
		case len(h.Name) > math.MaxUint16-len(".npy"):
			return nil, p.fail(0, file.ErrTooLarge, "a name of more than 65531 bytes")
		}
	}
	z := &zipWriter{method: method}
	z.out = stream.Writer{Out: stream.Counter{W: w}, Headers: headers, Start: z.start, Fail: failArchive}
	z.zip = zip.NewWriter(&z.out.Out)
	z.out.End = z.zip.Close
	return z.out.Begin(nil)
}

// leadsOut tells whether a name, taken as a path, may leave the folder that an archive is unpacked into.
func leadsOut(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	return path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..")
}

// start begins the member of an array.
func (z *zipWriter) start(i int) (io.Writer, error) {
	array := z.out.Headers[i]
	text, _ := Header{Type: array.Type, Shape: array.Shape}.text()
	// The date is the first that the archive's format has.
	h := &zip.FileHeader{Name: array.Name + ".npy", Method: z.method, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := z.zip.Flush(); err != nil {
		return nil, err
	}
	if z.method == zip.Store {
		h.Extra = z.padding(len(h.Name))
		z.descriptor = 16
		if array.Size+int64(len(text)) >= math.MaxUint32 {
			z.descriptor = 24
		}
	}
	member, err := z.zip.CreateHeader(h)
	if err == nil {
		_, err = member.Write(text)
	}
	return member, err
}

// padding returns an extra field that makes a member's bytes start at a multiple of align. Between what is written and
// there come the last member's descriptor, 30 bytes, the name, and 9 bytes for the date. The field is that of Android's
// zipalign: its code, its length, the alignment, zeros.
func (z *zipWriter) padding(name int) []byte {
	start := z.out.Out.N + z.descriptor + 30 + int64(name) + 9
	const least = 6
	n := least + int(align-(start+least)%align)%align
	field := make([]byte, n)
	copy(field, []byte{0x35, 0xd9, byte(n - 4), 0, align, 0})
	return field
}
