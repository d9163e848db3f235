// SPDX-License-Identifier: Apache-2.0

package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	oracle "github.com/nlpodyssey/safetensors"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// types are the format's names, in the order of the reference implementation.
var types = []struct {
	name string
	typ  dtype.Type
}{
	{"BOOL", dtype.Bool8},
	{"U8", dtype.Uint8},
	{"I8", dtype.Int8},
	{"F8_E5M2", dtype.Type{Code: 12, Bits: 8, Lanes: 1}},
	{"F8_E4M3", dtype.Type{Code: 10, Bits: 8, Lanes: 1}},
	{"F8_E8M0", dtype.Type{Code: 14, Bits: 8, Lanes: 1}},
	{"F8_E4M3FNUZ", dtype.Type{Code: 11, Bits: 8, Lanes: 1}},
	{"F8_E5M2FNUZ", dtype.Type{Code: 13, Bits: 8, Lanes: 1}},
	{"I16", dtype.Int16},
	{"U16", dtype.Uint16},
	{"F16", dtype.Float16},
	{"BF16", dtype.BFloat16},
	{"I32", dtype.Int32},
	{"U32", dtype.Uint32},
	{"F32", dtype.Float32},
	{"C64", dtype.Complex64},
	{"F64", dtype.Float64},
	{"I64", dtype.Int64},
	{"U64", dtype.Uint64},
}

// st builds a file by hand.
func st(header, data string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

type tensor = filetest.Tensor

var (
	typed  = filetest.Typed
	frugal = filetest.Frugal
	same   = filetest.Same
)

// writer makes files.
func writer(metadata map[string]string) filetest.Maker {
	return func(w io.Writer, h []file.Header) (file.Writer, error) { return safetensors.NewWriter(w, h, metadata) }
}

func write(t testing.TB, v []tensor, chunk int, metadata map[string]string) []byte {
	t.Helper()
	return filetest.Write(t, writer(metadata), v, chunk)
}

// readAll reads a file to its end, or to its first error.
func readAll(r io.Reader) (v []tensor, metadata map[string]string, err error) {
	s, err := safetensors.NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	if v, err = filetest.ReadAll(s); err != nil {
		return v, nil, err
	}
	return v, s.Metadata(), nil
}

// plain hides everything but Read.
type plain struct{ io.Reader }

// sized is a reader that says how much it holds.
type sized struct {
	io.Reader
	n int
}

func (s sized) Len() int { return s.n }

// The bytes are those of the reference implementation's own tests.
func TestReferenceBytes(t *testing.T) {
	six := binary.LittleEndian.AppendUint32(nil, 0)
	for _, bits := range []uint32{0x3f800000, 0x40000000, 0x40400000, 0x40800000, 0x40a00000} {
		six = binary.LittleEndian.AppendUint32(six, bits)
	}
	for _, c := range []struct {
		v    []tensor
		meta map[string]string
		want string
	}{
		{
			[]tensor{filetest.New("attn.0", dtype.Float32, six, 1, 2, 3)},
			nil,
			"\x40\x00\x00\x00\x00\x00\x00\x00" + `{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}` + string(six),
		},
		{
			[]tensor{filetest.New("attn0", dtype.Float32, six, 1, 1, 2, 3)},
			nil,
			"\x48\x00\x00\x00\x00\x00\x00\x00" + `{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       ` + string(six),
		},
		{nil, nil, "\x08\x00\x00\x00\x00\x00\x00\x00{}      "},
		{
			nil,
			map[string]string{"framework": "pt"},
			"\x28\x00\x00\x00\x00\x00\x00\x00" + `{"__metadata__":{"framework":"pt"}}     `,
		},
	} {
		got := write(t, c.v, 5, c.meta)
		if string(got) != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
		back, metadata, err := readAll(bytes.NewReader(got))
		if err != nil || (metadata != nil) != (c.meta != nil) {
			t.Error(metadata, err)
		}
		same(t, back, c.v, got)
	}
}

func all() []tensor {
	var v []tensor
	for i, c := range types {
		data := bytes.Repeat([]byte{byte(i), 1, 2}, 2*c.typ.Size())
		v = append(v, filetest.New("t."+c.name, c.typ, data, 2, 3))
	}
	return append(v,
		filetest.New("", dtype.Float32, []byte("1234")),
		filetest.New("\"\\\x00\t<&>\u2028é", dtype.Uint8, []byte("x"), 1),
		filetest.New("none", dtype.Int64, nil, math.MaxInt64, 0, math.MaxInt64),
		filetest.New("none too", dtype.Int64, nil, 0))
}

func TestRoundTrip(t *testing.T) {
	want := map[string]string{"b": "é\"", "a": "", "": "x"}
	data := write(t, all(), 7, want)
	if !bytes.Equal(data, write(t, all(), 1000, want)) {
		t.Error("equal input, other bytes")
	}
	if n := 8 + binary.LittleEndian.Uint64(data); n%8 != 0 {
		t.Errorf("data start at %d", n)
	}
	seeker, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer seeker.Close()
	if _, err := seeker.WriteString("before" + string(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := seeker.Seek(6, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]io.Reader{
		"seeker": seeker, "Len": bytes.NewBuffer(slices.Clone(data)), "stream": plain{bytes.NewReader(data)},
		"one byte": iotest.OneByteReader(bytes.NewReader(data)), "data and EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		got, metadata, err := readAll(in)
		if err != nil || !maps.Equal(metadata, want) {
			t.Errorf("%s: %v, %v", name, metadata, err)
		}
		same(t, got, all(), data)
	}
}

// Tensors that nobody reads, or not to their end, are passed over.
func TestSkip(t *testing.T) {
	data := write(t, all(), 1000, nil)
	for name, in := range map[string]io.Reader{"seeker": bytes.NewReader(data), "stream": plain{bytes.NewReader(data)}} {
		s, err := safetensors.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range all() {
			h, err := s.Next()
			if err != nil || h.Name != want.Name {
				t.Fatalf("%s: %+v, %v", name, h, err)
			}
			b := make([]byte, min(i, len(want.Data)))
			if _, err := io.ReadFull(s, b); err != nil || !bytes.HasPrefix(want.Data, b) {
				t.Fatalf("%s, %s: %x, %v", name, h.Name, b, err)
			}
		}
		for range 2 {
			if _, err := s.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: after the last: %v", name, err)
			}
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: Read after the last: %v", name, err)
			}
		}
	}
}

// view is a tensor of the other implementation.
type view struct {
	typ   oracle.DType
	shape []uint64
	data  []byte
}

func (v view) DType() oracle.DType { return v.typ }
func (v view) Shape() []uint64     { return v.shape }
func (v view) Data() []byte        { return v.data }
func (v view) DataLen() uint64     { return uint64(len(v.data)) }

// TestOracle compares with another implementation, both ways. It has no types of 8 bits but integers, and no complex ones.
func TestOracle(t *testing.T) {
	var ours []tensor
	theirs := map[string]view{}
	for _, one := range all() {
		typ, err := oracle.ParseDType(strings.TrimPrefix(one.Name, "t."))
		if err != nil {
			continue
		}
		theirs[one.Name] = view{typ, []uint64{2, 3}, one.Data}
		ours = append(ours, one)
	}
	if len(ours) != 13 {
		t.Errorf("%d types in common", len(ours))
	}
	metadata := map[string]string{"one": "text"}
	want, err := oracle.Serialize(theirs, metadata)
	if err != nil {
		t.Fatal(err)
	}
	back, m, err := readAll(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(ours, func(a, b tensor) int { // as the reference implementation does
		at := func(name string) int {
			return slices.IndexFunc(back, func(x tensor) bool { return x.Name == name })
		}
		return at(a.Name) - at(b.Name)
	})
	got := write(t, ours, 1000, metadata)
	parsed, err := oracle.Deserialize(got)
	if err != nil || parsed.Len() != len(ours) {
		t.Fatalf("%d tensors, %v", parsed.Len(), err)
	}
	for name, v := range theirs {
		w, ok := parsed.Tensor(name)
		if !ok || w.DType() != v.typ || !slices.Equal(w.Shape(), v.shape) || !bytes.Equal(w.Data(), v.data) {
			t.Errorf("%s: %+v, want %+v", name, w, v)
		}
	}
	// The order of the keys, which says nothing, is all that differs.
	if n := 8 + binary.LittleEndian.Uint64(want); len(got) != len(want) || !bytes.Equal(got[n:], want[n:]) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if !maps.Equal(m, metadata) {
		t.Error(m)
	}
	same(t, back, ours, want)
}

// A header may have its tensors in any order; the reader's is that of the data.
func TestOrder(t *testing.T) {
	data := st(`{ "c" : {"data_offsets":[4,4],"shape":[0],"dtype":"F64"},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},
		"a":{"shape":[],"dtype":"F32","data_offsets":[0,4]}, "__metadata__":{} }`+" \n\t ", "1234ab")
	got, metadata, err := readAll(strings.NewReader(data))
	if err != nil || metadata == nil {
		t.Fatal(metadata, err)
	}
	same(t, got, []tensor{
		filetest.New("a", dtype.Float32, []byte("1234")),
		filetest.New("c", dtype.Float64, nil, 0),
		filetest.New("b", dtype.Uint8, []byte("ab"), 2),
	}, []byte(data))
}

func TestWriterRefuses(t *testing.T) {
	filetest.RefusesAll(t, writer(nil))
	for _, typ := range []dtype.Type{dtype.Complex128, {Code: 17, Bits: 4, Lanes: 1}} {
		filetest.Refuses(t, writer(nil), file.ErrType, file.Header{Name: "a", Type: typ})
	}
	for _, name := range []string{"\xff", "__metadata__"} {
		filetest.Refuses(t, writer(nil), file.ErrFormat, file.Header{Name: name, Type: dtype.Int8})
	}
	many := make([]file.Header, 100)
	for i := range many {
		many[i] = file.Header{Name: strings.Repeat("x", 1<<20) + string(rune('0'+i)), Type: dtype.Int8}
	}
	filetest.Refuses(t, writer(nil), file.ErrTooLarge, many...)
	for name, c := range map[string]struct {
		meta map[string]string
		want error
	}{
		"metadata key": {map[string]string{"\xff": ""}, file.ErrFormat},
		"metadata":     {map[string]string{"": "\xff"}, file.ErrFormat},
	} {
		var b bytes.Buffer
		if w, err := safetensors.NewWriter(&b, nil, c.meta); !errors.Is(err, c.want) || b.Len() != 0 || w != nil {
			t.Errorf("%s: %v, %d bytes written", name, err, b.Len())
		}
	}
	if _, err := safetensors.NewWriter(nil, nil, nil); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no output: %v", err)
	}
	old := []tensor{filetest.New("a", dtype.Bool1, []byte{1})}
	if got, _, err := readAll(bytes.NewReader(write(t, old, 1, nil))); err != nil || got[0].Type != dtype.Bool8 {
		t.Errorf("uint1: %v, %v", got, err)
	}
}

func TestWriterAmounts(t *testing.T) {
	b := filetest.Amounts(t, writer(nil))
	if _, err := new(safetensors.Reader).Next(); !errors.Is(err, io.EOF) {
		t.Errorf("of nothing: %v", err)
	}
	if got, _, err := readAll(bytes.NewReader(b)); err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, []byte{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestErrorsPass(t *testing.T) {
	data := write(t, all(), 1000, nil)
	filetest.BrokenOutputs(t, "safetensors", writer(nil), all(), len(data))
	for at := range data {
		for _, size := range []int{0, len(data)} { // 0: unknown
			in := sized{io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(filetest.ErrBroken)), size}
			_, _, err := readAll(in)
			filetest.WantError(t, "safetensors", err, filetest.ErrBroken, int64(at))
		}
	}
}
