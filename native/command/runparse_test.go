// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

func TestRunErrors(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.npy")
	in := "arr=" + vector[uint32](t, dtype.Uint32, 100, 1)
	long := vector[float64](t, dtype.Float64, 4, 1)
	two := wgsl(t, "fn one(i: u32) { arr[i] = 1u; }\nfn two(i: u32) { arr[i] = 2u; }\n")
	bad := wgsl(t, "fn bad(i: u32) {\n  arr[i] = 1u;\n  arr[i] = nonsense;\n}\n")
	text := wgsl(t, "no kernel")
	big := filepath.Join(dir, "big.wgsl")
	if err := os.WriteFile(big, make([]byte, maxSource+1), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) []string { return append([]string{"run", stream, "-g", "100", "-a", in}, args...) }
	array := func(a string) []string { return []string{"run", stream, "-g", "100", "-a", a} }
	grid := func(g string) []string { return []string{"run", stream, "-a", in, "-g", g} }
	fails(t, map[string]failing{
		"no file":               {"ErrUsage", []string{"run"}},
		"no range":              {"ErrUsage", []string{"run", stream, "-a", in}},
		"no arrays":             {"ErrUsage", []string{"run", stream, "-g", "100"}},
		"range of words":        {"ErrUsage", grid("many")},
		"empty range":           {"ErrUsage", grid("0")},
		"negative range":        {"ErrUsage", grid("-5")},
		"four dimensions":       {"ErrUsage", grid("2x2x2x2")},
		"half a range":          {"ErrUsage", grid("2x")},
		"enormous range":        {"ErrUsage", grid("99999999999999999999")},
		"other dimensions":      {"ErrRange", grid("10x10")},
		"range beyond array":    {"ErrLength", grid("101")},
		"offset beyond array":   {"ErrLength", with("--offset", "1")},
		"negative local":        {"ErrUsage", with("-l", "-1")},
		"too much local":        {"ErrLimit", with("-l", "1000000")},
		"negative offset":       {"ErrUsage", with("--offset", "-1")},
		"no calls":              {"ErrUsage", with("--calls", "0")},
		"no repeats":            {"ErrUsage", with("--repeat", "0")},
		"no pieces":             {"ErrUsage", with("--pipeline", "0")},
		"device that is not":    {"ErrNoAdapter", with("--devices", "0,99")},
		"devices in words":      {"ErrUsage", with("--devices", "best")},
		"no devices":            {"ErrUsage", with("--devices", "")},
		"too many devices":      {"ErrUsage", with("--devices", strings.Repeat("0,", maxDevices)+"0")},
		"driver without WGSL":   {"ErrNoAdapter", with("--driver", "cpu")},
		"no such adapter":       {"ErrNoAdapter", with("--adapter", "abacus")},
		"no such kernel":        {"ErrKernel", with("--entry", "add4stream")},
		"no such sync kernel":   {"ErrKernel", with("--sync-kernel", "add4stream")},
		"which kernel":          {"ErrUsage", []string{"run", two, "-g", "100", "-a", in}},
		"no kernel":             {"ErrKernel", []string{"run", text, "-g", "100", "-a", in}},
		"missing source":        {"ErrNotExist", []string{"run", none, "-g", "100", "-a", in}},
		"source is folder":      {"Error", []string{"run", dir, "-g", "100", "-a", in}},
		"source too long":       {"ErrLimit", []string{"run", big, "-g", "100", "-a", in}},
		"does not compile":      {"ErrCompile", []string{"run", bad, "-g", "100", "-a", in}},
		"array of another name": {"ErrCompile", array("other=100xuint32")},
		"missing array":         {"ErrNotExist", array("arr=" + none)},
		"array without name":    {"ErrUsage", array("=" + none)},
		"array without file":    {"ErrUsage", array("arr=")},
		"only flags":            {"ErrUsage", array("arr=:read")},
		"array twice":           {"ErrUsage", with("-a", in)},
		"float64":               {"ErrType", array("arr=" + long)},
		"no such flag":          {"ErrUsage", array(in + ":raed")},
		"e twice":               {"ErrUsage", array(in + ":e=2:e=3")},
		"e twice in a list":     {"ErrUsage", array(in + ":e=2,read,e=2")},
		"halo twice":            {"ErrUsage", array(in + ":halo=0:halo=1")},
		"two lists without end": {"ErrUsage", array(in + ":read::e=1")},
		"some flags":            {"ErrUsage", array(in + ":read,")},
		"flag of zeros":         {"ErrUsage", array("arr=100xuint32:raed")},
		"e=0":                   {"ErrUsage", array(in + ":read:e=0")},
		"e in words":            {"ErrUsage", array(in + ":e=two")},
		"e beyond array":        {"ErrLength", array(in + ":partial-read,write:e=2")},
		"negative halo":         {"ErrUsage", array(in + ":halo=-1")},
		"none and read":         {"ErrUsage", array(in + ":none,read")},
		"both locks":            {"ErrUsage", array(in + ":read-only,write-only")},
		"write of read-only":    {"ErrUsage", array(in + ":write,read-only")},
		"read of write-only":    {"ErrUsage", array(in + ":partial-read,write-only")},
		"packed and atomic":     {"ErrUsage", array(in + ":packed:atomic")},
		"too many zeros":        {"ErrLimit", array("arr=2000000000x2000000000xuint32")},
		"more than memory":      {"ErrLimit", array("arr=1000000x1000000xuint8")},
		"scalar without value":  {"ErrUsage", with("-s", "by")},
		"scalar of words":       {"ErrUsage", with("-s", "by=five")},
		"scalar of no type":     {"ErrUsage", with("-s", "by=5:float64")},
		"scalar too large":      {"ErrUsage", with("-s", "by=3000000000")},
		"negative unsigned":     {"ErrUsage", with("-s", "by=-1:uint32")},
		"scalar like an array":  {"ErrUsage", with("-s", "arr=1")},
		"output of no array":    {"ErrUsage", with("-o", "brr="+none)},
		"output without file":   {"ErrUsage", with("-o", "arr=")},
		"outputs to one file":   {"ErrUsage", with("-o", "arr="+none, "-o", "arr="+none)},
		"one file twice":        {"ErrUsage", with("-o", "arr="+none, "-o", "arr="+filepath.Dir(none)+"/./"+filepath.Base(none))},
		"output to no folder":   {"ErrNotExist", with("-o", "arr="+filepath.Join(none, "out.npy"))},
	})
	if left, err := filepath.Glob(filepath.Join(dir, ".sublet-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if o := sublet("run", bad, "-g", "100", "-a", in); !strings.Contains(o.stderr, bad+": ") || !strings.Contains(o.stderr, "line 3") || !strings.Contains(o.stderr, "nonsense") {
		t.Errorf("the line is not in %q", o.stderr)
	}
	if o, want := sublet("run", stream, "-g", "4", "-a", "arr="+long), long+": not an element type of arrays of kernels: the file is float64; those are float32, "; !strings.Contains(o.stderr, want) {
		t.Errorf("%q is not in %q", want, o.stderr)
	}
	o, want := sublet("run", stream, "-g", "4", "-a", "arr=24xfloat64", "--json"), `"24xfloat64" has not an element`
	if o.status != 1 || !strings.Contains(o.stderr, want) || !strings.Contains(o.stdout, `"ErrType"`) {
		t.Errorf("%q is not in %+v", want, o)
	}
	// The command that the message tells makes a file that kernels take.
	single := filepath.Join(dir, "single.npy")
	must(t, "eval", "A", "-i", "A="+long, "--cast", "-o", single)
	must(t, "run", wgsl(t, "fn f(i: u32) { arr[i] = arr[i] + 1.0; }"), "-g", "4", "-a", "arr="+single, "-o", "arr="+single)
	if _, v := read[float32](t, single); !slices.Equal(v, []float32{2, 2, 2, 2}) {
		t.Errorf("%v", v)
	}
}

// TestParseArray finds where the file ends and the flags begin.
func TestParseArray(t *testing.T) {
	for _, c := range []struct{ s, path, words, shape string }{
		{"a=x.npy", "x.npy", "", ""},
		{"a=x.npy:read,write", "x.npy", "read write", ""},
		{"a=x.npy:e=4:partial-read", "x.npy", "partial-read", ""},
		{`a=C:\data\x.npy:write`, `C:\data\x.npy`, "write", ""},
		{"a=odd:name:none", "odd:name", "none", ""},
		{"a=k=v.npy", "k=v.npy", "", ""},
		{"a=read", "read", "", ""},
		{"a=7xint8", "", "", "7"},
		{"a=0x3x2xuint16:packed", "", "packed", "0x3x2"},
		{"a=./7xint8", "./7xint8", "", ""},
		{"a=xfloat32", "xfloat32", "", ""},
		{"a=x.npy:", "x.npy", "", ""},
		{"a=x.NPY::e=4", "x.NPY", "", ""},
		{"a=7xint8:", "", "", "7"},
		{"a=7xint8::halo=2", "", "", "7"},
		{"a=odd:", "odd:", "", ""},
		{"a=100xcats", "100xcats", "", ""},
	} {
		got, err := parseArray(c.s, map[string]bool{})
		if err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		var words []string
		for _, w := range []string{"read", "partial-read", "write", "none", "packed"} {
			if got.has(w) {
				words = append(words, w)
			}
		}
		shape := ""
		if got.path == "" {
			shape = shownShape(got.Shape)
		}
		if got.path != c.path || strings.Join(words, " ") != strings.TrimSpace(c.words) || shape != c.shape {
			t.Errorf("%s: %+v", c.s, got)
		}
	}
}

// TestRunNothing has arrays without elements, which kernels may be given but not index.
func TestRunNothing(t *testing.T) {
	source := wgsl(t, "fn f(i: u32) { if (arrayLength(&none) > i) { a[i] = none[i]; } else { a[i] = 9u; } }")
	empty := save(t, npy.Header{Type: dtype.Uint32, Shape: []int64{0, 3}}, []uint32{})
	out := filepath.Join(t.TempDir(), "out.npy")
	must(t, "run", source, "-g", "5", "-a", "a=5xuint32", "-a", "none="+empty+":read-only", "-o", "none="+out, "-o", "a="+out+"2")
	if h, v := read[uint32](t, out); len(v) != 0 || len(h.Shape) != 2 {
		t.Errorf("%+v %v", h, v)
	}
	_, v := read[uint32](t, out+"2")
	equal(t, "a", v, 5, 9)
}
