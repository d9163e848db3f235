// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// zipReader reads an archive of arrays, a .npz file, in the order of its directory.
type zipReader struct {
	in   *stream.Input
	left []*member
	data io.Reader // of the member that Next returned; nil where it failed
	open io.Closer
	err  error // of Next
}

// member is an array of an archive.
type member struct {
	*zip.File
	place // with the place of its bytes in the file, compressed or not
	name  string
	start int64 // of its own header in the file
}

// NewZipReader reads and checks an archive's directory: names that occur twice are [file.ErrDuplicate], and members that
// lie one over the other or beyond the end, have another name where their bytes begin, are encrypted, or compressed by
// anything but deflate [file.ErrFormat]. Names are no paths here: nothing is written, and ".." is a name like others.
//
// Arrays come in C order and little-endian. One in Fortran order is held in memory from its first Read on, to be
// transposed; one of more than 256 MiB is [file.ErrTooLarge]. For all others the memory does not depend on the archive's
// claims or the arrays' sizes.
//
// A member's checksum is compared before the last bytes of its data are handed out; a member that is not read to its
// end is not compared. A member that is no array, or of a type that numbers do not have, is an error of Next, beside a
// header that has only its name, and the next call goes on with the member after it.
func NewZipReader(r io.ReaderAt, size int64) (file.Reader, error) {
	if r == nil || size < 0 {
		return nil, fault.Fail("npy: NewZipReader", fault.ErrInvalid, "no input")
	}
	z := &zipReader{in: &stream.Input{R: r, Size: size}}
	directory, err := zip.NewReader(z.in, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, z.noDirectory(err)
	}
	seen := map[string]bool{}
	for _, f := range directory.File {
		if strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 {
			continue // a folder
		}
		m, err := z.member(f)
		if err != nil {
			return nil, err
		}
		if seen[m.name] {
			return nil, m.fail(0, file.ErrDuplicate)
		}
		seen[m.name] = true
		z.left = append(z.left, m)
	}
	if err := disjoint(z.left); err != nil {
		return nil, err
	}
	return z, nil
}

// noDirectory tells an archive that was cut off from something else.
func (z *zipReader) noDirectory(err error) error {
	last, start := z.in.At, make([]byte, min(z.in.Size, 4))
	n, _ := z.in.ReadAt(start, 0)
	switch {
	case z.in.Err != nil:
		return failArchive(0, z.in.Err)
	case string(start[:n]) == "PK\x03\x04"[:n] && errors.Is(err, zip.ErrFormat):
		return failArchive(z.in.Size, file.ErrTruncated, "no directory at its end")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failArchive(last, file.ErrFormat, "its directory ends early, or counts more members than it has")
	}
	return failArchive(0, file.ErrFormat, err.Error())
}

// mapped makes our errors of those of the archive's packages, and leaves those of the input what they are.
func (z *zipReader) mapped(p place, err error) error {
	switch {
	case z.in.Err != nil:
		return p.fail(0, z.in.Err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return p.fail(0, file.ErrTruncated)
	}
	return p.fail(0, file.ErrFormat, err.Error())
}

// member reads and checks what is before the bytes of a member. A reader that takes names from the directory and one that
// takes them from there would take the same bytes for different arrays, and names have no checksum.
func (z *zipReader) member(f *zip.File) (*member, error) {
	const (
		changed = 1<<0 | 1<<5 | 1<<6 | 1<<13 // flags of bytes that are encrypted or a patch
		fixed   = 30                         // bytes before the name; the last four are its length and that of more fields
	)
	m := &member{File: f, name: strings.TrimSuffix(f.Name, ".npy")}
	m.place = place{member: stream.Quote(m.name), packed: f.Method != zip.Store}
	offset, err := f.DataOffset()
	m.base = min(offset, z.in.Size)
	if err != nil {
		return nil, z.mapped(m.place, err)
	}
	m.start = z.in.At // DataOffset read the member's header
	switch {
	case f.Flags&changed != 0:
		return nil, m.fail(0, file.ErrFormat, "encrypted, or a patch")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, m.fail(0, file.ErrFormat, "compression method ", int(f.Method))
	case offset > z.in.Size || f.CompressedSize64 > uint64(z.in.Size-offset):
		return nil, m.fail(0, file.ErrTruncated, "beyond the end")
	case f.UncompressedSize64 > math.MaxInt64, f.Method == zip.Store && f.UncompressedSize64 != f.CompressedSize64:
		return nil, m.fail(0, file.ErrFormat, "impossible size")
	}
	head := make([]byte, fixed+len(f.Name))
	if n, err := z.in.ReadAt(head, m.start); n < len(head) {
		return nil, z.mapped(m.place, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	if int(binary.LittleEndian.Uint16(head[26:])) != len(f.Name) || string(head[fixed:]) != f.Name {
		return nil, place{member: m.place.member, base: m.start}.fail(fixed, file.ErrFormat, "its own header has another name")
	}
	return m, nil
}

// disjoint refuses members that share bytes, with which a small archive can claim to hold any amount.
func disjoint(members []*member) error {
	end := int64(0)
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(a.start, b.start) }) {
		if m.start < end {
			return m.fail(0, file.ErrFormat, "it overlaps another member")
		}
		end = m.base + int64(m.CompressedSize64)
	}
	return nil
}

// Next goes to the next array.
func (z *zipReader) Next() (file.Header, error) {
	if z.open != nil {
		_ = z.open.Close() // it was only read
	}
	z.data, z.open = nil, nil
	if len(z.left) == 0 {
		z.err = io.EOF
		return file.Header{}, io.EOF
	}
	m := z.left[0]
	z.left = z.left[1:]
	h, err := z.enter(m)
	if z.err = err; err != nil {
		return file.Header{Name: m.name}, err
	}
	return h, nil
}

func (z *zipReader) enter(m *member) (h file.Header, err error) {
	rc, err := m.Open()
	if err != nil {
		return h, z.mapped(m.place, err)
	}
	z.open = rc
	size := int64(m.UncompressedSize64)
	r, err := newReader(z.unpacked(m, rc), size, m.place)
	if err != nil {
		return h, err
	}
	start, end := r.src.Pos, r.src.Pos+r.left
	fortran := r.header.Fortran && r.left > 0
	switch {
	case end < size:
		return h, m.fail(end, file.ErrFormat, size-end, " bytes after the array")
	case fortran && r.left > maxTransposed:
		return h, m.fail(0, file.ErrTooLarge, r.left, " bytes in Fortran order")
	case r.left > 0:
		r.src.Last = r.src.End // which is also when the checksum is compared
	case r.src.End() != nil:
		return h, r.src.Err
	}
	h = file.Header{Name: m.name, Type: r.header.Type, Shape: slices.Clone(r.header.Shape), Offset: -1, Size: r.left}
	z.data = r
	if fortran {
		z.data = transposed(r)
	} else if m.Method == zip.Store && !r.header.BigEndian {
		h.Offset = m.base + start
	}
	return h, nil
}

// Read reads the data of the array that Next returned.
func (z *zipReader) Read(p []byte) (int, error) {
	switch {
	case z.data != nil:
		return z.data.Read(p)
	case z.err != nil:
		return 0, z.err
	}
	return 0, io.EOF
}

// unpacked reads a member and makes our errors of those of the archive's packages, which take a checksum of 0 for none.
func (z *zipReader) unpacked(m *member, r io.Reader) io.Reader {
	sum := crc32.NewIEEE()
	return stream.ReaderFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if m.CRC32 == 0 {
			_, _ = sum.Write(p[:n]) // a hash takes everything
		}
		if err == io.EOF && sum.Sum32() != 0 { //nolint:errorlint // a wrapped EOF is no end
			err = zip.ErrChecksum
		}
		if err != nil && err != io.EOF { //nolint:errorlint // as above
			err = z.mapped(m.place, err)
		}
		return n, err
	})
}

// maxTransposed is how many bytes the elements of an array in Fortran order may take.
const maxTransposed = 256 << 20

// transposed reads an array in Fortran order as one in C order. It holds all elements, in memory that grows as they arrive.
func transposed(r *Reader) io.Reader {
	size := int64(r.header.Type.Size())
	strides, stride := []int64{}, size
	for _, d := range r.header.Shape {
		strides = append(strides, stride)
		stride *= d
	}
	return stream.Blocks(func() ([]byte, error) {
		data, err := stream.Grow(nil, int(r.left), func(b []byte) error {
			_, err := io.ReadFull(r, b)
			return err
		})
		return gather(make([]byte, 0, len(data)), data, r.header.Shape, strides, size), err
	})
}

// gather appends the elements in data, row by row. Distances along the dimensions are in bytes.
func gather(out, data []byte, shape, strides []int64, size int64) []byte {
	switch {
	case len(data) == 0:
	case len(shape) == 0:
		return append(out, data[:size]...)
	default:
		for i := range shape[0] {
			out = gather(out, data[i*strides[0]:], shape[1:], strides[1:], size)
		}
	}
	return out
}
