// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestRoundTrip saves what was read and gets the same bytes, also of the files that TVM wrote.
func TestRoundTrip(t *testing.T) {
	for name, s := range samples(t) {
		got, err := write(mustRead(t, s))
		if err != nil || got != s {
			t.Errorf("%s: %v\n got %x\nwant %x", name, err, got, s)
		}
	}
}

// TestCanonical writes zeros where readers look at nothing, and nothing after the last tensor.
func TestCanonical(t *testing.T) {
	odd := []byte(annotated + "stale string")
	copy(odd[8:], "reserved")
	copy(odd[49:], "reserved")
	copy(odd[61:], "\xff\xff\xff\xff")
	if got, err := write(mustRead(t, string(odd))); err != nil || got != annotated {
		t.Errorf("%v, %x", err, got)
	}
}

// TestWriteBool writes either bool as the header says.
func TestWriteBool(t *testing.T) {
	all := mustRead(t, samples(t)["bool"])
	for typ, code := range map[dtype.Type]string{dtype.Bool8: "\x06\x08\x01\x00", dtype.Bool1: "\x01\x01\x01\x00"} {
		for i := range all {
			all[i].Type = typ
		}
		want := list("old", "new") + tensor(code, "\x00\x01\x01", 3) + tensor(code, "\x01", 1)
		if got, err := write(all); err != nil || got != want {
			t.Errorf("%v: %v, %x", typ, err, got)
		}
	}
}

func TestWriteLastWins(t *testing.T) {
	all := []entry{
		filetest.New("a", dtype.Int8, []byte("123"), 3),
		filetest.New("b", dtype.Int8, []byte("4")),
		{Header: file.Header{Name: "a", Type: dtype.Int8, Shape: []int64{2}, Size: 2}, Data: []byte("56")},
	}
	_, err := write(all)
	wantError(t, err, file.ErrDuplicate, 24+9+9+8)
	want := list("b", "a") + tensor(int8Code, "4") + tensor(int8Code, "56", 2)
	if got, err := write(all, params.Options{LastWins: true}); err != nil || got != want {
		t.Errorf("%v, %x", err, got)
	}
}

// TestParts writes data in parts of any size.
func TestParts(t *testing.T) {
	for name, s := range samples(t) {
		all := mustRead(t, s)
		for _, part := range []int{1, 3, 7, 1000} {
			if got := filetest.Write(t, writer, all, part); string(got) != s {
				t.Errorf("%s, parts of %d: %x", name, part, got)
			}
		}
	}
	filetest.Amounts(t, writer)
}

// TestHeadersStay holds a writer to the headers it was made with.
func TestHeadersStay(t *testing.T) {
	var b bytes.Buffer
	h := []file.Header{{Name: "a", Type: dtype.Int8, Shape: []int64{2}}}
	w, err := params.NewWriter(&b, h, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h[0].Shape[0], h[0].Name = 99, "changed"
	if _, err := w.Write([]byte("12")); err != nil || w.Close() != nil || b.String() != list("a")+tensor(int8Code, "12", 2) {
		t.Errorf("%v, %x", err, b.String())
	}
}

// TestNotWritten refuses headers before a byte is written.
func TestNotWritten(t *testing.T) {
	x := func(typ dtype.Type, shape ...int64) []file.Header {
		return []file.Header{{Name: "x", Type: typ, Shape: shape}}
	}
	const at = 32 + 9
	for name, c := range map[string]struct {
		headers []file.Header
		err     error
		offset  int64
	}{
		"vectors":       {x(dtype.Type{Code: dtype.Float32.Code, Bits: 32, Lanes: 4}, 1), file.ErrType, at + 30},
		"no lanes":      {x(dtype.Type{Code: dtype.Float32.Code, Bits: 32}, 1), file.ErrType, at + 30},
		"no type":       {x(dtype.Type{}, 1), file.ErrType, at + 29},
		"int4":          {x(dtype.Type{Code: dtype.Int8.Code, Bits: 4, Lanes: 1}), file.ErrType, at + 29},
		"33 dimensions": {x(dtype.Int8, make([]int64, 33)...), file.ErrFormat, at + 24},
		"negative":      {x(dtype.Int8, 1, -1), file.ErrFormat, at + 40},
		"overflow":      {x(dtype.Float64, 1<<40, 1<<40, 2), file.ErrFormat, at + 40},
		"no such file":  {x(dtype.Int8, math.MaxInt64), file.ErrTooLarge, at + 40},
		"wrong size":    {[]file.Header{{Type: dtype.Int8, Shape: []int64{3}, Size: 4}}, fault.ErrInvalid, 40 + 40},
		"negative size": {[]file.Header{{Type: dtype.Int8, Size: -1}}, fault.ErrInvalid, 40 + 32},
		"second": {
			append(x(dtype.Int8, 5), file.Header{Name: "yy", Type: dtype.Int8, Shape: []int64{-1}}),
			file.ErrFormat, 32 + 9 + 10 + 53 + 32,
		},
		"together": {
			[]file.Header{{Name: "x", Type: dtype.Int8, Shape: []int64{1 << 62}}, {Name: "y", Type: dtype.Int8, Shape: []int64{1 << 62}}},
			file.ErrTooLarge, 32 + 18 + 48 + 1<<62 + 40,
		},
	} {
		var b bytes.Buffer
		w, err := params.NewWriter(&b, c.headers, params.Options{})
		if w != nil || b.Len() != 0 {
			t.Errorf("%s: wrote %x", name, b.String())
		}
		wantError(t, err, c.err, c.offset)
	}
	if _, err := params.NewWriter(nil, nil, params.Options{}); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}

func TestWrongAmount(t *testing.T) {
	var b bytes.Buffer
	h := []file.Header{{Name: "a", Type: dtype.Int8, Shape: []int64{2}}, {Name: "b", Type: dtype.Int8, Shape: []int64{2}}}
	w, err := params.NewWriter(&b, h, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("12345")); n != 0 || !errors.Is(err, file.ErrFormat) || b.Len() != len(list("a", "b")) {
		t.Errorf("%d, %v, %d bytes", n, err, b.Len())
	}
	if n, err := w.Write([]byte("123")); n != 3 || err != nil { // the refused call changed nothing
		t.Fatal(n, err)
	}
	err = w.Close()
	wantError(t, err, file.ErrTruncated, int64(b.Len()))
	if err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Error(err)
	}
	if _, err := w.Write([]byte("4")); err != nil || w.Close() != nil || w.Close() != nil {
		t.Error(err)
	}
	if want := list("a", "b") + tensor(int8Code, "12", 2) + tensor(int8Code, "34", 2); b.String() != want {
		t.Errorf("%x", b.String())
	}
	_, err = w.Write(nil)
	wantError(t, err, fault.ErrClosed, int64(b.Len()))
}

// TestFailingWriter fails at each byte of a file.
func TestFailingWriter(t *testing.T) {
	full := filetest.ErrBroken
	s := samples(t)["two"]
	filetest.BrokenOutputs(t, "params", writer, mustRead(t, s), len(s))
	// The header of a tensor without data is written by Close.
	empty := []file.Header{{Name: "e", Type: dtype.Int8, Shape: []int64{0}}}
	w, err := params.NewWriter(&filetest.Limited{Left: len(list("e")) + 5, Err: full}, empty, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, w.Close(), full, int64(len(list("e"))+5))
}

// TestManyNames writes a list that does not fit one write.
func TestManyNames(t *testing.T) {
	var all []entry
	for i := range 3000 {
		all = append(all, filetest.New(strings.Repeat("n", 1+i%50)+string(rune('0'+i)), dtype.Int8, []byte{byte(i)}))
	}
	s, err := write(all)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range mustRead(t, s, params.Options{Strict: true}) {
		if e.Name != all[i].Name || e.Data[0] != byte(i) {
			t.Fatalf("%d: %+v", i, e)
		}
	}
}
