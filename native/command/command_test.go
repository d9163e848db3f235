// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// drivers are those of a native build with cgo. None is optional: a machine without Vulkan fails these tests.
var drivers = []string{"cpu", devtest.Native()}

// outcome is what one invocation left.
type outcome struct {
	status         int
	stdout, stderr string
}

func sublet(args ...string) outcome { return subletFrom(nil, args...) }

// subletFrom gives it a standard input.
func subletFrom(stdin *os.File, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	status := run(args, stdin, &stdout, &stderr)
	return outcome{status, stdout.String(), stderr.String()}
}

// must wants success and nothing on standard error.
func must(t *testing.T, args ...string) string {
	t.Helper()
	o := sublet(args...)
	if o.status != 0 || o.stderr != "" {
		t.Fatalf("sublet %q: status %d, %q", args, o.status, o.stderr)
	}
	return o.stdout
}

// save writes an array to a file in a new folder and returns its path.
func save[T npy.Elem](t *testing.T, h npy.Header, v []T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.npy")
	big := h.BigEndian
	h.BigEndian = false
	var b bytes.Buffer
	if err := npy.Write(&b, h, v); err != nil {
		t.Fatal(err)
	}
	if big { // as another program writes it
		data := b.Bytes()[b.Len()-len(v)*h.Type.Size():]
		copy(b.Bytes(), bytes.Replace(b.Bytes(), []byte("'<"), []byte("'>"), 1))
		for one := range slices.Chunk(data, h.Type.Size()) {
			slices.Reverse(one)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// floats writes a float32 matrix, row by row.
func floats(t *testing.T, rows, cols int, v ...float32) string {
	t.Helper()
	return save(t, npy.Header{Type: dtype.Float32, Shape: []int64{int64(rows), int64(cols)}}, v)
}

func read[T npy.Elem](t *testing.T, path string) (npy.Header, []T) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := npy.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := npy.Read[T](r)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header(), v
}

func TestMul(t *testing.T) {
	a := floats(t, 2, 3, 1, 2, 3, 4, 5, 6)
	b := floats(t, 3, 2, 7, 8, 9, 10, 11, 12)
	for _, d := range drivers {
		out := filepath.Join(t.TempDir(), "out.npy")
		text := must(t, "mul", a, b, "-o", out, "--driver", d)
		if !strings.HasPrefix(text, "2x2 float32 in ") || !strings.Contains(text, "("+d+")") {
			t.Errorf("%s: printed %q", d, text)
		}
		h, v := read[float32](t, out)
		if h.Type != dtype.Float32 || h.Fortran || !slices.Equal(h.Shape, []int64{2, 2}) {
			t.Errorf("%s: header %+v", d, h)
		}
		if !slices.Equal(v, []float32{58, 64, 139, 154}) {
			t.Errorf("%s: %v", d, v)
		}
	}
}

func TestEvalJSON(t *testing.T) {
	a := floats(t, 2, 2, 1, 2, 3, 4)
	b := floats(t, 2, 2, 5, 6, 7, 8)
	for _, d := range drivers {
		out := filepath.Join(t.TempDir(), "out.npy")
		text := must(t, "eval", "relu(A*B - 30) + A%B", "-i", "A="+a, "-i", "B="+b, "-o", out, "--driver", d, "--json")
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v in %q", d, err, text)
		}
		var keys []string
		for k := range got {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		want := []string{"adapter", "bytes_down", "bytes_up", "cols", "dispatches", "driver", "dtype", "rows", "seconds"}
		if !slices.Equal(keys, want) {
			t.Errorf("%s: fields %v, want %v", d, keys, want)
		}
		if got["rows"] != 2.0 || got["cols"] != 2.0 || got["dtype"] != "float32" || got["driver"] != d || got["adapter"] == "" {
			t.Errorf("%s: %v", d, got)
		}
		// Each operand goes up once and only the result comes down.
		if got["bytes_up"] != 32.0 || got["bytes_down"] != 16.0 || got["dispatches"].(float64) < 1 || got["seconds"].(float64) <= 0 {
			t.Errorf("%s: %v", d, got)
		}
		if _, v := read[float32](t, out); !slices.Equal(v, []float32{5, 12, 34, 52}) {
			t.Errorf("%s: %v", d, v)
		}
	}
}

func TestOtherTypes(t *testing.T) {
	half := func(v ...float32) (h []matrix.Half) {
		for _, f := range v {
			h = append(h, matrix.ToHalf(f))
		}
		return h
	}
	row := func(typ dtype.Type) npy.Header { return npy.Header{Type: typ, Shape: []int64{3}} }
	for _, d := range drivers {
		out := filepath.Join(t.TempDir(), "out.npy")
		must(t, "eval", "A+A", "-i", "A="+save(t, row(dtype.Int32), []int32{-1, 2, math.MaxInt32}), "-o", out, "--driver", d)
		if h, v := read[int32](t, out); h.Type != dtype.Int32 || !slices.Equal(v, []int32{-2, 4, -2}) {
			t.Errorf("%s: %v %v", d, h, v)
		}
		must(t, "eval", "A+A", "-i", "A="+save(t, row(dtype.Uint32), []uint32{1, 2, 3 << 30}), "-o", out, "--driver", d)
		if h, v := read[uint32](t, out); h.Type != dtype.Uint32 || !slices.Equal(v, []uint32{2, 4, 1 << 31}) {
			t.Errorf("%s: %v %v", d, h, v)
		}
		must(t, "eval", "A+A", "-i", "A="+save(t, row(dtype.Float16), half(0.5, -2, 3)), "-o", out, "--driver", d)
		if h, v := read[matrix.Half](t, out); h.Type != dtype.Float16 || !slices.Equal(v, half(1, -4, 6)) {
			t.Errorf("%s: %v %v", d, h, v)
		}
	}
}

// An array of one dimension is a row, a scalar a 1x1 matrix, and Fortran's order and big-endian numbers are read.
func TestLayouts(t *testing.T) {
	v := []float32{1, 2, 3, 4, 5, 6}
	fortran := save(t, npy.Header{Type: dtype.Float32, Fortran: true, Shape: []int64{2, 3}}, v)
	big := save(t, npy.Header{Type: dtype.Float32, BigEndian: true, Shape: []int64{6}}, v)
	scalar := save(t, npy.Header{Type: dtype.Float32, Shape: []int64{}}, v[:1])
	for _, c := range []struct {
		path  string
		shape []int64
		want  []float32
	}{
		{fortran, []int64{2, 3}, []float32{1, 3, 5, 2, 4, 6}},
		{big, []int64{1, 6}, v},
		{scalar, []int64{1, 1}, v[:1]},
		{floats(t, 0, 3), []int64{0, 3}, nil},
	} {
		for _, d := range drivers {
			out := filepath.Join(t.TempDir(), "out.npy")
			must(t, "eval", "A+0", "-i", "A="+c.path, "-o", out, "--driver", d)
			if h, got := read[float32](t, out); !slices.Equal(h.Shape, c.shape) || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v %v, want %v %v", d, h.Shape, got, c.shape, c.want)
			}
		}
	}
}

func castTo[T npy.Elem](t *testing.T, typ dtype.Type, v []T, want ...float32) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.npy")
	in := save(t, npy.Header{Type: typ, Shape: []int64{int64(len(v))}}, v)
	must(t, "eval", "A+0", "-i", "A="+in, "-o", out, "--cast", "--driver", "cpu")
	if h, got := read[float32](t, out); h.Type != dtype.Float32 || !slices.Equal(got, want) {
		t.Errorf("%v: %v %v, want %v", typ, h, got, want)
	}
}

func TestCast(t *testing.T) {
	castTo(t, dtype.Float64, []float64{0.5, math.Inf(1), 1e-300}, 0.5, float32(math.Inf(1)), 0)
	castTo(t, dtype.Float32, []float32{1, 2}, 1, 2)
	castTo(t, dtype.Float16, []matrix.Half{matrix.ToHalf(1.5)}, 1.5)
	castTo(t, dtype.Int8, []int8{-128, 127}, -128, 127)
	castTo(t, dtype.Int16, []int16{-32768}, -32768)
	castTo(t, dtype.Int32, []int32{math.MinInt32}, math.MinInt32)
	castTo(t, dtype.Int64, []int64{-3, 1 << 40}, -3, 1<<40)
	castTo(t, dtype.Uint8, []uint8{255}, 255)
	castTo(t, dtype.Bool8, []uint8{0, 1}, 0, 1)
	castTo(t, dtype.Uint16, []uint16{65535}, 65535)
	castTo(t, dtype.Uint32, []uint32{1 << 31}, 1<<31)
	castTo(t, dtype.Uint64, []uint64{1 << 63}, 1<<63)
	many := make([]int64, 200_000)
	want := make([]float32, len(many))
	for i := range many {
		many[i], want[i] = int64(i), float32(i)
	}
	castTo(t, dtype.Int64, many, want...)
}

func TestPrint(t *testing.T) {
	text := must(t, "eval", "A", "-i", "A="+floats(t, 2, 2, 1, 2.5, -3, 4), "--driver", "cpu")
	if want := "   1  2.5\n  -3    4\n2x2 float32 in "; !strings.HasPrefix(text, want) {
		t.Errorf("printed %q", text)
	}
	large := floats(t, 300, 200, make([]float32, 300*200)...)
	text = must(t, "eval", "A + 14", "-i", "A="+large, "--driver", "cpu")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != shown+2 || strings.Count(lines[0], "14") != shown || strings.Count(lines[shown/2], "...") != shown+1 {
		t.Errorf("printed %q", text)
	}
}

func TestInfo(t *testing.T) {
	text := must(t, "info")
	for _, d := range drivers {
		if !strings.Contains(text, "\n"+d+" ") {
			t.Errorf("no %s in %q", d, text)
		}
	}
	var got info
	if err := json.Unmarshal([]byte(must(t, "info", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		i := slices.IndexFunc(got.Adapters, func(a adapter) bool { return a.Driver == d })
		if !slices.Contains(got.Drivers, d) || i < 0 {
			t.Fatalf("no %s in %+v", d, got)
		}
		a := got.Adapters[i]
		if a.Name == "" || a.Kind == "" || a.Backend == "" || a.Limits.MaxBufferSize == 0 || a.Features == nil {
			t.Errorf("adapter %+v", a)
		}
		if a.Arithmetic == nil || d == "cpu" && *a.Arithmetic != (arithmetic{}) || !strings.Contains(text, a.Arithmetic.String()) {
			t.Errorf("arithmetic of %s is %v in %q", a.Name, a.Arithmetic, text)
		}
		if one := must(t, "info", "--driver", d, "--adapter", strings.ToUpper(a.Name)); strings.Count(one, "\n") < 2 {
			t.Errorf("%s does not find %q: %q", d, a.Name, one)
		}
	}
	fails(t, map[string]failing{"no such driver": {"ErrNoAdapter", []string{"info", "--driver", "abacus"}}})
	if o := sublet("info", "--adapter", "no such adapter"); o.status != 0 || !strings.Contains(o.stderr, "no adapter fits") {
		t.Errorf("%+v", o)
	}
	if text := must(t, "info", "--json", "--adapter", "no such adapter"); !strings.Contains(text, `"adapters":[]`) {
		t.Errorf("printed %q", text)
	}
}

func TestInfoOfExperimentalDrivers(t *testing.T) {
	found := info{
		Adapters: []adapter{{Driver: "proven", Name: "A"}, {Driver: "trial", Name: "B", Experimental: true}},
		Failures: []failure{{"trial", "KernelErrors/types", "it finds no wrong types"}},
	}
	var out strings.Builder
	if err := found.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"proven ", "trial (experimental) ", "KernelErrors/types ", "it finds no wrong types"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
	if strings.Contains(out.String(), "proven (exp") {
		t.Errorf("all are experimental: %q", out.String())
	}
}

func TestVersionAndHelp(t *testing.T) {
	if text := must(t, "--version"); !strings.HasPrefix(text, "sublet ") || !strings.Contains(text, "go1") {
		t.Errorf("printed %q", text)
	}
	for _, args := range [][]string{{}, {"--help"}, {"help", "eval"}, {"help", "params", "list"}, {"help"}, {"completion"}, {"mul", "-h"}} {
		if text := must(t, args...); !strings.Contains(text, "--adapter") {
			t.Errorf("%v printed %q", args, text)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if text := must(t, "completion", shell); !strings.Contains(text, "sublet") {
			t.Errorf("completion for %s: %q", shell, text)
		}
	}
}

func TestErrors(t *testing.T) {
	a, b := floats(t, 2, 3, 1, 2, 3, 4, 5, 6), floats(t, 2, 3, 1, 2, 3, 4, 5, 6)
	ints := save(t, npy.Header{Type: dtype.Int32, Shape: []int64{2, 3}}, make([]int32, 6))
	long := save(t, npy.Header{Type: dtype.Float64, Shape: []int64{1}}, []float64{1e300})
	parts := save(t, npy.Header{Type: dtype.Complex64, Shape: []int64{1}}, []complex64{1i})
	widest := save(t, npy.Header{Type: dtype.Complex128, Shape: []int64{1}}, []complex128{1i})
	cube := save(t, npy.Header{Type: dtype.Float32, Shape: []int64{1, 1, 1}}, []float32{1})
	dir := t.TempDir()
	text := filepath.Join(dir, "text.npy")
	if err := os.WriteFile(text, []byte("no array"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.npy")
	fails(t, map[string]failing{
		"help of nothing":    {"ErrUsage", []string{"help", "mull"}},
		"help of too much":   {"ErrUsage", []string{"help", "params", "lost"}},
		"no such shell":      {"ErrUsage", []string{"completion", "command.com"}},
		"output of no name":  {"ErrUsage", []string{"mul", a, b, "-o", ""}},
		"archive":            {"ErrFormat", []string{"eval", "A", "-i", "A=" + dictionary}},
		"no such command":    {"ErrUsage", []string{"mull"}},
		"no such flag":       {"ErrUsage", []string{"mul", "--fast", a, b}},
		"negative time":      {"ErrUsage", []string{"info", "--timeout", "-1s"}},
		"one operand":        {"ErrUsage", []string{"mul", a}},
		"flag without more":  {"ErrUsage", []string{"eval", "A", "-i"}},
		"no inputs":          {"ErrName", []string{"eval", "A"}},
		"input without =":    {"ErrUsage", []string{"eval", "A", "-i", a}},
		"input without name": {"ErrUsage", []string{"eval", "A", "-i", "=" + a}},
		"input without file": {"ErrUsage", []string{"eval", "A", "-i", "A="}},
		"bad name":           {"ErrUsage", []string{"eval", "A", "-i", "1A=" + a}},
		"name twice":         {"ErrUsage", []string{"eval", "A", "-i", "A=" + a, "-i", "A=" + b}},
		"missing file":       {"ErrNotExist", []string{"eval", "A", "-i", "A=" + none}},
		"folder":             {"Error", []string{"eval", "A", "-i", "A=" + dir}},
		"no .npy":            {"ErrFormat", []string{"eval", "A", "-i", "A=" + text}},
		"float64":            {"ErrType", []string{"eval", "A", "-i", "A=" + long}},
		"float64 too large":  {"ErrOverflow", []string{"eval", "A", "-i", "A=" + long, "--cast"}},
		"complex128":         {"ErrType", []string{"eval", "A", "-i", "A=" + widest}},
		"complex to .mtx":    {"ErrUnsupported", []string{"eval", "A", "-i", "A=" + parts, "-o", filepath.Join(dir, "out.mtx")}},
		"complex beside int": {"ErrInvalid", []string{"eval", "A+B", "-i", "A=" + parts, "-i", "B=" + ints}},
		"complex to cast":    {"ErrType", []string{"eval", "A", "-i", "A=" + parts, "--cast"}},
		"mixture":            {"ErrInvalid", []string{"eval", "A+B", "-i", "A=" + a, "-i", "B=" + ints}},
		"three dimensions":   {"ErrShape", []string{"eval", "A", "-i", "A=" + cube}},
		"shapes":             {"ErrShape", []string{"mul", a, b}},
		"unknown matrix":     {"ErrName", []string{"eval", "A*C", "-i", "A=" + a}},
		"mul":                {"ErrName", []string{"eval", "mul(A, A)", "-i", "A=" + a}},
		"unknown function":   {"ErrName", []string{"eval", "sinc(A)", "-i", "A=" + a}},
		"empty expression":   {"ErrUsage", []string{"eval", "", "-i", "A=" + a}},
		"syntax":             {"ErrSyntax", []string{"eval", "A*", "-i", "A=" + a}},
		"no such driver":     {"ErrNoAdapter", []string{"eval", "A", "-i", "A=" + a, "--driver", "abacus"}},
		"no such adapter":    {"ErrNoAdapter", []string{"eval", "A", "-i", "A=" + a, "--adapter", "abacus"}},
		"no folder":          {"ErrNotExist", []string{"eval", "A", "-i", "A=" + a, "-o", filepath.Join(none, "out.npy")}},
		"output is folder":   {"Error", []string{"eval", "A", "-i", "A=" + a, "-o", dir}},
	})
}

// failing are arguments that lead to an error of a code.
type failing struct {
	code string
	args []string
}

// fails wants one line on standard error and, with --json, an object on standard output.
func fails(t *testing.T, cases map[string]failing) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plain := sublet(c.args...)
			if plain.status != 1 || plain.stdout != "" {
				t.Errorf("status %d, printed %q", plain.status, plain.stdout)
			}
			if !strings.HasPrefix(plain.stderr, "sublet: ") || strings.Count(plain.stderr, "\n") != 1 {
				t.Errorf("not one line: %q", plain.stderr)
			}
			asJSON := sublet(append([]string{"--json"}, c.args...)...)
			var f map[string]map[string]string
			if err := json.Unmarshal([]byte(asJSON.stdout), &f); err != nil {
				t.Fatalf("%v in %q", err, asJSON.stdout)
			}
			if asJSON.status != 1 || f["error"]["code"] != c.code || "sublet: "+f["error"]["message"]+"\n" != asJSON.stderr {
				t.Errorf("status %d, %+v, want code %s; standard error %q", asJSON.status, f, c.code, asJSON.stderr)
			}
		})
	}
}

// Whoever calls the command in a wrong way is told how to call it.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"mul a.npy":        "usage: sublet mul A.npy B.npy",
		"mul --bogus":      "usage: sublet mul A.npy B.npy",
		"params list":      "usage: sublet params list FILE",
		"run f.wgsl -g 10": "-a is missing",
		"eval":             "usage: sublet eval EXPR",
		"mull":             "mul; see sublet --help",
		"params delete":    "see sublet params --help",
	} {
		if o := sublet(strings.Fields(args)...); o.status != 1 || !strings.Contains(o.stderr, want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want %q", args, o, want)
		}
	}
}

// Every function that the help names is one.
func TestHelpFunctions(t *testing.T) {
	_, text, _ := strings.Cut(must(t, "eval", "--help"), "The functions:\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	var names []string
	for line := range strings.Lines(text) {
		list, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
		names = append(names, strings.Fields(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(list, ""))...)
	}
	if len(names) < 44 {
		t.Errorf("%q", names)
	}
	for _, name := range names {
		if err := matrix.Eval[float32](name+"()", nil).Err(); !errors.Is(err, matrix.ErrSyntax) { // a function, without its arguments
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failure leaves the output as it was and nothing beside it; a success replaces it and keeps its permissions.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.npy")
	if err := os.WriteFile(out, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out.npy", filepath.Join(dir, "link.npy")); err != nil {
		t.Fatal(err)
	}
	a := floats(t, 1, 1, 1)
	if o := sublet("eval", "A*B", "-i", "A="+a, "-o", out, "--driver", "cpu"); o.status != 1 {
		t.Fatalf("%+v", o)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "before" {
		t.Errorf("%q, %v", b, err)
	}
	must(t, "eval", "A+1", "-i", "A="+a, "-o", filepath.Join(dir, "link.npy"), "--driver", "cpu")
	if _, v := read[float32](t, out); !slices.Equal(v, []float32{2}) {
		t.Errorf("%v", v)
	}
	must(t, "eval", "A+1", "-i", "A="+out, "-o", out, "--driver", "cpu") // in and out
	if _, v := read[float32](t, out); !slices.Equal(v, []float32{3}) {
		t.Errorf("%v", v)
	}
	if st, err := os.Stat(out); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if st, err := os.Lstat(filepath.Join(dir, "link.npy")); err != nil || st.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link was replaced: %v, %v", st.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	must(t, "eval", "A", "-i", "A="+a, "-o", os.DevNull, "--driver", "cpu")
}

func TestProgress(t *testing.T) {
	var quick bytes.Buffer
	p := startProgress(&quick, time.Hour)
	p.enter("reading", 0)
	p.stop()
	if quick.Len() != 0 {
		t.Errorf("quick work drew %q", quick.String())
	}
	var slow lockedBuffer
	p = startProgress(&slow, 0)
	p.enter("reading", 10)
	p.add(5)
	slow.wait(t, "reading  50%")
	p.enter("computing", 0)
	slow.wait(t, "computing")
	p.enter("writing", 4)
	p.add(3)
	slow.wait(t, "writing  75%")
	p.stop()
	p.stop()
	drawn := slow.len()
	p.add(5)
	if slow.len() != drawn {
		t.Error("drew after the end")
	}
	newProgress(&bytes.Buffer{}).stop() // no terminal
}

// full is a writer without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left on device")

// TestHelpWithoutRoom prints help where nothing can be written.
func TestHelpWithoutRoom(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"help", "eval"}, {"eval", "--help"}, {"params"}, {"--version"}} {
		var stderr bytes.Buffer
		if status := run(args, nil, full{}, &stderr); status != 1 || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%q: status %d, %q", args, status, stderr.String())
		}
	}
}
