// SPDX-License-Identifier: Apache-2.0

package command

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// dictionary is one that TVM wrote.
const dictionary = "../../buffer/file/params/testdata/dlr_4in2out_v2.params"

// tensor is a header and data in the words of encoding/binary.
type tensor struct {
	name  string
	typ   dtype.Type
	shape []int64
	data  any
}

// pack writes a file of tensors, in the format of the name's extension.
func pack(t *testing.T, name string, tensors ...tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	kind, err := formatOf(path, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var headers []file.Header
	for _, x := range tensors {
		headers = append(headers, file.Header{Name: x.name, Type: x.typ, Shape: x.shape})
	}
	var out bytes.Buffer
	w, err := kind.make(&out, headers, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tensors {
		if err := binary.Write(w, binary.LittleEndian, x.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// some are tensors that all formats can hold.
var some = []tensor{
	{"weight", dtype.Float32, []int64{2, 3}, []float32{1, 2, 3, 4, 5, 6}},
	{"scale", dtype.Float64, nil, 0.1},
	{"empty", dtype.Int8, []int64{3, 0}, []int8{}},
	{"layer/ids", dtype.Int64, []int64{2}, []int64{-1, 1 << 40}},
	{"mask", dtype.Bool8, []int64{3}, []byte{1, 0, 1}},
}

// fileOf is a new file.
func fileOf(t *testing.T, dir, name, data string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func slurp(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestParamsList(t *testing.T) {
	want := `NAME   DTYPE    SHAPE  OFFSET  BYTES
data4  float32  3      132     12
data1  float32  2      192     8
data3  float32  3      248     12
data2  float32  2      308     8
`
	if got := must(t, "params", "list", dictionary); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(must(t, "params", "list", dictionary, "--json", "--sha256")), &got); err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	sum := sha256.Sum256([]byte(slurp(t, dictionary)[132:144]))
	first := map[string]any{
		"name": "data4", "dtype": "float32", "shape": []int{3}, "offset": 132, "nbytes": 12, "sha256": hex.EncodeToString(sum[:]),
	}
	if a, b := mustJSON(t, got[0]), mustJSON(t, first); a != b {
		t.Errorf("%s, want %s", a, b)
	}
	if got := must(t, "params", "list", pack(t, "none.params"), "--json"); got != "[]\n" {
		t.Errorf("%q", got)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestParamsNames lists names that a terminal or JSON could not take.
func TestParamsNames(t *testing.T) {
	one := func(name string) tensor { return tensor{name, dtype.Int8, nil, []int8{7}} }
	path := pack(t, "x.params", one("\x1b[31m"), one("\xff\xfe"), one(""), one("two words"), one("Gewicht"))
	text := must(t, "params", "list", path)
	for _, want := range []string{`"\x1b[31m"`, `"\xff\xfe"`, "\n\"\" ", `"two words"`, "\nGewicht "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	var got []listed
	if err := json.Unmarshal([]byte(must(t, "params", "list", path, "--json")), &got); err != nil || len(got) != 5 {
		t.Fatal(got, err)
	}
	if got[0].Name != "\x1b[31m" || got[0].NameBase64 != "" || got[1].Name != "\ufffd" || got[1].NameBase64 != "//4=" {
		t.Errorf("%+v", got)
	}
	if text := must(t, "params", "get", path, "\xff\xfe"); text != "  7\n\"\\xff\\xfe\": scalar int8, 1 bytes\n" {
		t.Errorf("%q", text)
	}
}

func TestParamsGet(t *testing.T) {
	in := pack(t, "in.params", some...)
	out := filepath.Join(t.TempDir(), "out.npy")
	if text := must(t, "params", "get", in, "weight"); text != "  1  2  3\n  4  5  6\nweight: 2x3 float32, 24 bytes\n" {
		t.Errorf("%q", text)
	}
	if text := must(t, "params", "get", in, "empty"); text != "empty: 3x0 int8, 0 bytes\n" {
		t.Errorf("%q", text)
	}
	if text := must(t, "params", "get", in, "layer/ids", "-o", out); text != "layer/ids: 2 int64, 16 bytes\n" {
		t.Errorf("%q", text)
	}
	if h, v := read[int64](t, out); h.Type != dtype.Int64 || !slices.Equal(v, []int64{-1, 1 << 40}) {
		t.Errorf("%v %v", h, v)
	}
	must(t, "params", "get", in, "scale", "-o", out)
	if h, v := read[float64](t, out); len(h.Shape) != 0 || !slices.Equal(v, []float64{0.1}) {
		t.Errorf("%v %v", h, v)
	}
	var l listed
	if err := json.Unmarshal([]byte(must(t, "params", "get", in, "weight", "-o", out, "--json")), &l); err != nil {
		t.Fatal(err)
	}
	if l.Name != "weight" || l.DType != "float32" || !slices.Equal(l.Shape, []int64{2, 3}) || l.Nbytes != 24 {
		t.Errorf("%+v", l)
	}
	// What is written is what mul reads.
	if text := must(t, "eval", "A+0", "-i", "A="+out, "--driver", "cpu"); !strings.HasPrefix(text, "  1  2  3\n  4  5  6\n") {
		t.Errorf("%q", text)
	}
}

// TestParamsPrint prints an element of every type, and a large tensor by its corners.
func TestParamsPrint(t *testing.T) {
	bits := func(code uint8, n uint8) dtype.Type { return dtype.Type{Code: code, Bits: n, Lanes: 1} }
	for want, x := range map[string]tensor{
		"true":       {typ: dtype.Bool8, data: []byte{1}},
		"false":      {typ: dtype.Bool1, data: []byte{0}},
		"-128":       {typ: dtype.Int8, data: int8(-128)},
		"255":        {typ: dtype.Uint8, data: uint8(255)},
		"-32768":     {typ: dtype.Int16, data: int16(-32768)},
		"65535":      {typ: dtype.Uint16, data: uint16(65535)},
		"-3":         {typ: dtype.Int32, data: int32(-3)},
		"4294967295": {typ: dtype.Uint32, data: uint32(math.MaxUint32)},
		"-4":         {typ: dtype.Int64, data: int64(-4)},
		"1099511627776": {
			typ: dtype.Uint64, data: uint64(1 << 40),
		},
		"1.5":     {typ: dtype.Float16, data: uint16(0x3e00)},
		"-2":      {typ: dtype.BFloat16, data: uint16(0xc000)},
		"0.1":     {typ: dtype.Float32, data: float32(0.1)},
		"1e-300":  {typ: dtype.Float64, data: 1e-300},
		"1+2j":    {typ: dtype.Complex64, data: complex64(complex(1, 2))},
		"-1+0.1j": {typ: dtype.Complex128, data: complex(-1, 0.1)},
		"0x2a":    {typ: bits(10, 8), data: byte(0x2a)},
		"0x0102":  {typ: bits(99, 16), data: []byte{1, 2}},
	} {
		x.name = "x"
		text := must(t, "params", "get", pack(t, "in.params", x), "x")
		if first, _, _ := strings.Cut(text, "\n"); strings.TrimSpace(first) != want {
			t.Errorf("%v: %q, want %s", x.typ, text, want)
		}
	}
	large := make([]int16, 4*25*50)
	for i := range large {
		large[i] = int16(i)
	}
	text := must(t, "params", "get", pack(t, "in.params", tensor{"x", dtype.Int16, []int64{4, 25, 50}, large}), "x")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != shown+2 || strings.Count(lines[shown/2], "...") != shown+1 {
		t.Fatalf("printed %q", text)
	}
	for i, want := range map[int]string{0: "0 1 2 3 4 ... 45 46 47 48 49", 1: "50 51 52 53 54 ... 95 96 97 98 99", 10: "4950 4951 4952 4953 4954 ... 4995 4996 4997 4998 4999"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d: %q", i, got)
		}
	}
}

func TestParamsVerify(t *testing.T) {
	if text := must(t, "params", "verify", dictionary, "--strict"); text != "tensors: 4, bytes of data: 40, bytes after the last tensor: 0\n" {
		t.Errorf("%q", text)
	}
	for _, name := range []string{"a.params", "a.npz", "a.safetensors"} {
		text := must(t, "params", "verify", pack(t, name, some...), "--json", "--strict")
		if text != `{"tensors":5,"nbytes":51,"trailing":0}`+"\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
	stale := filepath.Join(t.TempDir(), "stale.params")
	if err := os.WriteFile(stale, []byte(slurp(t, dictionary)+"stale string"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := must(t, "params", "verify", stale); text != "tensors: 4, bytes of data: 40, bytes after the last tensor: 12\n" {
		t.Errorf("%q", text)
	}
	if o := sublet("params", "verify", stale, "--strict"); o.status != 1 || !strings.Contains(o.stderr, "byte 316: malformed file: 12 bytes after") {
		t.Errorf("%+v", o)
	}
	// Each format tells that its last data are damaged or missing.
	for _, name := range []string{"a.params", "a.npz", "a.safetensors"} {
		path := pack(t, name, some...)
		whole := slurp(t, path)
		for _, n := range []int{0, 7, len(whole) / 2, len(whole) - 1} {
			if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
				t.Fatal(err)
			}
			if o := sublet("params", "verify", path); o.status != 1 || !strings.Contains(o.stderr, path+": ") {
				t.Errorf("%s, %d of %d bytes: %+v", name, n, len(whole), o)
			}
		}
	}
	path := pack(t, "a.npz", some...)
	damaged := []byte(slurp(t, path))
	damaged[bytes.LastIndex(damaged, []byte{1, 0, 1})]++ // the mask
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, map[string]failing{"checksum": {"ErrFormat", []string{"params", "verify", path}}})
}

func TestParamsErrors(t *testing.T) {
	dir := t.TempDir()
	in := pack(t, "in.params", append(slices.Clone(some),
		tensor{"brain", dtype.BFloat16, nil, uint16(0)}, tensor{"vast", dtype.Float64, []int64{2}, []float64{1, 1e300}})...)
	text := filepath.Join(dir, "text.params")
	folder := filepath.Join(dir, "folder.params")
	if err := errors.Join(os.WriteFile(text, []byte("no dictionary"), 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.params")
	out := func(name string) string { return filepath.Join(dir, name) }
	fails(t, map[string]failing{
		"no such command":         {"ErrUsage", []string{"params", "lost"}},
		"list nothing":            {"ErrUsage", []string{"params", "list"}},
		"list two":                {"ErrUsage", []string{"params", "list", in, in}},
		"unknown extension":       {"ErrUsage", []string{"params", "list", "x.onnx"}},
		"unknown output":          {"ErrUsage", []string{"params", "convert", in, "x.onnx"}},
		"missing file":            {"ErrNotExist", []string{"params", "list", none}},
		"missing input":           {"ErrNotExist", []string{"params", "convert", none, out("o.npz")}},
		"missing archive":         {"ErrNotExist", []string{"params", "verify", out("none.npz")}},
		"folder":                  {"Error", []string{"params", "list", folder}},
		"no dictionary":           {"ErrFormat", []string{"params", "list", text}},
		"get of no dictionary":    {"ErrFormat", []string{"params", "get", text, "x"}},
		"no such tensor":          {"ErrName", []string{"params", "get", in, "x"}},
		"type without array":      {"ErrType", []string{"params", "get", in, "brain", "-o", out("o.npy")}},
		"get into no folder":      {"ErrNotExist", []string{"params", "get", in, "scale", "-o", filepath.Join(none, "o.npy")}},
		"type without archive":    {"ErrType", []string{"params", "convert", in, out("o.npz")}},
		"convert into no folder":  {"ErrNotExist", []string{"params", "convert", in, filepath.Join(none, "o.npz")}},
		"cast too large":          {"ErrOverflow", []string{"params", "convert", in, out("o.safetensors"), "--cast"}},
		"convert from a device":   {"ErrTruncated", []string{"params", "convert", device(t, "null.params"), out("o.npz")}},
		"archive of a device":     {"Error", []string{"params", "list", device(t, "null.npz")}},
		"verify a device":         {"ErrTruncated", []string{"params", "verify", device(t, "null.params")}},
		"verify a cut dictionary": {"ErrTruncated", []string{"params", "verify", cut(t, in)}},
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// The tensor is named.
	for name, args := range map[string][]string{
		"brain": {"params", "convert", in, out("o.npz")},
		"vast":  {"params", "convert", in, out("o.safetensors"), "--cast"},
	} {
		if o := sublet(args...); !strings.Contains(o.stderr, `"`+name+`"`) {
			t.Errorf("%q does not name %s", o.stderr, name)
		}
	}
}

// device is a link to something that is no file.
func device(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// cut is a file without its last byte.
func cut(t *testing.T, path string) string {
	t.Helper()
	b := slurp(t, path)
	short := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(short, []byte(b[:len(b)-1]), 0o600); err != nil {
		t.Fatal(err)
	}
	return short
}

func TestParamsHelp(t *testing.T) {
	if text := must(t, "params"); !strings.Contains(text, "convert") {
		t.Errorf("%q", text)
	}
}

// TestParamsFortran reads an archive's array in Fortran order row by row.
func TestParamsFortran(t *testing.T) {
	one := save(t, npy.Header{Type: dtype.Float32, Fortran: true, Shape: []int64{2, 3}}, []float32{1, 2, 3, 4, 5, 6})
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, zipped(t, "x.npy", slurp(t, one)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := must(t, "params", "get", path, "x"); text != "  1  3  5\n  2  4  6\nx: 2x3 float32, 24 bytes\n" {
		t.Errorf("%q", text)
	}
	if text := must(t, "params", "list", path); !strings.Contains(text, "x     float32  2x3    -       24\n") {
		t.Errorf("%q", text)
	}
}

// zipped is an archive of one file.
func zipped(t *testing.T, name, data string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(data))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestParamsProgress moves the bar by what is read of a file.
func TestParamsProgress(t *testing.T) {
	for _, name := range []string{"a.params", "a.npz", "a.safetensors"} {
		path := pack(t, name, tensor{"x", dtype.Int8, []int64{3 << 20}, make([]int8, 3<<20)})
		var drawn lockedBuffer
		f := &archive{app: &app{progress: startProgress(&drawn, 0)}, path: path}
		if err := f.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		for h, err := range f.tensors(t.Context()) {
			if err == nil {
				err = f.pour(t.Context(), io.Discard, h)
			}
			if err != nil {
				t.Error(err)
			}
		}
		f.close()
		drawn.wait(t, "reading  33%")
		drawn.wait(t, "reading  66%")
		f.progress.stop()
	}
}
