// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/x448/float16"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

var update = flag.Bool("update", false, "write testdata/*.npz anew; then let testdata/make.py check them")

// types are NumPy's names for what the packages read and write.
var types = map[string]dtype.Type{
	"b1": dtype.Bool8, "i1": dtype.Int8, "i2": dtype.Int16, "i4": dtype.Int32, "i8": dtype.Int64,
	"u1": dtype.Uint8, "u2": dtype.Uint16, "u4": dtype.Uint32, "u8": dtype.Uint64,
	"f2": dtype.Float16, "f4": dtype.Float32, "f8": dtype.Float64, "c8": dtype.Complex64, "c16": dtype.Complex128,
}

// numbers are the elements that make.py has, from i to n.
func numbers(t dtype.Type, i, n int) []byte {
	var b []byte
	for ; i < n; i++ {
		switch t {
		case dtype.Bool8:
			b = append(b, byte(i%2))
		case dtype.Float16:
			b = binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(float32(i)).Bits())
		case dtype.Float32:
			b, _ = binary.Append(b, binary.LittleEndian, float32(i))
		case dtype.Float64:
			b, _ = binary.Append(b, binary.LittleEndian, float64(i))
		case dtype.Complex64:
			b, _ = binary.Append(b, binary.LittleEndian, complex(float32(i), float32(i+1)))
		case dtype.Complex128:
			b, _ = binary.Append(b, binary.LittleEndian, complex(float64(i), float64(i+1)))
		default:
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(i))[:t.Size()]...)
		}
	}
	return b
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openZip(t *testing.T, b []byte) file.Reader {
	t.Helper()
	z, err := npy.NewZipReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestNumPyArchives reads what NumPy wrote: every type in either order of bytes and elements.
func TestNumPyArchives(t *testing.T) {
	for _, name := range []string{"stored.npz", "deflated.npz"} {
		data := testdata(t, name)
		z := openZip(t, data)
		n := 0
		for h, err := z.Next(); !errors.Is(err, io.EOF); h, err = z.Next() {
			if err != nil {
				t.Fatal(err)
			}
			n++
			short, kind, _ := strings.Cut(h.Name, "/")
			typ := types[short]
			shape, want := []int64{2, 3, 4}, numbers(typ, 0, 24)
			switch kind {
			case "scalar":
				shape, want = []int64{}, numbers(typ, 1, 2)
			case "empty":
				shape, want = []int64{0, 3}, nil
			}
			got, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			if h.Type != typ || !slices.Equal(h.Shape, shape) || h.Size != int64(len(want)) || !bytes.Equal(got, want) {
				t.Errorf("%s: %+v, % x, want % x", name, h, got, want)
			}
			inPlace := name == "stored.npz" && kind != "fortran" && (kind != "big" || typ.Size() == 1)
			switch {
			case inPlace != (h.Offset >= 0):
				t.Errorf("%s: offset %d", name, h.Offset)
			case inPlace && !bytes.HasPrefix(data[h.Offset:], want):
				t.Errorf("%s, %s: its data are not at %d", name, h.Name, h.Offset)
			}
		}
		if n != 5*len(types) {
			t.Errorf("%s: %d arrays", name, n)
		}
	}
	h, v := read[float32](t, string(testdata(t, "version2.npy")))
	if !h.Fortran || !slices.Equal(h.Shape, []int64{2, 3}) || !slices.Equal(v, []float32{0, 3, 1, 4, 2, 5}) {
		t.Errorf("version 2: %+v %v", h, v)
	}
}

// One byte at a time.
func TestZipReaderPieces(t *testing.T) {
	z := openZip(t, testdata(t, "deflated.npz"))
	for h, err := z.Next(); !errors.Is(err, io.EOF); h, err = z.Next() {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, "/fortran") || strings.HasSuffix(h.Name, "/big") {
			got, err := io.ReadAll(iotest.OneByteReader(z))
			if typ := h.Type; err != nil || !bytes.Equal(got, numbers(typ, 0, 24)) {
				t.Errorf("%s: % x, %v", h.Name, got, err)
			}
		}
		if n, err := z.Read(nil); n != 0 || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("Read(nil): %d, %v", n, err)
		}
	}
}

// Arrays of types that are no numbers are errors that name the type, and those beside them are read.
func TestForeignTypes(t *testing.T) {
	z := openZip(t, testdata(t, "object.npz"))
	var read, refused []string
	for h, err := z.Next(); !errors.Is(err, io.EOF); h, err = z.Next() {
		if err == nil {
			read = append(read, h.Name)
			continue
		}
		e, ok := errors.AsType[*file.Error](err)
		if !ok || !errors.Is(e, file.ErrType) || e.Format != "npz" || e.Offset == 0 {
			t.Fatalf("%#v", err)
		}
		if _, again := z.Read(make([]byte, 1)); again != err { //nolint:errorlint // the very same
			t.Errorf("Read after a failed Next: %v", again)
		}
		refused = append(refused, e.Detail)
	}
	if !slices.Equal(read, []string{"number"}) || len(refused) != 5 {
		t.Errorf("%q, refused %q", read, refused)
	}
	for i, want := range []string{"<U1", "|O", "[('f0', '<f4'), ('f1', '<i2')]", "<M8[s]", "|V2"} {
		if !strings.Contains(refused[i], want) {
			t.Errorf("%q does not name %s", refused[i], want)
		}
	}
}

type tensor = filetest.Tensor

var (
	typed  = filetest.Typed
	frugal = filetest.Frugal
)

func all() []tensor {
	var v []tensor
	for name, typ := range types {
		v = append(v, filetest.New(name, typ, numbers(typ, 0, 24), 2, 3, 4))
	}
	slices.SortFunc(v, func(a, b tensor) int { return strings.Compare(a.Name, b.Name) })
	v = slices.Insert(v, 3, filetest.New("empty", dtype.Float32, nil, 0, 3))
	return append(v, filetest.New("a/scalar", dtype.Float32, numbers(dtype.Float32, 1, 2)))
}

// zipWriter makes archives.
func zipWriter(method uint16) filetest.Maker {
	return func(w io.Writer, h []file.Header) (file.Writer, error) { return npy.NewZipWriter(w, h, method) }
}

func writeZip(t testing.TB, v []tensor, chunk int, method uint16) []byte {
	t.Helper()
	return filetest.Write(t, zipWriter(method), v, chunk)
}

// TestZipWriter compares with files that NumPy reads right, which make.py checks.
func TestZipWriter(t *testing.T) {
	for name, method := range map[string]uint16{"written.npz": zip.Store, "packed.npz": zip.Deflate} {
		got := writeZip(t, all(), 1<<20, method)
		if *update {
			if err := os.WriteFile("testdata/"+name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, chunk := range []int{1, 7, 200} {
			if !bytes.Equal(writeZip(t, all(), chunk, method), got) {
				t.Errorf("%s: written by %d it differs", name, chunk)
			}
		}
		// The packed bytes are the compressor's, and another release of Go may choose others.
		if method == zip.Store && !bytes.Equal(got, testdata(t, name)) {
			t.Errorf("%s: other bytes than the file's", name)
		}
		for _, b := range [][]byte{got, testdata(t, name)} {
			v, err := filetest.ReadAll(openZip(t, b))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if method == zip.Deflate {
				filetest.Same(t, v, all(), nil)
				continue
			}
			filetest.Same(t, v, all(), b)
			for _, one := range v {
				if one.Offset%64 != 0 {
					t.Errorf("%s starts at %d", one.Name, one.Offset)
				}
			}
		}
	}
}

func TestZipWriterRefuses(t *testing.T) {
	filetest.RefusesAll(t, zipWriter(zip.Store))
	filetest.Refuses(t, zipWriter(zip.Store), file.ErrType, file.Header{Type: dtype.BFloat16})
	for _, name := range []string{"a/../../b", `a\..\b`, "/a", "a\x00b"} {
		filetest.Refuses(t, zipWriter(zip.Store), file.ErrFormat, file.Header{Name: name, Type: dtype.Int8})
	}
	filetest.Refuses(t, zipWriter(zip.Store), file.ErrTooLarge, file.Header{Name: strings.Repeat("a", 65532), Type: dtype.Int8})
	names := []tensor{filetest.New("", dtype.Bool1, []byte{1}), filetest.New("\xff..:\\x", dtype.Uint8, []byte{2})}
	z := openZip(t, writeZip(t, names, 1, zip.Store))
	for _, want := range names {
		if h, err := z.Next(); err != nil || h.Name != want.Name || h.Size != 1 {
			t.Errorf("%+v, %v", h, err)
		}
	}
}

func TestZipWriterAmounts(t *testing.T) {
	z := openZip(t, filetest.Amounts(t, zipWriter(zip.Store)))
	if _, err := z.Next(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(z); !bytes.Equal(got, []byte{1, 2, 3}) || err != nil {
		t.Errorf("% x, %v", got, err)
	}
}

func TestZipWriterPassesErrors(t *testing.T) {
	v := all()
	for left := range 3000 {
		w, err := npy.NewZipWriter(&filetest.Limited{Left: left * 2, Err: filetest.ErrBroken}, filetest.Headers(v), zip.Store)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range v {
			if _, err = w.Write(one.Data); err != nil {
				break
			}
		}
		if closing := w.Close(); !errors.Is(closing, filetest.ErrBroken) || err != nil && !errors.Is(err, filetest.ErrBroken) {
			t.Fatalf("after %d bytes: %v, %v", left, err, closing)
		}
	}
}

type brokenAt struct {
	io.ReaderAt
	from int64
}

func (b brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from && off < b.from+100 {
		return 0, filetest.ErrBroken
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestZipReaderPassesErrors(t *testing.T) {
	for _, name := range []string{"written.npz", "packed.npz"} {
		data := testdata(t, name)
		for from := 0; from < len(data); from += 20 {
			if err := drain(brokenAt{bytes.NewReader(data), int64(from)}, int64(len(data))); !errors.Is(err, filetest.ErrBroken) {
				t.Fatalf("%s at %d: %v", name, from, err)
			}
		}
	}
}

// drain reads an archive to its end and returns the first error.
func drain(r io.ReaderAt, size int64) error {
	z, err := npy.NewZipReader(r, size)
	if err != nil {
		return err
	}
	for {
		_, e := z.Next()
		if errors.Is(e, io.EOF) {
			return err
		}
		if e == nil {
			_, e = io.Copy(io.Discard, z)
		}
		if err == nil {
			err = e
		}
	}
}

// raw is an archive of members as they are given.
func raw(t testing.TB, method uint16, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		m, err := w.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
		if err == nil {
			_, err = io.WriteString(m, members[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
