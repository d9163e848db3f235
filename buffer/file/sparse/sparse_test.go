// SPDX-License-Identifier: Apache-2.0

package sparse_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/sparse"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// dense are all elements row by row.
func dense(m *sparse.Matrix) []float64 {
	if m.Dense != nil {
		return m.Dense
	}
	x := make([]float64, m.Rows*m.Cols)
	for c := range len(m.Pointers) - 1 {
		for q := m.Pointers[c]; q < m.Pointers[c+1]; q++ {
			at := int(m.Indices[q])*m.Cols + c
			if m.ByRows {
				at = c*m.Cols + int(m.Indices[q])
			}
			x[at] += m.Values[q]
		}
	}
	return x
}

const banner = "%%MatrixMarket matrix "

// TestReadMTX reads files as NIST's and SciPy's are.
func TestReadMTX(t *testing.T) {
	for text, want := range map[string]struct {
		rows, cols int
		sparse     bool
		x          []float64
	}{
		banner + "coordinate real general\n% a comment\n\n 2 3 3\n1 1 1.5\n2 3 -2e0\n1 2 3\n": {2, 3, true, []float64{1.5, 3, 0, 0, 0, -2}},
		"%%matrixmarket MATRIX Coordinate Real General\r\n2 2 2\r\n2 1 1\r\n2 1 2\r\n":        {2, 2, true, []float64{0, 0, 3, 0}},
		banner + "coordinate integer symmetric\n3 3 3\n1 1 4\n2 1 -1\n3 2 7\n":                {3, 3, true, []float64{4, -1, 0, -1, 0, 7, 0, 7, 0}},
		banner + "coordinate pattern general\n2 2 2\n1 2\n2 1\n":                              {2, 2, true, []float64{0, 1, 1, 0}},
		banner + "coordinate real skew-symmetric\n2 2 1\n2 1 5\n":                             {2, 2, true, []float64{0, -5, 5, 0}},
		banner + "coordinate real general\n0 4 0\n":                                           {0, 4, true, []float64{}},
		banner + "array real general\n2 2\n1\n2\n3\n4\n":                                      {2, 2, false, []float64{1, 3, 2, 4}},
		banner + "array real symmetric\n2 2\n1 2 4":                                           {2, 2, false, []float64{1, 2, 2, 4}},
		banner + "array integer skew-symmetric\n3 3\n1\n2\n3\n":                               {3, 3, false, []float64{0, -1, -2, 1, 0, -3, 2, 3, 0}},
		banner + "coordinate real general\n1 1 1\n1 1 1.25D+2\n":                              {1, 1, true, []float64{125}},
	} {
		m, err := sparse.ReadMTX(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if m.Rows != want.rows || m.Cols != want.cols || m.Sparse() != want.sparse || !slices.Equal(dense(m), want.x) {
			t.Errorf("%q: %+v, want %v", text, m, want.x)
		}
	}
}

// TestReadMTXHostile reads what is no matrix. None of these takes memory for what it claims.
func TestReadMTXHostile(t *testing.T) {
	for _, want := range []struct {
		text   string
		err    error
		detail string
	}{
		{"", file.ErrFormat, "line 1"},
		{"1 1 1\n", file.ErrFormat, "line 1"},
		{banner + "coordinate real", file.ErrFormat, "line 1"},
		{banner + "sideways real general\n", file.ErrFormat, "sideways"},
		{banner + "coordinate tensor general", file.ErrFormat, "tensor"},
		{banner + "coordinate real diagonal\n", file.ErrFormat, "diagonal"},
		{banner + "coordinate complex general", file.ErrType, "complex"},
		{banner + "coordinate real hermitian\n", file.ErrType, "Hermitian"},
		{banner + "array pattern general\n1 1\n", file.ErrFormat, "pattern"},
		{banner + "coordinate real general\n", file.ErrTruncated, "line 1"},
		{banner + "coordinate real general\n2 2 2147483647\n1 1 1\n", file.ErrTruncated, "line 3"},
		{banner + "coordinate real general\n999999999999 2 1\n1 1 1\n", file.ErrTooLarge, "line 2"},
		{banner + "coordinate real general\n-1 2 0\n", file.ErrFormat, "line 2"},
		{banner + "coordinate real general\n2 2 99999999999\n", file.ErrFormat, "line 2"},
		{banner + "coordinate real general\n2 2 1\n3 1 1\n", file.ErrFormat, "line 3"},
		{banner + "coordinate real general\n2 2 1\n0 1 1\n", file.ErrFormat, "line 3"},
		{banner + "coordinate real general\n2 2 1\n1 1 x\n", file.ErrFormat, `"x"`},
		{banner + "coordinate real general\n2 2 1\n1 1 1e999\n", file.ErrFormat, "range"},
		{banner + "coordinate integer general\n2 2 1\n1 1 1.5\n", file.ErrFormat, "1.5"},
		{banner + "coordinate real general\n2 2 1\n1 1 1\n2 2 2\n", file.ErrFormat, "line 4"},
		{banner + "coordinate real symmetric\n2 3 0\n", file.ErrFormat, "square"},
		{banner + "coordinate real skew-symmetric\n2 2 1\n1 1 3\n", file.ErrFormat, "diagonal"},
		{banner + "array real general\n100000 100000\n1\n", file.ErrTooLarge, "100000"},
		{banner + "array real general\n30000 30000\n1\n", file.ErrTruncated, "line 3"},
		{banner + strings.Repeat("x", 2<<20), file.ErrFormat, "longer"},
		{banner + "coordinate real general\n" + strings.Repeat("%\n", 50), file.ErrTruncated, "line 51"},
	} {
		text := want.text
		_, err := sparse.ReadMTX(strings.NewReader(text))
		if !errors.Is(err, want.err) || !strings.Contains(fmt.Sprint(err), want.detail) {
			t.Errorf("%.80q: error %v, want %v with %s", text, err, want.err, want.detail)
		}
	}
	mine := errors.New("mine")
	if _, err := sparse.ReadMTX(io.MultiReader(strings.NewReader(banner+"array"), failing{mine})); !errors.Is(err, mine) {
		t.Errorf("error %v", err)
	}
	for _, r := range []io.Reader{nil, impossible(-1), impossible(1 << 20)} {
		if _, err := sparse.ReadMTX(r); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("error %v", err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// impossible is how many bytes it says that it has read.
type impossible int

func (n impossible) Read([]byte) (int, error) { return int(n), nil }

// random is a matrix by rows or by columns.
func random(rng *rand.Rand, byRows bool) *sparse.Matrix {
	rows, cols := rng.IntN(9), rng.IntN(9)
	var is, js []int32
	var values []float64
	for i := range rows {
		for j := range cols {
			if rng.IntN(3) == 0 {
				is, js, values = append(is, int32(i)), append(js, int32(j)), append(values, rng.NormFloat64())
			}
		}
	}
	if byRows {
		m, _ := sparse.FromTriplets(rows, cols, is, js, values)
		return m
	}
	m, _ := sparse.FromTriplets(cols, rows, js, is, values)
	m.Rows, m.Cols, m.ByRows = m.Cols, m.Rows, false
	return m
}

// TestRoundTrips writes random matrices in both formats and reads them back.
func TestRoundTrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 200 {
		m := random(rng, round%2 == 0)
		var text, archive bytes.Buffer
		if err := errors.Join(sparse.WriteMTX(&text, m), sparse.WriteNPZ(&archive, m)); err != nil {
			t.Fatal(err)
		}
		a, err := sparse.ReadMTX(&text)
		if err != nil || !slices.Equal(dense(a), dense(m)) {
			t.Fatalf("%+v, want %+v: %v", a, m, err)
		}
		in := bytes.NewReader(archive.Bytes())
		b, err := sparse.ReadNPZ(in, in.Size())
		if err != nil || b.ByRows != m.ByRows || !slices.Equal(b.Values, m.Values) || !slices.Equal(b.Indices, m.Indices) || !slices.Equal(b.Pointers, m.Pointers) {
			t.Fatalf("%+v, want %+v: %v", b, m, err)
		}
		if !sparse.IsNPZ(in, in.Size()) || sparse.IsNPZ(strings.NewReader("PK"), 2) || sparse.IsNPZ(nil, 0) {
			t.Fatal("IsNPZ")
		}
		full := &sparse.Matrix{Rows: m.Rows, Cols: m.Cols, Dense: dense(m)}
		text.Reset()
		if err := sparse.WriteMTX(&text, full); err != nil {
			t.Fatal(err)
		}
		if c, err := sparse.ReadMTX(&text); err != nil || c.Sparse() || !slices.Equal(c.Dense, full.Dense) {
			t.Fatalf("%+v, want %+v: %v", c, full, err)
		}
	}
}

// archive is a .npz: the format as a text of that type, and arrays.
func archive(t testing.TB, descr, format string, arrays map[string]any) *bytes.Reader {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	if format != "" {
		f, err := z.Create("format.npy")
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (), }\n", descr)
		fmt.Fprintf(f, "\x93NUMPY\x01\x00%c%c%s%s", len(header), 0, header, format)
	}
	for name, a := range arrays {
		f, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		switch a := a.(type) {
		case []int64:
			err = write(f, dtype.Int64, a)
		case []int32:
			err = write(f, dtype.Int32, a)
		case []float32:
			err = write(f, dtype.Float32, a)
		case []bool:
			bits := make([]uint8, len(a))
			for i, b := range a {
				if b {
					bits[i] = 1
				}
			}
			err = write(f, dtype.Bool8, bits)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out.Bytes())
}

func write[T npy.Elem](w io.Writer, typ dtype.Type, v []T) error {
	return npy.Write(w, npy.Header{Type: typ, Shape: []int64{int64(len(v))}}, v)
}

// TestReadNPZ reads archives as versions of SciPy write them.
func TestReadNPZ(t *testing.T) {
	utf32 := strings.Join(strings.Split("coo", ""), "\x00\x00\x00") + "\x00\x00\x00"
	for what, c := range map[string]struct {
		in   *bytes.Reader
		want []float64
	}{
		"csr": {archive(t, "|S3", "csr", map[string]any{
			"shape": []int64{2, 3}, "data": []float32{1, 2, 3}, "indices": []int32{0, 2, 1}, "indptr": []int32{0, 2, 3},
		}), []float64{1, 0, 2, 0, 3, 0}},
		"csc, unsorted": {archive(t, "|S3", "csc", map[string]any{
			"shape": []int64{3, 2}, "data": []int32{7, 8, 9}, "indices": []int64{2, 0, 0}, "indptr": []int64{0, 3, 3},
		}), []float64{17, 0, 0, 0, 7, 0}},
		"coo": {archive(t, "<U3", utf32, map[string]any{
			"shape": []int64{2, 2}, "data": []bool{true, true, false}, "row": []int32{1, 1, 0}, "col": []int32{0, 0, 0},
		}), []float64{0, 0, 2, 0}},
	} {
		m, err := sparse.ReadNPZ(c.in, c.in.Size())
		if err != nil || !slices.Equal(dense(m), c.want) {
			t.Errorf("%s: %+v, %v, want %v", what, m, err, c.want)
		}
	}
}

func TestReadNPZHostile(t *testing.T) {
	shape, data, indices := []int64{2, 3}, []float32{1, 2, 3}, []int32{0, 2, 1}
	with := func(pairs ...any) map[string]any {
		all := map[string]any{"shape": shape, "data": data, "indices": indices, "indptr": []int32{0, 2, 3}}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == nil {
				delete(all, pairs[i].(string))
				continue
			}
			all[pairs[i].(string)] = pairs[i+1]
		}
		return all
	}
	for what, c := range map[string]struct {
		in   *bytes.Reader
		want error
	}{
		"empty":         {bytes.NewReader(nil), file.ErrFormat},
		"no archive":    {bytes.NewReader([]byte("hello")), file.ErrFormat},
		"no format":     {archive(t, "", "", with()), file.ErrFormat},
		"bsr":           {archive(t, "|S3", "bsr", with()), file.ErrType},
		"unknown":       {archive(t, "|S3", "xyz", with()), file.ErrFormat},
		"no data":       {archive(t, "|S3", "csr", with("data", nil)), file.ErrFormat},
		"no shape":      {archive(t, "|S3", "csr", with("shape", nil)), file.ErrFormat},
		"no indices":    {archive(t, "|S3", "csr", with("indices", nil)), file.ErrFormat},
		"three sizes":   {archive(t, "|S3", "csr", with("shape", []int64{1, 2, 3})), file.ErrFormat},
		"vast":          {archive(t, "|S3", "csr", with("shape", []int64{1 << 40, 3})), file.ErrFormat},
		"negative":      {archive(t, "|S3", "csr", with("shape", []int64{-2, 3})), file.ErrFormat},
		"few pointers":  {archive(t, "|S3", "csr", with("indptr", []int32{0, 3})), file.ErrFormat},
		"falling":       {archive(t, "|S3", "csr", with("indptr", []int32{0, 4, 3})), file.ErrFormat},
		"not from 0":    {archive(t, "|S3", "csr", with("indptr", []int32{1, 2, 3})), file.ErrFormat},
		"column beyond": {archive(t, "|S3", "csr", with("indices", []int32{0, 3, 1})), file.ErrFormat},
		"few indices":   {archive(t, "|S3", "csr", with("indices", []int32{0})), file.ErrFormat},
		"row beyond":    {archive(t, "|S3", "coo", with("row", []int32{0, 2, 0}, "col", []int32{0, 1, 2})), file.ErrFormat},
		"no rows":       {archive(t, "|S3", "coo", with()), file.ErrFormat},
	} {
		if _, err := sparse.ReadNPZ(c.in, c.in.Size()); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", what, err, c.want)
		}
	}
	if _, err := sparse.ReadNPZ(nil, 3); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

// TestWriteRefused writes what is no matrix.
func TestWriteRefused(t *testing.T) {
	for what, m := range map[string]*sparse.Matrix{
		"nil": nil, "no pointers": {Rows: 1, Cols: 1}, "negative": {Rows: -1}, "few elements": {Rows: 2, Cols: 2, Dense: []float64{1}},
		"falling": {Rows: 2, Cols: 1, ByRows: true, Pointers: []int32{0, 2, 1}, Indices: []int32{0}, Values: []float64{1}},
		"order":   {Rows: 1, Cols: 2, ByRows: true, Pointers: []int32{0, 2}, Indices: []int32{1, 0}, Values: []float64{1, 2}},
	} {
		if err := sparse.WriteMTX(io.Discard, m); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: error %v", what, err)
		}
		if err := sparse.WriteNPZ(io.Discard, m); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if err := sparse.WriteMTX(nil, &sparse.Matrix{Dense: []float64{}}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("error %v", err)
	}
	for _, at := range []int32{-1, 2} {
		if _, err := sparse.FromTriplets(2, 2, []int32{at}, []int32{0}, []float64{1}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("error %v", err)
		}
	}
}

// FuzzMTX wants a matrix that can be written and read again, or a typed error.
func FuzzMTX(f *testing.F) {
	for _, text := range []string{"coordinate real general\n2 2 1\n1 1 1\n", "array real symmetric\n2 2\n1 2 3\n", "coordinate pattern skew-symmetric\n2 2 1\n2 1\n"} {
		f.Add(banner + text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := sparse.ReadMTX(strings.NewReader(text))
		if err != nil {
			if fault.Code(err) == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if m.Rows > 1000 || m.Cols > 1000 {
			return
		}
		var out bytes.Buffer
		if err := sparse.WriteMTX(&out, m); err != nil {
			t.Fatal(err)
		}
		again, err := sparse.ReadMTX(&out)
		same := func(x, y float64) bool { return x == y || x != x && y != y }
		if err != nil || !slices.EqualFunc(dense(again), dense(m), same) {
			t.Fatalf("%+v, then %+v: %v", m, again, err)
		}
	})
}

// FuzzNPZ wants a matrix or a typed error.
func FuzzNPZ(f *testing.F) {
	in := archive(f, "|S3", "csr", map[string]any{"shape": []int64{1, 1}, "data": []float32{1}, "indices": []int32{0}, "indptr": []int32{0, 1}})
	all, _ := io.ReadAll(in)
	f.Add(all)
	f.Fuzz(func(t *testing.T, mem []byte) {
		if _, err := sparse.ReadNPZ(bytes.NewReader(mem), int64(len(mem))); err != nil && fault.Code(err) == "" {
			t.Fatalf("%v", err)
		}
	})
}

// BenchmarkReadMTX reads a million entries.
func BenchmarkReadMTX(b *testing.B) {
	const n = 1_000_000
	var text bytes.Buffer
	fmt.Fprintf(&text, "%scoordinate real general\n%d %d %d\n", banner, 100_000, 100_000, n)
	rng := rand.New(rand.NewPCG(1, 1))
	for range n {
		fmt.Fprintf(&text, "%d %d %g\n", 1+rng.IntN(100_000), 1+rng.IntN(100_000), rng.Float32())
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := sparse.ReadMTX(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
