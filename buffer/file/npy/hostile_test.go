// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

func TestDamaged(t *testing.T) {
	for _, data := range [][]byte{testdata(t, "version2.npy"), []byte(npyFile(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (2,)}", "0123456789abcdef"))} {
		for b := range filetest.Damaged(data) {
			for _, size := range []int{len(b), -1} {
				frugal(t, func() {
					r, err := npy.NewReader(bytes.NewReader(b), int64(size))
					typed(t, err, len(b))
					if err == nil {
						_, err = io.Copy(io.Discard, r)
						typed(t, err, len(b))
						if size >= 0 && err != nil {
							t.Fatalf("%v after the header was taken", err)
						}
					}
				})
			}
		}
	}
}

func TestDamagedArchives(t *testing.T) {
	some := []tensor{
		filetest.New("a", dtype.Float32, numbers(dtype.Float32, 0, 4), 2, 2),
		filetest.New("none", dtype.Bool8, nil, 0),
	}
	fortran := raw(t, zip.Deflate, "f.npy", npyFile(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", string(numbers(dtype.Float32, 0, 4))))
	for _, data := range [][]byte{writeZip(t, some, 100, zip.Store), writeZip(t, some, 100, zip.Deflate), fortran} {
		if err := drain(bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
		for b := range filetest.Damaged(data) {
			frugal(t, func() {
				err := drain(bytes.NewReader(b), int64(len(b)))
				typed(t, err, len(b))
				if err == nil && len(b) < len(data) {
					t.Fatalf("%d of %d bytes are a whole archive", len(b), len(data))
				}
			})
		}
	}
}

// A flip in the elements of a member with a checksum never goes unseen.
func TestChecksum(t *testing.T) {
	data := writeZip(t, []tensor{filetest.New("a", dtype.Uint8, make([]byte, 50), 50)}, 50, zip.Store)
	z := openZip(t, data)
	h, err := z.Next()
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.Size {
		b := bytes.Clone(data)
		b[h.Offset+i] = 1
		z := openZip(t, b)
		if _, err := z.Next(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, h.Size)
		if _, err := io.ReadFull(z, got); !errors.Is(err, file.ErrFormat) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

func TestHostileArchives(t *testing.T) {
	four := npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "1234")
	huge := npyFile(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1000000000, 1000000000)}", "1234")
	rows := npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (10000, 1000)}", "")
	end := len(raw(t, zip.Store))
	directory := func(b []byte, at int, v uint32) []byte { // at: from the start of the last directory entry
		i := bytes.LastIndex(b, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(b[i+at:], v)
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":             {nil, file.ErrTruncated},
		"no archive":        {[]byte(four), file.ErrFormat},
		"same name":         {raw(t, zip.Store, "a.npy", four, "a.npy", four), file.ErrDuplicate},
		"same after .npy":   {raw(t, zip.Store, "a.npy", four, "a", four), file.ErrDuplicate},
		"text":              {raw(t, zip.Store, "readme.txt", "This is no array."), file.ErrFormat},
		"empty member":      {raw(t, zip.Store, "a.npy", ""), file.ErrTruncated},
		"claims too much":   {raw(t, zip.Deflate, "a.npy", huge), file.ErrTruncated},
		"holds too much":    {raw(t, zip.Store, "a.npy", four+"5"), file.ErrFormat},
		"bomb by rows":      {raw(t, zip.Deflate, "a.npy", rows+strings.Repeat("\x00", 40_000_000)), nil},
		"lies about size":   {directory(raw(t, zip.Deflate, "a.npy", four), 24, uint32(len(four)+4)), file.ErrFormat},
		"lies more":         {directory(raw(t, zip.Deflate, "a.npy", huge), 24, 0xfffffff0), file.ErrTruncated},
		"is longer":         {directory(raw(t, zip.Deflate, "a.npy", four+"5"), 24, uint32(len(four))), file.ErrFormat},
		"overlap":           {directory(raw(t, zip.Store, "a.npy", four, "b.npy", four), 42, 0), file.ErrFormat},
		"beyond the end":    {directory(raw(t, zip.Store, "a.npy", four), 20, 1<<30), file.ErrTruncated},
		"encrypted":         {directory(raw(t, zip.Store, "a.npy", four), 8, 9), file.ErrFormat},
		"a patch":           {directory(raw(t, zip.Store, "a.npy", four), 8, 8|1<<5), file.ErrFormat},
		"encrypted more":    {directory(raw(t, zip.Store, "a.npy", four), 8, 8|1<<6), file.ErrFormat},
		"masked":            {directory(raw(t, zip.Store, "a.npy", four), 8, 8|1<<13), file.ErrFormat},
		"other method":      {directory(raw(t, zip.Store, "a.npy", four), 8, 8|14<<16), file.ErrFormat},
		"members of no end": {raw(t, zip.Store)[:end-1], file.ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			frugal(t, func() {
				err := drain(bytes.NewReader(c.data), int64(len(c.data)))
				typed(t, err, len(c.data))
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		})
	}
	for i, b := range [][]byte{ // a name that is shorter, longer and another one in the directory, and in the member itself
		directory(raw(t, zip.Store, "a.npy", four), 28, 4),
		directory(raw(t, zip.Store, "a.npy", four), 28, 7),
		directory(raw(t, zip.Store, "a.npy", four), 46, binary.LittleEndian.Uint32([]byte("b.np"))),
		bytes.Replace(raw(t, zip.Store, "a.npy", four), []byte("a.npy"), []byte("A.npy"), 1),
	} {
		err := drain(bytes.NewReader(b), int64(len(b)))
		if e, ok := errors.AsType[*file.Error](err); !ok || !errors.Is(e, file.ErrFormat) || e.Offset != 30 {
			t.Errorf("names that differ, %d: %v", i, err)
		}
	}
	paths := raw(t, zip.Store, "folder/", "", "../../etc/passwd.npy", four, "/root.npy", four, `C:\x.npy`, four, "plain", four)
	if err := drain(bytes.NewReader(paths), int64(len(paths))); err != nil {
		t.Errorf("names are only names: %v", err)
	}
}

// A count of members that is wrong is an error of the directory's, and said to be there.
func TestMemberCount(t *testing.T) {
	b := testdata(t, "stored.npz")
	b[len(b)-22+10]++
	_, err := npy.NewZipReader(bytes.NewReader(b), int64(len(b)))
	e, ok := errors.AsType[*file.Error](err)
	first, end := int64(bytes.Index(b, []byte("PK\x01\x02"))), int64(len(b)-22)
	if !ok || !errors.Is(e, file.ErrFormat) || e.Offset < first || e.Offset > end {
		t.Errorf("error %v, the directory is from %d to %d", err, first, end)
	}
}

// Two fields of archives of NumPy's, which has no descriptor after a member that says them again. NumPy refuses both files.
func TestDamagedDirectory(t *testing.T) {
	stored, deflated := testdata(t, "stored.npz"), testdata(t, "deflated.npz")
	last := bytes.LastIndex(stored, []byte("PK\x01\x02"))
	copy(stored[last+16:], "\x00\x00\x00\x00") // the checksum; Go's reader of archives compares none that is 0
	first := bytes.Index(deflated, []byte("PK\x01\x02"))
	deflated[first+20] += 3 // compressed bytes, so that three are also those of the next member's header
	for _, b := range [][]byte{stored, deflated} {
		if err := drain(bytes.NewReader(b), int64(len(b))); !errors.Is(err, file.ErrFormat) {
			t.Errorf("error %v", err)
		}
	}
}

// The limit for arrays in Fortran order is a limit of bytes, and one dimension has no order.
func TestMaxTransposed(t *testing.T) {
	b := raw(t, zip.Deflate, "a.npy", npyFile(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", string(numbers(dtype.Float32, 0, 4))),
		"b.npy", npyFile(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 1)}", string(numbers(dtype.Float32, 0, 4))))
	head := npyFile(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (8192, 8193)}", "")
	large := raw(t, zip.Deflate, "a.npy", head+strings.Repeat("0123456789", 10_000))
	size := large[bytes.LastIndex(large, []byte("PK\x01\x02"))+24:]
	binary.LittleEndian.PutUint32(size, uint32(len(head)+8192*8193*4))
	frugal(t, func() {
		if _, err := openZip(t, large).Next(); !errors.Is(err, file.ErrTooLarge) {
			t.Errorf("more than 256 MiB: %v", err)
		}
	})
	z := openZip(t, b)
	for _, want := range []string{string(numbers(dtype.Float32, 0, 1)) + string(numbers(dtype.Float32, 2, 3)) + string(numbers(dtype.Float32, 1, 2)) + string(numbers(dtype.Float32, 3, 4)), string(numbers(dtype.Float32, 0, 4))} {
		_, err := z.Next()
		got, e := io.ReadAll(z)
		if err != nil || e != nil || string(got) != want {
			t.Errorf("%v, %v, % x", err, e, got)
		}
	}
}

// An array in Fortran order of several of the pieces that it is held in.
func TestTransposeLarge(t *testing.T) {
	const rows, cols = 700, 601
	var columns, want []byte
	for c := range cols {
		for r := range rows {
			columns = binary.LittleEndian.AppendUint64(columns, uint64(r*cols+c))
		}
	}
	for i := range rows * cols {
		want = binary.LittleEndian.AppendUint64(want, uint64(i))
	}
	z := openZip(t, raw(t, zip.Store, "a.npy", npyFile(1, "{'descr': '<u8', 'fortran_order': True, 'shape': (700, 601)}", string(columns))))
	if _, err := z.Next(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
