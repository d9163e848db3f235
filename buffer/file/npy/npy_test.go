// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// npyFile builds a .npy file by hand: version, header text, elements.
func npyFile(major byte, header, elements string) string {
	n := len(header)
	pre := "\x93NUMPY" + string([]byte{major, 0, byte(n), byte(n >> 8)})
	if major > 1 {
		pre += string([]byte{byte(n >> 16), byte(n >> 24)})
	}
	return pre + header + elements
}

// asNumPy is, byte for byte, what NumPy 1.26 writes for np.arange(6, dtype='<f4').reshape(2, 3).
const asNumPy = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
	"                                                          \n" +
	"\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"

func read[T npy.Elem](t *testing.T, data string) (npy.Header, []T) {
	t.Helper()
	r, err := npy.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := npy.Read[T](r)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header(), v
}

func TestRead(t *testing.T) {
	h, v := read[float32](t, asNumPy)
	if h.Type != dtype.Float32 || h.BigEndian || h.Fortran || !slices.Equal(h.Shape, []int64{2, 3}) {
		t.Errorf("header %+v", h)
	}
	if !slices.Equal(v, []float32{0, 1, 2, 3, 4, 5}) {
		t.Errorf("elements %v", v)
	}
}

func TestWriteIsWhatNumPyWrites(t *testing.T) {
	var b strings.Builder
	h := npy.Header{Type: dtype.Float32, Shape: []int64{2, 3}}
	if err := npy.Write(&b, h, []float32{0, 1, 2, 3, 4, 5}); err != nil {
		t.Fatal(err)
	}
	if b.String() != asNumPy {
		t.Errorf("got  %q\nwant %q", b.String(), asNumPy)
	}
}

func TestReadVariants(t *testing.T) {
	const two = "\x00\x01\x00\x02"
	for _, c := range []struct {
		name, data string
		want       []uint16
		shape      []int64
		fortran    bool
	}{
		{"big-endian", npyFile(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n", two), []uint16{1, 2}, []int64{2}, false},
		{"little-endian", npyFile(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n", two), []uint16{256, 512}, []int64{2}, false},
		{"fortran", npyFile(1, "{'descr': '>u2', 'fortran_order': True, 'shape': (1, 2), }\n", two), []uint16{1, 2}, []int64{1, 2}, true},
		{"scalar", npyFile(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (), }\n", two), []uint16{1}, []int64{}, false},
		{"three dimensions", npyFile(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2, 1, 1)}", two), []uint16{1, 2}, []int64{2, 1, 1}, false},
		{"no elements", npyFile(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (9223372036854775807, 0)}", ""), nil, []int64{math.MaxInt64, 0}, false},
		{"version 2", npyFile(2, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two), []uint16{1, 2}, []int64{2}, false},
		{"version 3", npyFile(3, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two), []uint16{1, 2}, []int64{2}, false},
		{"other spelling", npyFile(1, "{ \"shape\":(2L,),\n\"descr\" : \">u2\" , \"fortran_order\":False }  \n", two), []uint16{1, 2}, []int64{2}, false},
		{"other space", npyFile(1, "\t{'descr': '>u2',\r\n'fortran_order':\fFalse, 'shape': (2,)}\t\r\n", two), []uint16{1, 2}, []int64{2}, false},
		{"more follows", npyFile(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two+"more"), []uint16{1, 2}, []int64{2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, v := read[uint16](t, c.data)
			if !slices.Equal(h.Shape, c.shape) || h.Fortran != c.fortran {
				t.Errorf("header %+v", h)
			}
			if !slices.Equal(v, c.want) {
				t.Errorf("elements %v, want %v", v, c.want)
			}
		})
	}
}

func TestHostile(t *testing.T) {
	const ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	with := func(old, s string) string { return npyFile(1, strings.Replace(ok, old, s, 1), "12345678") }
	for name, c := range map[string]struct {
		data string
		want error
	}{
		"empty":              {"", file.ErrTruncated},
		"magic only":         {"\x93NUMPY", file.ErrTruncated},
		"other file":         {"PK\x03\x04 and so on", file.ErrFormat},
		"version 4":          {npyFile(4, ok, "12345678"), file.ErrFormat},
		"no length":          {"\x93NUMPY\x01\x00", file.ErrTruncated},
		"header ends early":  {"\x93NUMPY\x01\x00\xff\xff{'descr'", file.ErrTruncated},
		"huge header":        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{", file.ErrTooLarge},
		"empty header":       {npyFile(1, "", ""), file.ErrFormat},
		"no newline":         {npyFile(1, "{", ""), file.ErrFormat},
		"backwards":          {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "}'shape': 'fortran_order': 'descr': "), file.ErrFormat},
		"elements missing":   {npyFile(1, ok, "1234567"), file.ErrTruncated},
		"no elements":        {npyFile(1, ok, ""), file.ErrTruncated},
		"negative pair":      {with("(2,)", "(-2, -1)"), file.ErrFormat},
		"overflow":           {with("(2,)", "(4294967296, 4294967296)"), file.ErrFormat},
		"overflow to 2":      {with("(2,)", "(9223372036854775809, 2)"), file.ErrFormat},
		"overflow of bytes":  {with("(2,)", "(4611686018427387905,)"), file.ErrFormat},
		"petabytes":          {with("(2,)", "(100000000, 1000000)"), file.ErrTruncated},
		"not a tuple":        {with("(2,)", "2"), file.ErrFormat},
		"not a tuple either": {with("(2,)", "(2)"), file.ErrFormat},
		"not a number":       {with("(2,)", "(two,)"), file.ErrFormat},
		"open tuple":         {with("(2,), }", "(2,"), file.ErrFormat},
		"minus zero":         {with("(2,)", "(-0,)"), file.ErrFormat},
		"bare minus":         {with("(2,)", "(-,)"), file.ErrFormat},
		"not a boolean":      {with("False", "0"), file.ErrFormat},
		"unknown key":        {with("shape", "shapes"), file.ErrFormat},
		"repeated key":       {with("'shape'", "'descr': '<f4', 'shape'"), file.ErrDuplicate},
		"missing key":        {with("'fortran_order': False, ", ""), file.ErrFormat},
		"code after":         {with("}", "} + f()"), file.ErrFormat},
		"escape":             {with("<f4", "<f\\x34"), file.ErrFormat},
		"open text":          {npyFile(1, "{'descr", ""), file.ErrFormat},
		"object":             {with("<f4", "|O"), file.ErrType},
		"text":               {with("<f4", "<U8"), file.ErrType},
		"complex256":         {with("<f4", "<c32"), file.ErrType},
		"date":               {with("<f4", "<M8[s]"), file.ErrType},
		"bfloat16":           {with("<f4", "<V2"), file.ErrType},
		"65 dimensions":      {with("(2,)", "("+strings.Repeat("1,", 65)+")"), file.ErrTooLarge},
		"float128":           {with("<f4", "<f16"), file.ErrType},
		"int24":              {with("<f4", "<i3"), file.ErrType},
		"negative size":      {with("<f4", "<f-4"), file.ErrType},
		"minor version":      {"\x93NUMPY\x01\x01" + npyFile(1, ok, "12345678")[8:], file.ErrFormat},
		"leading zero":       {with("(2,)", "(02,)"), file.ErrFormat},
		"no type":            {with("<f4", ""), file.ErrType},
		"structure":          {with("'<f4'", "[('x', '<f4'), ('y', '<f4')]"), file.ErrType},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := npy.NewReader(strings.NewReader(c.data), int64(len(c.data)))
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if e, ok := errors.AsType[*file.Error](err); !ok || e.Format != "npy" || e.Offset < 0 || e.Offset > int64(len(c.data)) {
				t.Errorf("%#v", err)
			}
			if r != nil {
				t.Error("a reader beside the error")
			}
		})
	}
}

// What is wrong with a shape is said.
func TestNegativeShape(t *testing.T) {
	data := npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }", "")
	if _, err := npy.NewReader(strings.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), "negative numbers in the shape (-2, -2)") {
		t.Error(err)
	}
}

// A stream of unknown length that claims a gigabyte must fail when it ends, without memory for the claim.
func TestHostileStream(t *testing.T) {
	data := npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (300000000,), }", "12345678")
	r, err := npy.NewReader(iotest.OneByteReader(strings.NewReader(data)), -1)
	if err != nil {
		t.Fatal(err)
	}
	v, err := npy.Read[float32](r)
	if e, ok := errors.AsType[*file.Error](err); !ok || !errors.Is(e, file.ErrTruncated) || e.Offset != int64(len(data)) || v != nil {
		t.Errorf("%d elements, error %v", len(v), err)
	}
}

func TestReaderErrorsPass(t *testing.T) {
	broken := errors.New("disk on fire")
	in := io.MultiReader(strings.NewReader(asNumPy[:130]), iotest.ErrReader(broken))
	r, err := npy.NewReader(in, int64(len(asNumPy)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := npy.Read[float32](r); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

func TestWrongElementType(t *testing.T) {
	r, err := npy.NewReader(strings.NewReader(asNumPy), -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := npy.Read[float64](r); !errors.Is(err, file.ErrType) {
		t.Errorf("error %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		h    npy.Header
		v    []float32
		want error
	}{
		"count":  {npy.Header{Type: dtype.Float32, Shape: []int64{2, 2}}, make([]float32, 3), file.ErrFormat},
		"size":   {npy.Header{Type: dtype.Float16, Shape: []int64{1}}, make([]float32, 1), file.ErrType},
		"type":   {npy.Header{Type: dtype.BFloat16, Shape: []int64{1}}, make([]float32, 1), file.ErrType},
		"none":   {npy.Header{}, nil, file.ErrType},
		"header": {npy.Header{Type: dtype.Float32, Shape: slices.Repeat([]int64{1}, 65)}, make([]float32, 1), file.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := npy.Write(&b, c.h, c.v); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if b.Len() != 0 {
				t.Error("something was written")
			}
		})
	}
}

// TestHalfIsFloat16 refuses other elements of two bytes as numbers.
func TestHalfIsFloat16(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.Uint16, dtype.Int16} {
		h := npy.Header{Type: typ, Shape: []int64{2}}
		var b bytes.Buffer
		if err := npy.Write(&b, h, make([]dtype.Half, 2)); !errors.Is(err, file.ErrType) || b.Len() != 0 {
			t.Errorf("written as %v: %v, %d bytes", typ, err, b.Len())
		}
		if err := npy.Write(&b, h, []uint16{1, 2}); err != nil {
			t.Fatal(err)
		}
		r, err := npy.NewReader(&b, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := npy.Read[dtype.Half](r); !errors.Is(err, file.ErrType) {
			t.Errorf("Read of %v: %v", typ, err)
		}
		if v, err := npy.Read[uint16](r); err != nil || !slices.Equal(v, []uint16{1, 2}) {
			t.Errorf("after the refusals: %v, %v", v, err)
		}
	}
}

func roundTrip[T npy.Elem](t *testing.T, h npy.Header, v []T) {
	t.Helper()
	var b bytes.Buffer
	written := h
	written.BigEndian = false
	if err := npy.Write(&b, written, v); err != nil {
		t.Fatal(err)
	}
	at := b.Len() - len(v)*h.Type.Size()
	if at%64 != 0 {
		t.Errorf("elements start at %d", at)
	}
	if h.BigEndian { // as another program writes it
		copy(b.Bytes(), bytes.Replace(b.Bytes()[:at], []byte("'<"), []byte("'>"), 1))
		unit := h.Type.Size()
		if h.Type.Code == dtype.Complex64.Code {
			unit /= 2
		}
		for part := range slices.Chunk(b.Bytes()[at:], unit) {
			slices.Reverse(part)
		}
	}
	got, w := read[T](t, b.String())
	if got.Type != h.Type || got.Fortran != h.Fortran || got.BigEndian != (h.BigEndian && h.Type.Size() > 1) || !slices.Equal(got.Shape, h.Shape) {
		t.Errorf("header %+v, want %+v", got, h)
	}
	if !slices.Equal(v, w) {
		t.Errorf("elements differ: %v, want %v", w[:min(len(w), 5)], v[:min(len(v), 5)])
	}
}

func TestRoundTrip(t *testing.T) {
	many := make([]float32, 300_000)
	for i := range many {
		many[i] = float32(i) / 7
	}
	for _, big := range []bool{false, true} {
		roundTrip(t, npy.Header{Type: dtype.Float32, BigEndian: big, Shape: []int64{300, 1000}}, many)
		roundTrip(t, npy.Header{Type: dtype.Float16, BigEndian: big, Fortran: true, Shape: []int64{3, 1}}, []uint16{0x3c00, 0xfc00, 1})
		roundTrip(t, npy.Header{Type: dtype.Float16, BigEndian: big, Shape: []int64{3}}, []dtype.Half{dtype.ToHalf(1), dtype.HalfFromBits(0xfc00), dtype.HalfFromBits(1)})
		roundTrip(t, npy.Header{Type: dtype.Int8, BigEndian: big, Shape: []int64{2}}, []int8{math.MinInt8, -1})
		roundTrip(t, npy.Header{Type: dtype.Int16, BigEndian: big, Shape: []int64{2}}, []int16{math.MinInt16, -2})
		roundTrip(t, npy.Header{Type: dtype.Int32, BigEndian: big, Shape: []int64{3}}, []int32{math.MinInt32, -1, math.MaxInt32})
		roundTrip(t, npy.Header{Type: dtype.Int64, BigEndian: big, Shape: []int64{1, 1}}, []int64{math.MinInt64})
		roundTrip(t, npy.Header{Type: dtype.Int64, BigEndian: big, Shape: []int64{0, 5}}, []int64{})
		roundTrip(t, npy.Header{Type: dtype.Uint8, BigEndian: big, Shape: []int64{2}}, []uint8{1, 255})
		roundTrip(t, npy.Header{Type: dtype.Bool8, BigEndian: big, Shape: []int64{2}}, []uint8{1, 0})
		roundTrip(t, npy.Header{Type: dtype.Uint16, BigEndian: big, Shape: []int64{2}}, []uint16{1, 2})
		roundTrip(t, npy.Header{Type: dtype.Uint32, BigEndian: big, Shape: []int64{}}, []uint32{math.MaxUint32})
		roundTrip(t, npy.Header{Type: dtype.Uint64, BigEndian: big, Shape: []int64{2}}, []uint64{1, math.MaxUint64})
		roundTrip(t, npy.Header{Type: dtype.Float64, BigEndian: big, Shape: []int64{1, 2, 1}}, []float64{math.Pi, math.Inf(-1)})
		roundTrip(t, npy.Header{Type: dtype.Complex64, BigEndian: big, Shape: []int64{2}}, []complex64{1 + 2i, -3i})
		roundTrip(t, npy.Header{Type: dtype.Complex128, BigEndian: big, Shape: []int64{2}}, []complex128{1 + 2i, -3i})
	}
}

// Bytes come little-endian, however few are asked for and however few come.
func TestReadBytes(t *testing.T) {
	for header, want := range map[string]string{"'<u4'": "0123456789ab", "'>u4'": "32107654ba98", "'>c8'": "32107654"} {
		data := npyFile(1, "{'descr': "+header+", 'fortran_order': False, 'shape': ("+
			map[int]string{12: "3", 8: "1"}[len(want)]+",)}", "0123456789ab")
		for _, chunk := range []int{1, 3, 4, 5, 7, 100} {
			for _, in := range []io.Reader{strings.NewReader(data), iotest.OneByteReader(strings.NewReader(data)), iotest.DataErrReader(strings.NewReader(data))} {
				r, err := npy.NewReader(in, -1)
				if err != nil {
					t.Fatal(err)
				}
				var got []byte
				for err == nil {
					buf := make([]byte, chunk)
					var n int
					n, err = r.Read(buf)
					got = append(got, buf[:n]...)
				}
				if !errors.Is(err, io.EOF) || string(got) != want {
					t.Errorf("%s by %d: %q, %v", header, chunk, got, err)
				}
			}
		}
	}
}

func TestArguments(t *testing.T) {
	for name, err := range map[string]error{
		"no input":      second(npy.NewReader(nil, 1)),
		"no archive":    second(npy.NewZipReader(nil, 0)),
		"negative size": second(npy.NewZipReader(strings.NewReader(""), -1)),
		"no method":     second(npy.NewZipWriter(io.Discard, nil, 1)),
		"big-endian":    npy.Write(io.Discard, npy.Header{Type: dtype.Uint8, BigEndian: true}, []uint8{1}),
		"no output":     second(npy.NewZipWriter(nil, nil, zip.Store)),
		"Write":         npy.Write(nil, npy.Header{Type: dtype.Uint8, Shape: []int64{0}}, []uint8{}),
		"Read":          second(npy.Read[uint8](nil)),
		"zero Reader":   second(npy.Read[uint8](&npy.Reader{})),
	} {
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The caller's word for the size may be wrong, and no memory could hold that much. A machine of 32 bits knows at once.
func TestWrongSize(t *testing.T) {
	data := npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000000,)}", "1234")
	r, err := npy.NewReader(strings.NewReader(data), math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := npy.Read[float32](r); !errors.Is(err, file.ErrTruncated) && !errors.Is(err, file.ErrTooLarge) || v != nil {
		t.Errorf("%d elements, %v", len(v), err)
	}
}
