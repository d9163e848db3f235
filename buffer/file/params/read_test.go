// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestAnnotated(t *testing.T) {
	if len(annotated) != 85 || annotated != list("s")+tensor(int32Code, "\x03\x0A\x11\x18") {
		t.Fatal("the sample is not what it should be")
	}
	want := entry{Header: file.Header{Name: "s", Type: dtype.Int32, Offset: 81, Size: 4}, Data: []byte{3, 10, 17, 24}}
	if got := mustRead(t, annotated, params.Options{Strict: true}); !sameEntries(got, []entry{want}) || len(got[0].Shape) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestEmpty(t *testing.T) {
	if len(list()) != 32 {
		t.Fatal("the smallest file has 32 bytes")
	}
	r, err := params.NewReader(strings.NewReader(list()), params.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	if n, err := r.Trailing(); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// TestRealFiles lists dictionaries that TVM wrote.
func TestRealFiles(t *testing.T) {
	all := samples(t)
	v := func(f ...float32) (b []byte) {
		for _, x := range f {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	got := mustRead(t, all["dlr_2in1out_v1.params"], params.Options{Strict: true})
	want := []entry{
		{Header: file.Header{Name: "data1", Type: dtype.Float32, Shape: []int64{2}, Offset: 106, Size: 8}, Data: v(0.61055517, 0.880275786)},
		{Header: file.Header{Name: "data2", Type: dtype.Float32, Shape: []int64{2}, Offset: 162, Size: 8}, Data: v(0.543643415, -0.101018570)},
	}
	if !sameEntries(got, want) {
		t.Errorf("%+v", got)
	}
	headers, info, err := scan(strings.NewReader(all["dlr_4in2out_v2.params"]), params.Options{})
	if err != nil || info != (extent{Size: 316}) {
		t.Fatal(info, err)
	}
	for i, want := range []file.Header{
		{Name: "data4", Shape: []int64{3}, Offset: 132, Size: 12},
		{Name: "data1", Shape: []int64{2}, Offset: 192, Size: 8},
		{Name: "data3", Shape: []int64{3}, Offset: 248, Size: 12},
		{Name: "data2", Shape: []int64{2}, Offset: 308, Size: 8},
	} {
		h := headers[i]
		if h.Name != want.Name || h.Type != dtype.Float32 || !slices.Equal(h.Shape, want.Shape) || h.Offset != want.Offset || h.Size != want.Size {
			t.Errorf("%d: %+v", i, h)
		}
	}
}

// TestAccepted has a row for everything that is odd and still read.
func TestAccepted(t *testing.T) {
	one := func(code, data string, shape ...int64) string { return list("x") + tensor(code, data, shape...) }
	replace := func(at int, with string) string { return annotated[:at] + with + annotated[at+len(with):] }
	for name, c := range map[string]struct {
		file  string
		typ   dtype.Type
		shape []int64
		data  string
	}{
		"reserved of the list":      {replace(8, "reserved"), dtype.Int32, nil, "\x03\x0A\x11\x18"},
		"reserved of the tensor":    {replace(49, "reserved"), dtype.Int32, nil, "\x03\x0A\x11\x18"},
		"device id":                 {replace(61, "\xff\xff\xff\xff"), dtype.Int32, nil, "\x03\x0A\x11\x18"},
		"unknown code":              {one("\x63\x08\x01\x00", "ab", 2), dtype.Type{Code: 99, Bits: 8, Lanes: 1}, []int64{2}, "ab"},
		"no elements, first":        {one(float32Code, "", 0, 3), dtype.Float32, []int64{0, 3}, ""},
		"no elements, last":         {one(float32Code, "", 3, 0), dtype.Float32, []int64{3, 0}, ""},
		"no elements, large":        {one(float32Code, "", 1<<62, 1<<62, 0), dtype.Float32, []int64{1 << 62, 1 << 62, 0}, ""},
		"bool of TVM from 0.7":      {one("\x01\x01\x01\x00", "\x00\x01\x01", 3), dtype.Bool1, []int64{3}, "\x00\x01\x01"},
		"bool of TVM from 0.23":     {one("\x06\x08\x01\x00", "\x00\x01\x01", 3), dtype.Bool8, []int64{3}, "\x00\x01\x01"},
		"saved from a view at +4":   {one(int8Code, "\x02\x03\x04\x05\x06", 5), dtype.Int8, []int64{5}, "\x02\x03\x04\x05\x06"},
		"float8":                    {one("\x0a\x08\x01\x00", "f", 1), dtype.Type{Code: 10, Bits: 8, Lanes: 1}, []int64{1}, "f"},
		"bfloat16":                  {one("\x04\x10\x01\x00", "bf"), dtype.BFloat16, nil, "bf"},
		"complex128":                {one("\x05\x80\x01\x00", "0123456789abcdef"), dtype.Complex128, nil, "0123456789abcdef"},
		"32 dimensions":             {one(int8Code, "x", slices.Repeat([]int64{1}, 32)...), dtype.Int8, slices.Repeat([]int64{1}, 32), "x"},
		"stale bytes after the end": {annotated + "stale string", dtype.Int32, nil, "\x03\x0A\x11\x18"},
	} {
		for how, read := range map[string]func(string, ...params.Options) ([]entry, error){"sized": readString, "stream": readStream} {
			got, err := read(c.file)
			if err != nil || len(got) != 1 {
				t.Errorf("%s, %s: %v, %v", name, how, got, err)
				continue
			}
			if g := got[0]; g.Type != c.typ || !slices.Equal(g.Shape, c.shape) || string(g.Data) != c.data || g.Size != int64(len(c.data)) {
				t.Errorf("%s, %s: %+v", name, how, g)
			}
		}
	}
}

func TestNames(t *testing.T) {
	// A key is kept as it is: empty, with NUL (which CVM's C interface would cut), of no encoding, in the file's order.
	names := []string{"z", "", "n\x00l", "\xff\xfe", "a", "ä"}
	s := list(names...) + strings.Repeat(tensor(int8Code, "?"), len(names))
	r, err := params.NewReader(strings.NewReader(s), params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := filetest.ReadAll(r)
	if err != nil || len(all) != len(names) {
		t.Fatal(all, err)
	}
	for i, e := range all {
		if e.Name != names[i] {
			t.Errorf("%d: %q", i, e.Name)
		}
	}
}

func TestLastWins(t *testing.T) {
	s := list("a", "b", "a") + tensor(int8Code, "123", 3) + tensor(int8Code, "4") + tensor(int8Code, "56", 2)
	for _, read := range []func(string, ...params.Options) ([]entry, error){readString, readStream} {
		got, err := read(s, params.Options{LastWins: true})
		if err != nil || len(got) != 2 || got[0].Name != "b" || string(got[0].Data) != "4" || got[1].Name != "a" || string(got[1].Data) != "56" {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = read(s)
		wantError(t, err, file.ErrDuplicate, 24+9+9+8)
		if err == nil || !strings.Contains(err.Error(), "names 0 and 2") {
			t.Errorf("no indices in %v", err)
		}
	}
	headers, _, err := scan(strings.NewReader(s), params.Options{LastWins: true})
	if err != nil || len(headers) != 2 {
		t.Error(headers, err)
	}
	// The tensor that loses is still checked.
	_, err = readString(strings.Replace(s, int8Code, "\x00\x0c\x01\x00", 1), params.Options{LastWins: true})
	wantError(t, err, file.ErrType, 59+29)
}

func TestTrailing(t *testing.T) {
	for _, tail := range []string{"", "x", "stale string", strings.Repeat("x", 100_000)} {
		s := annotated + tail
		for how, open := range map[string]func() io.Reader{
			"sized":  func() io.Reader { return strings.NewReader(s) },
			"stream": func() io.Reader { return io.MultiReader(strings.NewReader(s)) },
		} {
			r, err := params.NewReader(open(), params.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Trailing(); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("before the end: %v", err)
			}
			if _, err := filetest.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if n, err := r.Trailing(); n != int64(len(tail)) || err != nil {
					t.Errorf("%s: %d, %v, want %d", how, n, err, len(tail))
				}
			}
			_, info, err := scan(open(), params.Options{})
			if info != (extent{Size: 85, Trailing: int64(len(tail))}) || err != nil {
				t.Errorf("%s: %+v, %v", how, info, err)
			}
			_, _, err = scan(open(), params.Options{Strict: true})
			if tail == "" {
				if err != nil {
					t.Error(err)
				}
				continue
			}
			wantError(t, err, file.ErrFormat, 85)
		}
		// An end with the dictionary hides what follows.
		if _, info, err := scan(io.NewSectionReader(strings.NewReader(s), 0, 85), params.Options{Strict: true}); info.Trailing != 0 || err != nil {
			t.Error(info, err)
		}
	}
}

// TestReaders holds what is read to be the same however the bytes come.
func TestReaders(t *testing.T) {
	for name, s := range samples(t) {
		want := mustRead(t, s)
		for how, r := range map[string]io.Reader{
			"one byte": iotest.OneByteReader(strings.NewReader(s)),
			"half":     iotest.HalfReader(strings.NewReader(s)),
			"data err": iotest.DataErrReader(strings.NewReader(s)),
			"stream":   io.MultiReader(strings.NewReader(s)),
			"section":  io.NewSectionReader(strings.NewReader("before"+s), 6, int64(len(s))),
		} {
			p, err := params.NewReader(r, params.Options{})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, how, err)
			}
			if got, err := filetest.ReadAll(p); err != nil || !sameEntries(got, want) {
				t.Errorf("%s, %s: %v, %v", name, how, got, err)
			}
		}
	}
}

// TestPartly reads some of each tensor's data and goes on.
func TestPartly(t *testing.T) {
	data := strings.Repeat("0123456789", 1000)
	s := list("a", "b", "c") + strings.Repeat(tensor(int8Code, data, 10, 1000), 3)
	for how, src := range map[string]io.Reader{"seeker": strings.NewReader(s), "stream": io.MultiReader(strings.NewReader(s))} {
		r, err := params.NewReader(src, params.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("before Next: %d, %v", n, err)
		}
		for i, part := range []int{10, 9000, 0} {
			h, err := r.Next()
			if err != nil || h.Offset != int64(24+3*9+8+i*10056+56) {
				t.Fatalf("%s: %+v, %v", how, h, err)
			}
			b := make([]byte, part)
			if _, err := io.ReadFull(r, b); err != nil || string(b) != data[:part] {
				t.Errorf("%s: %v", how, err)
			}
		}
		if n, err := r.Read(nil); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %d, %v", n, err)
		}
	}
}

func TestStartedLater(t *testing.T) {
	src := strings.NewReader("something before" + annotated)
	if _, err := src.Seek(16, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	headers, info, err := scan(src, params.Options{Strict: true})
	if err != nil || len(headers) != 1 || headers[0].Offset != 81 || info.Size != 85 {
		t.Errorf("%+v, %+v, %v", headers, info, err)
	}
}
