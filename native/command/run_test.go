// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

const stream = "testdata/add3stream.wgsl"

// wgsl writes a source to a file.
func wgsl(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kernels.wgsl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// vector writes n equal elements.
func vector[T npy.Elem](t *testing.T, typ dtype.Type, n int, v T) string {
	t.Helper()
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return save(t, npy.Header{Type: typ, Shape: []int64{int64(n)}}, all)
}

// runJSON runs kernels and returns what was reported.
func runJSON(t *testing.T, args ...string) []callReport {
	t.Helper()
	text := must(t, append([]string{"run", "--json"}, args...)...)
	var got runReport
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return got.Calls
}

// covers wants the shares of a call to be the range, without gaps.
func covers(t *testing.T, c callReport, devices, offset, count int) {
	t.Helper()
	next := offset
	for i, s := range c.Shares {
		if s.Device != i || s.Offset != next || s.Seconds < 0 {
			t.Errorf("share %d of %+v", i, c.Shares)
		}
		next += s.Count
	}
	if len(c.Shares) != devices || next != offset+count {
		t.Errorf("%+v are not %d items from %d on", c.Shares, count, offset)
	}
}

func equal[T comparable](t *testing.T, what string, got []T, n int, v T) {
	t.Helper()
	if len(got) != n || slices.ContainsFunc(got, func(x T) bool { return x != v }) {
		t.Errorf("%s: %d elements %v ..., want %d of %v", what, len(got), got[:min(8, len(got))], n, v)
	}
}

// TestRunStream is the example of Cekirdekler's wiki: 1,000 bytes of 55 become 58, and each byte goes up and comes back once.
func TestRunStream(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	in := vector[uint8](t, dtype.Uint8, 1000, 55)
	for _, devices := range []string{"0", "0,0", "0,0,0"} {
		calls := runJSON(t, stream, "--entry", "add3stream", "-g", "1000", "-l", "100", "--devices", devices,
			"-a", "arr="+in+":partial-read,write", "-o", "arr="+out)
		if len(calls) != 1 || calls[0].BytesUp != 1000 || calls[0].BytesDown != 1000 {
			t.Errorf("%s: %+v", devices, calls)
		}
		covers(t, calls[0], strings.Count(devices, ",")+1, 0, 1000)
		h, v := read[uint8](t, out)
		equal(t, devices, v, 1000, 58)
		if h.Type != dtype.Uint8 || !slices.Equal(h.Shape, []int64{1000}) {
			t.Errorf("%s: header %+v", devices, h)
		}
	}
	o := sublet("run", stream, "-g", "1000", "-a", "arr="+in, "--watch", "--devices", "0,0", "--calls", "2")
	if text := o.stdout; o.status != 0 || !strings.HasPrefix(text, "DEVICE") || !strings.Contains(text, "%") || !strings.Contains(text, "calls: 2, ") ||
		!strings.Contains(text, "bytes down: 2000, ") {
		t.Errorf("printed %q", text)
	}
	// What is no terminal gets a line for each call.
	line := `call \d: device 0 \d+\.\d% \d+\.\d{3} ms, device 1 \d+\.\d% \d+\.\d{3} ms\n`
	if !regexp.MustCompile("^("+line+"){2}$").MatchString(o.stderr) || !strings.Contains(o.stderr, "call 2: ") {
		t.Errorf("watched %q", o.stderr)
	}
}

// TestRunJSON wants the names of the fields and no others.
func TestRunJSON(t *testing.T) {
	in := vector[uint32](t, dtype.Uint32, 64, 1)
	text := must(t, "run", "--json", stream, "-g", "64", "-a", "arr="+in, "--calls", "2", "--devices", "0,0")
	var got struct {
		Calls, Devices []map[string]any
		Seconds        float64
	}
	var fields map[string]any
	err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &fields))
	if err != nil || len(fields) != 3 || len(got.Calls) != 2 || len(got.Devices) != 2 || got.Seconds < 0 || strings.Count(text, "\n") != 1 {
		t.Fatalf("%v in %q", err, text)
	}
	keys := func(m map[string]any) string {
		var k []string
		for name := range m {
			k = append(k, name)
		}
		slices.Sort(k)
		return strings.Join(k, " ")
	}
	for _, c := range got.Calls {
		shares, ok := c["shares"].([]any)
		if keys(c) != "bytes_down bytes_up shares" || !ok || len(shares) != 2 {
			t.Errorf("call %v", c)
			continue
		}
		if k := keys(shares[1].(map[string]any)); k != "count device offset seconds" {
			t.Errorf("share with %s", k)
		}
	}
	for i, d := range got.Devices {
		if keys(d) != "driver index kind name" || d["index"] != float64(i) || d["driver"] == "" || d["kind"] == "" || d["name"] == "" {
			t.Errorf("device %v", d)
		}
	}
}

func runType[T npy.Elem](t *testing.T, typ dtype.Type, three string, before, after T) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, "fn add(i: u32) { a[i] = a[i] + "+three+"; }")
	must(t, "run", source, "-g", "999", "-l", "32", "--devices", "0,0", "-a", "a="+vector(t, typ, 999, before), "-o", "a="+out)
	h, v := read[T](t, out)
	equal(t, typ.String(), v, 999, after)
	if h.Type != typ {
		t.Errorf("%v became %v", typ, h.Type)
	}
	zeros := "a=999x" + typ.String()
	must(t, "run", source, "-g", "999", "-a", zeros, "-o", "a="+out)
	if h, v := read[T](t, out); h.Type != typ || len(v) != 999 || v[998] == before {
		t.Errorf("%s: %v", zeros, h)
	}
}

func TestRunTypes(t *testing.T) {
	runType[float32](t, dtype.Float32, "3.0", 0.5, 3.5)
	runType[int32](t, dtype.Int32, "3", -5, -2)
	runType[uint32](t, dtype.Uint32, "3u", 1<<31, 1<<31+3)
	runType[int8](t, dtype.Int8, "3", -128, -125)
	runType[uint8](t, dtype.Uint8, "3u", 254, 1)
	runType[int16](t, dtype.Int16, "3", 32767, -32766)
	runType[uint16](t, dtype.Uint16, "3u", 65535, 2)
}

// TestRunFlags calls twice with each word, on two devices. What no flag brings back is brought back for -o.
func TestRunFlags(t *testing.T) {
	const size, each = 1024, -1 // bytes, and as many for each device that has a share
	for _, c := range []struct {
		flags    string
		up, down [2]int64 // of the first and the second call
		result   uint8    // of 10, to which 3 is added by each call
	}{
		{"", [2]int64{each, each}, [2]int64{size, size}, 16},
		{":read,write", [2]int64{each, each}, [2]int64{size, size}, 16},
		{":read", [2]int64{each, each}, [2]int64{}, 13},
		{":partial-read", [2]int64{size, size}, [2]int64{}, 13},
		{":partial-read,write", [2]int64{size, size}, [2]int64{size, size}, 16},
		{":read,partial-read,write", [2]int64{size, size}, [2]int64{size, size}, 16},
		{":write", [2]int64{}, [2]int64{size, size}, 6}, // what never went up is zero
		{":none", [2]int64{}, [2]int64{}, 6},
		{":write-only", [2]int64{}, [2]int64{size, size}, 6},
		{":write,write-only", [2]int64{}, [2]int64{size, size}, 6},
		{":none,write-only", [2]int64{}, [2]int64{}, 6},
		{":read,write-all", [2]int64{size, size}, [2]int64{size, size}, 16},
		{":read,write,write-all", [2]int64{size, size}, [2]int64{size, size}, 16},
		{":write-all,write-only", [2]int64{}, [2]int64{size, size}, 6},
		{":partial-read:write:e=1:halo=0", [2]int64{size, size}, [2]int64{size, size}, 16},
	} {
		out := filepath.Join(t.TempDir(), "out.npy")
		calls := runJSON(t, stream, "-g", "1024", "-l", "512", "--devices", "0,0", "--calls", "2",
			"-a", "arr="+vector[uint8](t, dtype.Uint8, size, 10)+c.flags, "-o", "arr="+out)
		for i, call := range calls {
			if c.up[i] == each {
				c.up[i] = 0
				for _, s := range call.Shares {
					c.up[i] += size * int64(min(s.Count, 1))
				}
			}
			if call.BytesUp != c.up[i] || call.BytesDown != c.down[i] {
				t.Errorf("%q, call %d: %d up, %d down, want %d and %d", c.flags, i, call.BytesUp, call.BytesDown, c.up[i], c.down[i])
			}
		}
		_, v := read[uint8](t, out)
		equal(t, c.flags, v, size, c.result)
	}
}

// TestRunReadOnly adds a table, which kernels cannot write, and packs bytes.
func TestRunReadOnly(t *testing.T) {
	dir := t.TempDir()
	out, same := filepath.Join(dir, "out.npy"), filepath.Join(dir, "same.npy")
	source := wgsl(t, `fn both(i: u32) { sum[i] = sum[i] + table[i] + table[63u - i]; }
fn words(i: u32) { b[i] = (b[i] & 0x7f7f7f7fu) + 0x03030303u; }
fn bytes(i: u32) { sublet_store_c(i, sublet_load_c(i) + 3u); }`)
	table := make([]int32, 64)
	for i := range table {
		table[i] = int32(i)
	}
	in := save(t, npy.Header{Type: dtype.Int32, Shape: []int64{64}}, table)
	calls := runJSON(t, source, "--entry", "both", "-g", "64", "-l", "16", "--devices", "0,0", "-a", "table="+in+":read-only",
		"-a", "sum=64xint32:write-only", "-o", "sum="+out, "-o", "table="+same)
	if calls[0].BytesUp != 512 || calls[0].BytesDown != 256 {
		t.Errorf("%+v", calls)
	}
	_, v := read[int32](t, out)
	equal(t, "sum", v, 64, 63)
	if _, v := read[int32](t, same); !slices.Equal(v, table) {
		t.Errorf("the table is now %v", v)
	}
	small := vector[uint8](t, dtype.Uint8, 64, 1)
	must(t, "run", source, "--entry", "words", "-g", "16", "--devices", "0,0", "-a", "b="+small+":packed:e=4", "-o", "b="+out)
	_, packed := read[uint8](t, out)
	equal(t, "packed", packed, 64, 4)
	must(t, "run", source, "--entry", "bytes", "-g", "64", "-l", "1", "--devices", "0,0", "-a", "c="+small+":partial-read,write,atomic", "-o", "c="+out)
	_, atomic := read[uint8](t, out)
	equal(t, "atomic", atomic, 64, 4)
}

// TestRunGrid numbers the items of two and three dimensions.
func TestRunGrid(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn plane(i: vec2<u32>) { a[i.y * 7u + i.x] = f32(i.x) * scale + f32(i.y); }
fn space(i: vec3<u32>) { a[(i.z * 3u + i.y) * 7u + i.x] = f32(i.x) + 10.0 * f32(i.y) + 100.0 * f32(i.z); }`)
	calls := runJSON(t, source, "--entry", "plane", "-g", "7x5", "--devices", "0,0", "-s", "scale=10.0",
		"-a", "a=5x7xfloat32:write-only", "-o", "a="+out)
	covers(t, calls[0], 2, 0, 5)
	h, v := read[float32](t, out)
	if !slices.Equal(h.Shape, []int64{5, 7}) || v[0] != 0 || v[6] != 60 || v[7] != 1 || v[34] != 64 {
		t.Errorf("%v %v", h.Shape, v)
	}
	calls = runJSON(t, source, "--entry", "space", "-g", "7x3x2", "--devices", "0,0", "--offset", "1",
		"-a", "a=3x3x7xfloat32:write-only", "-o", "a="+out)
	covers(t, calls[0], 2, 1, 2)
	if h, v := read[float32](t, out); !slices.Equal(h.Shape, []int64{3, 3, 7}) || v[20] != 0 || v[21] != 100 || v[62] != 226 {
		t.Errorf("%v %v", h.Shape, v)
	}
}

// TestRunOften calls and repeats, with several kernels, in pieces, and from an offset on.
func TestRunOften(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn twice(i: u32) { a[i] = a[i] * 2u; }
fn more(i: u32) { a[i] = a[i] + by; }`)
	in := vector[uint32](t, dtype.Uint32, 1000, 1)
	for _, c := range []struct {
		want uint32
		args []string
	}{
		{7, []string{"--entry", "twice more"}},
		{12, []string{"--entry", "more,twice"}},
		{19, []string{"--entry", "twice more", "--repeat", "2"}},
		{19, []string{"--entry", "twice more", "--calls", "2"}},
		{7, []string{"--entry", "twice more", "--pipeline", "4"}},
		{16, []string{"--entry", "more", "--repeat", "3"}},
	} {
		args := append([]string{
			source, "-g", "900", "--offset", "100", "-l", "4", "-a", "a=" + in + ":partial-read,write",
			"-s", "by=5:uint32", "-o", "a=" + out,
		}, c.args...)
		for _, devices := range []string{"0", "0,0"} {
			calls := runJSON(t, append(args, "--devices", devices)...)
			for _, call := range calls {
				covers(t, call, 1+strings.Count(devices, ","), 100, 900)
				if call.BytesUp != 3600 || call.BytesDown != 3600 {
					t.Errorf("%q: %+v", c.args, call)
				}
			}
			if want := 1 + strings.Count(strings.Join(c.args, " "), "--calls"); len(calls) != want {
				t.Errorf("%q: %d calls", c.args, len(calls))
			}
			_, v := read[uint32](t, out)
			equal(t, "before the offset", v[:100], 100, 1)
			equal(t, strings.Join(c.args, " "), v[100:], 900, c.want)
		}
	}
}

// TestRunSyncKernel counts the repeats.
func TestRunSyncKernel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn more(i: u32) { a[i] = a[i] + n[0]; }
fn note(i: u32) { if (i == 0u) { n[0] = n[0] + 1u; } }`)
	must(t, "run", source, "--entry", "more", "-g", "100", "--repeat", "4", "--sync-kernel", "note", "--devices", "0",
		"-a", "a=100xuint32", "-a", "n=1xuint32:none", "-o", "a="+out, "-o", "n="+out+"2")
	_, v := read[uint32](t, out)
	equal(t, "sums", v, 100, 0+1+2+3)
	_, v = read[uint32](t, out+"2")
	equal(t, "repeats", v, 1, 4)
}

// TestRunShapes keeps the shape and the order of elements.
func TestRunShapes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn number(i: u32) { a[i] = a[i] + f32(i); }`)
	for _, h := range []npy.Header{
		{Type: dtype.Float32, Shape: []int64{2, 3, 4}},
		{Type: dtype.Float32, Shape: []int64{6, 4}, Fortran: true},
		{Type: dtype.Float32, Shape: []int64{24}, BigEndian: true},
	} {
		must(t, "run", source, "-g", "24", "-a", "a="+save(t, h, make([]float32, 24)), "-o", "a="+out)
		got, v := read[float32](t, out)
		if !slices.Equal(got.Shape, h.Shape) || got.Fortran != h.Fortran || got.BigEndian || v[0] != 0 || v[23] != 23 {
			t.Errorf("%+v became %+v %v", h, got, v)
		}
	}
	one := wgsl(t, `fn one(i: u32) { a[i] = 7.0; }`)
	must(t, "run", one, "-g", "1", "-a", "a="+save(t, npy.Header{Type: dtype.Float32, Shape: []int64{}}, []float32{1}), "-o", "a="+out)
	if h, v := read[float32](t, out); len(h.Shape) != 0 || len(v) != 1 || v[0] != 7 {
		t.Errorf("%+v %v", h, v)
	}
}

// TestRunScalars passes numbers of each type, by their form and by name, to a source of functions and to a complete module.
func TestRunScalars(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn f(i: u32) { a[i] = x + f32(n) + f32(u >> 31u) + y; }`)
	must(t, "run", source, "-g", "9", "-a", "a=9xfloat32", "-o", "a="+out,
		"-s", "x=1.5", "-s", "n=-20", "-s", "u=2147483648:uint32", "-s", "y=100:float32")
	_, v := read[float32](t, out)
	equal(t, "functions", v, 9, 82.5)
	module := wgsl(t, `struct P { sublet_base: u32, sublet_count: u32, x: f32, pad: u32 }
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.sublet_count) { a[p.sublet_base + id.x] = p.x; }
}`)
	calls := runJSON(t, module, "-g", "90", "-l", "4", "--devices", "0,0", "-a", "a=90xfloat32", "-o", "a="+out, "-s", "x=2e3")
	covers(t, calls[0], 2, 0, 90)
	_, v = read[float32](t, out)
	equal(t, "module", v, 90, 2000)
}

// TestRunStencil reads neighbours across the border between two devices.
func TestRunStencil(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.npy")
	source := wgsl(t, `fn blur(i: u32) { if (i > 0u && i < 127u) { b[i] = a[i - 1u] + a[i] + a[i + 1u]; } }`)
	in := vector[uint32](t, dtype.Uint32, 128, 5)
	calls := runJSON(t, source, "-g", "128", "-l", "8", "--devices", "0,0", "-a", "a="+in+":partial-read,read-only:halo=1",
		"-a", "b=128xuint32:write-only", "-o", "b="+out)
	if calls[0].BytesUp != 4*(128+2) {
		t.Errorf("%d bytes up", calls[0].BytesUp)
	}
	_, v := read[uint32](t, out)
	equal(t, "blur", v[1:127], 126, 15)
}

// TestRunStops ends with the context, and leaves no file.
func TestRunStops(t *testing.T) {
	dir := t.TempDir()
	var text bytes.Buffer
	task := runTask{
		app: &app{out: &text, err: &text, progress: &progress{bar: silent}}, file: stream, calls: 1, rang: cruncher.Range{Global: 64, Repeat: 1, Blobs: 1},
		results: []named{{"arr", filepath.Join(dir, "out.npy")}},
	}
	arr, err := parseArray("arr=64xuint32", map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	task.arrays = append(task.arrays, arr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := task.run(ctx); !errors.Is(err, context.Canceled) || text.Len() > 0 {
		t.Errorf("%v, printed %q", err, text.String())
	}
	task.app.close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
