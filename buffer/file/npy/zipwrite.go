// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"archive/zip"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ file.Writer = (*ZipWriter)(nil)

// ZipWriter writes an archive of arrays, a .npz file.
type ZipWriter struct {
	out        *stream.Counter
	zip        *zip.Writer
	deflate    bool
	arrays     []array // those to come
	member     io.Writer
	left       int64 // bytes of the member
	total      int64 // bytes of all arrays that are missing
	descriptor int64 // bytes that the archive's writer puts before the next member
	err        error // of out, for good
	closed     bool
}

type array struct {
	name string
	Header
	size int64
}

// NewZipWriter begins an archive of the arrays that the headers tell of, as NumPy's savez writes it: in C order,
// little-endian, and not compressed unless [Deflate] says so. Where it is not, elements start at a multiple of 64 bytes of
// the file. Equal input gives equal bytes.
//
// Name, Type and Shape of the headers count, Offset and Size do not. uint1 is written as bool. A type that NumPy does not
// have is [file.ErrType], a name that occurs twice [file.ErrDuplicate], and a name that would lead out of a folder when
// somebody unpacks the archive [file.ErrFormat].
func NewZipWriter(w io.Writer, headers []file.Header, opts ...Option) (*ZipWriter, error) {
	c, err := configure(forZipWriter, opts)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, c.invalid("no output")
	}
	sizes, total, err := stream.Check("npz", headers)
	if err != nil {
		return nil, err
	}
	z := &ZipWriter{out: &stream.Counter{W: w}, deflate: c.deflate, total: total}
	for i, h := range headers {
		p := place{archive: true, member: h.Name, packed: true}
		if _, ok := descrOf(h.Type, false); !ok {
			return nil, p.fail(0, file.ErrType, h.Type.String())
		}
		switch {
		case strings.Contains(h.Name, "\x00") || leadsOut(h.Name):
			return nil, p.fail(0, file.ErrFormat, "a name that is no path within a folder")
		case len(h.Name) > math.MaxUint16-len(".npy"):
			return nil, p.fail(0, file.ErrTooLarge, "a name of more than 65531 bytes")
		}
		z.arrays = append(z.arrays, array{h.Name, Header{Type: h.Type, Shape: slices.Clone(h.Shape)}, sizes[i]})
	}
	z.zip = zip.NewWriter(z.out)
	return z, nil
}

// leadsOut tells whether a name, taken as a path, may leave the folder that an archive is unpacked into.
func leadsOut(name string) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`) || slices.Contains(parts, "..")
}

// Write writes the data of the arrays one after the other. More than there are is [file.ErrFormat], and none of it is
// written.
func (z *ZipWriter) Write(p []byte) (int, error) {
	switch {
	case z.err != nil:
		return 0, z.err
	case z.zip == nil || z.closed:
		return 0, fault.Fail("npy: ZipWriter.Write", fault.ErrClosed)
	case int64(len(p)) > z.total:
		return 0, z.fail(file.ErrFormat, "more data than the headers tell of")
	}
	done := 0
	for done < len(p) {
		if z.left == 0 {
			if err := z.start(); err != nil {
				return done, err
			}
			continue
		}
		part := p[done:min(int64(len(p)), int64(done)+z.left)]
		n, err := z.member.Write(part)
		done += n
		z.left -= int64(n)
		z.total -= int64(n)
		if err != nil {
			z.err = z.fail(err, "")
			return done, z.err
		}
	}
	return done, nil
}

// start begins the next member.
func (z *ZipWriter) start() error {
	a := z.arrays[0]
	// The date is the first that the archive's format has.
	h := &zip.FileHeader{Name: a.name + ".npy", Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	text := a.text()
	if err := z.zip.Flush(); err != nil {
		z.err = z.fail(err, "")
		return z.err
	}
	if z.deflate {
		h.Method = zip.Deflate
	} else {
		h.Extra = z.padding(len(h.Name))
		z.descriptor = 16
		if a.size+int64(len(text)) >= math.MaxUint32 {
			z.descriptor = 24
		}
	}
	member, err := z.zip.CreateHeader(h)
	if err == nil {
		_, err = member.Write(text)
	}
	if err != nil {
		z.err = z.fail(err, "")
		return z.err
	}
	z.arrays, z.member, z.left = z.arrays[1:], member, a.size
	return nil
}

// padding returns an extra field that makes a member's bytes start at a multiple of align. Between what is written and
// there come the last member's descriptor, 30 bytes, the name, and 9 bytes for the date. The field is that of Android's
// zipalign: its code, its length, the alignment, zeros.
func (z *ZipWriter) padding(name int) []byte {
	start := z.out.N + z.descriptor + 30 + int64(name) + 9
	const least = 6
	n := least + int(align-(start+least)%align)%align
	field := make([]byte, n)
	copy(field, []byte{0x35, 0xd9, byte(n - 4), 0, align, 0})
	return field
}

// Close ends the archive. While data are missing it is [file.ErrTruncated], and writing may go on. A second Close does
// nothing.
func (z *ZipWriter) Close() error {
	switch {
	case z.err != nil:
		return z.err
	case z.zip == nil || z.closed:
		return nil
	case z.total > 0:
		return z.fail(file.ErrTruncated, "data are missing")
	}
	for len(z.arrays) > 0 { // those without elements
		if err := z.start(); err != nil {
			return err
		}
	}
	if err := z.zip.Close(); err != nil {
		z.err = z.fail(err, "")
		return z.err
	}
	z.closed = true
	return nil
}

func (z *ZipWriter) fail(err error, detail string) error {
	return &file.Error{Format: "npz", Offset: z.out.N, Detail: detail, Err: err}
}
