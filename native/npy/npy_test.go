// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sublet-gpu/sublet/native/npy"
)

// file builds a .npy file by hand: version, header text, elements.
func file(major byte, header, elements string) string {
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
	if h.Type != npy.Float32 || h.BigEndian || h.Fortran || !slices.Equal(h.Shape, []int{2, 3}) {
		t.Errorf("header %+v", h)
	}
	if !slices.Equal(v, []float32{0, 1, 2, 3, 4, 5}) {
		t.Errorf("elements %v", v)
	}
}

func TestWriteIsWhatNumPyWrites(t *testing.T) {
	var b strings.Builder
	h := npy.Header{Type: npy.Float32, Shape: []int{2, 3}}
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
		shape      []int
		fortran    bool
	}{
		{"big-endian", file(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n", two), []uint16{1, 2}, []int{2}, false},
		{"little-endian", file(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n", two), []uint16{256, 512}, []int{2}, false},
		{"fortran", file(1, "{'descr': '>u2', 'fortran_order': True, 'shape': (1, 2), }\n", two), []uint16{1, 2}, []int{1, 2}, true},
		{"scalar", file(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (), }\n", two), []uint16{1}, []int{}, false},
		{"three dimensions", file(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2, 1, 1)}", two), []uint16{1, 2}, []int{2, 1, 1}, false},
		{"no elements", file(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (9223372036854775807, 0)}", ""), nil, []int{math.MaxInt, 0}, false},
		{"version 2", file(2, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two), []uint16{1, 2}, []int{2}, false},
		{"version 3", file(3, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two), []uint16{1, 2}, []int{2}, false},
		{"other spelling", file(1, "{ \"shape\":(2L,),\n\"descr\" : \">u2\" , \"fortran_order\":False }  \n", two), []uint16{1, 2}, []int{2}, false},
		{"more follows", file(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", two+"more"), []uint16{1, 2}, []int{2}, false},
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
	with := func(old, s string) string { return file(1, strings.Replace(ok, old, s, 1), "12345678") }
	for name, c := range map[string]struct {
		data string
		want error
	}{
		"empty":              {"", npy.ErrFormat},
		"magic only":         {"\x93NUMPY", npy.ErrFormat},
		"other file":         {"PK\x03\x04 and so on", npy.ErrFormat},
		"version 4":          {file(4, ok, "12345678"), npy.ErrFormat},
		"no length":          {"\x93NUMPY\x01\x00", npy.ErrFormat},
		"header ends early":  {"\x93NUMPY\x01\x00\xff\xff{'descr'", npy.ErrFormat},
		"huge header":        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{", npy.ErrFormat},
		"empty header":       {file(1, "", ""), npy.ErrFormat},
		"no newline":         {file(1, "{", ""), npy.ErrFormat},
		"backwards":          {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "}'shape': 'fortran_order': 'descr': "), npy.ErrFormat},
		"elements missing":   {file(1, ok, "1234567"), npy.ErrFormat},
		"no elements":        {file(1, ok, ""), npy.ErrFormat},
		"negative":           {with("(2,)", "(-2,)"), npy.ErrFormat},
		"negative pair":      {with("(2,)", "(-2, -1)"), npy.ErrFormat},
		"overflow":           {with("(2,)", "(4294967296, 4294967296)"), npy.ErrFormat},
		"overflow to 2":      {with("(2,)", "(9223372036854775809, 2)"), npy.ErrFormat},
		"overflow of bytes":  {with("(2,)", "(4611686018427387905,)"), npy.ErrFormat},
		"petabytes":          {with("(2,)", "(100000000, 1000000)"), npy.ErrFormat},
		"not a tuple":        {with("(2,)", "2"), npy.ErrFormat},
		"not a tuple either": {with("(2,)", "(2)"), npy.ErrFormat},
		"not a number":       {with("(2,)", "(two,)"), npy.ErrFormat},
		"open tuple":         {with("(2,), }", "(2,"), npy.ErrFormat},
		"bare minus":         {with("(2,)", "(-,)"), npy.ErrFormat},
		"not a boolean":      {with("False", "0"), npy.ErrFormat},
		"unknown key":        {with("shape", "shapes"), npy.ErrFormat},
		"repeated key":       {with("'shape'", "'descr': '<f4', 'shape'"), npy.ErrFormat},
		"missing key":        {with("'fortran_order': False, ", ""), npy.ErrFormat},
		"code after":         {with("}", "} + f()"), npy.ErrFormat},
		"escape":             {with("<f4", "<f\\x34"), npy.ErrFormat},
		"open text":          {file(1, "{'descr", ""), npy.ErrFormat},
		"object":             {with("<f4", "|O"), npy.ErrType},
		"text":               {with("<f4", "<U8"), npy.ErrType},
		"complex":            {with("<f4", "<c8"), npy.ErrType},
		"float128":           {with("<f4", "<f16"), npy.ErrType},
		"int24":              {with("<f4", "<i3"), npy.ErrType},
		"negative size":      {with("<f4", "<f-4"), npy.ErrType},
		"no size":            {with("<f4", "<f"), npy.ErrType},
		"no type":            {with("<f4", ""), npy.ErrType},
		"structure":          {with("'<f4'", "[('x', '<f4'), ('y', '<f4')]"), npy.ErrType},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := npy.NewReader(strings.NewReader(c.data), int64(len(c.data)))
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if r != nil {
				t.Error("a reader beside the error")
			}
		})
	}
}

// A stream of unknown length that claims petabytes must fail when it ends, without memory for the claim.
func TestHostileStream(t *testing.T) {
	data := file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "12345678")
	r, err := npy.NewReader(iotest.OneByteReader(strings.NewReader(data)), -1)
	if err != nil {
		t.Fatal(err)
	}
	v, err := npy.Read[float32](r)
	if !errors.Is(err, npy.ErrFormat) || v != nil {
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
	if _, err := npy.Read[float64](r); !errors.Is(err, npy.ErrType) {
		t.Errorf("error %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		h    npy.Header
		v    []float32
		want error
	}{
		"count":    {npy.Header{Type: npy.Float32, Shape: []int{2, 2}}, make([]float32, 3), npy.ErrFormat},
		"negative": {npy.Header{Type: npy.Float32, Shape: []int{-1, -1}}, make([]float32, 1), npy.ErrFormat},
		"size":     {npy.Header{Type: npy.Float16, Shape: []int{1}}, make([]float32, 1), npy.ErrType},
		"type":     {npy.Header{Type: npy.Type{Kind: 'c', Size: 4}, Shape: []int{1}}, make([]float32, 1), npy.ErrType},
		"none":     {npy.Header{}, nil, npy.ErrType},
		"header":   {npy.Header{Type: npy.Float32, Shape: slices.Repeat([]int{1}, 30000)}, make([]float32, 1), npy.ErrFormat},
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

func roundTrip[T npy.Elem](t *testing.T, h npy.Header, v []T) {
	t.Helper()
	var b bytes.Buffer
	if err := npy.Write(&b, h, v); err != nil {
		t.Fatal(err)
	}
	if at := b.Len() - len(v)*h.Type.Size; at%64 != 0 {
		t.Errorf("elements start at %d", at)
	}
	got, w := read[T](t, b.String())
	if got.Type != h.Type || got.Fortran != h.Fortran || got.BigEndian != (h.BigEndian && h.Type.Size > 1) || !slices.Equal(got.Shape, h.Shape) {
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
		roundTrip(t, npy.Header{Type: npy.Float32, BigEndian: big, Shape: []int{300, 1000}}, many)
		roundTrip(t, npy.Header{Type: npy.Float16, BigEndian: big, Fortran: true, Shape: []int{3, 1}}, []uint16{0x3c00, 0xfc00, 1})
		roundTrip(t, npy.Header{Type: npy.Int32, BigEndian: big, Shape: []int{3}}, []int32{math.MinInt32, -1, math.MaxInt32})
		roundTrip(t, npy.Header{Type: npy.Uint32, BigEndian: big, Shape: []int{}}, []uint32{math.MaxUint32})
		roundTrip(t, npy.Header{Type: npy.Type{Kind: 'f', Size: 8}, BigEndian: big, Shape: []int{1, 2, 1}}, []float64{math.Pi, math.Inf(-1)})
		roundTrip(t, npy.Header{Type: npy.Type{Kind: 'u', Size: 1}, BigEndian: big, Shape: []int{2}}, []uint8{1, 255})
		roundTrip(t, npy.Header{Type: npy.Type{Kind: 'i', Size: 8}, BigEndian: big, Shape: []int{0, 5}}, []int64{})
	}
}

func TestTypeString(t *testing.T) {
	for typ, want := range map[npy.Type]string{
		npy.Float32: "float32", npy.Float16: "float16", npy.Int32: "int32", npy.Uint32: "uint32", {Kind: 'b', Size: 1}: "bool",
	} {
		if typ.String() != want {
			t.Errorf("%q, want %q", typ, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(asNumPy), true)
	f.Add([]byte(file(2, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 1, 1)}", "\x00\x01")), false)
	f.Add([]byte(file(1, "{\"shape\": (), 'descr': '>i8', 'fortran_order': False}", "12345678")), true)
	f.Add([]byte("\x93NUMPY\x01\x00\x01\x00{"), false)
	f.Fuzz(func(t *testing.T, data []byte, sized bool) {
		size := int64(-1)
		if sized {
			size = int64(len(data))
		}
		r, err := npy.NewReader(bytes.NewReader(data), size)
		if err != nil {
			if !errors.Is(err, npy.ErrFormat) && !errors.Is(err, npy.ErrType) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		switch r.Header().Type.Size {
		case 1:
			fuzzElements[uint8](t, r, sized)
		case 2:
			fuzzElements[uint16](t, r, sized)
		case 4:
			fuzzElements[uint32](t, r, sized)
		case 8:
			fuzzElements[uint64](t, r, sized)
		default:
			t.Fatalf("header %+v", r.Header())
		}
	})
}

func fuzzElements[T npy.Elem](t *testing.T, r *npy.Reader, sized bool) {
	v, err := npy.Read[T](r)
	if err != nil {
		if sized || !errors.Is(err, npy.ErrFormat) {
			t.Fatalf("header %+v was accepted, then: %v", r.Header(), err)
		}
		return
	}
	roundTrip(t, r.Header(), v)
}
