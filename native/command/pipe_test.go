// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// pipe is a pipe that brings data.
func pipe(t *testing.T, data string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, _ = w.WriteString(data) // fails where the reader does not want all
		written <- w.Close()
	}()
	t.Cleanup(func() {
		_ = r.Close()
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
	return r
}

// opened is a file as a shell redirects it.
func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestParamsStandardInput reads a pipe, and a redirected file, as it reads a file of that name.
func TestParamsStandardInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	large := tensor{"large", dtype.Int8, []int64{3 << 20}, bytes.Repeat([]byte{7}, 3<<20)}
	for _, ext := range []string{"params", "safetensors", "npz"} {
		path := pack(t, "in."+ext, append(slices.Clone(some), large)...)
		for _, args := range [][]string{
			{"list", "-", "--sha256"}, {"list", "-"}, {"verify", "-", "--strict"}, {"get", "-", "mask"}, {"get", "-", "large"},
		} {
			args = append([]string{"params"}, args...)
			in := slices.Clone(args)
			in[2] = path
			want := must(t, in...)
			args = append(args, "--from", ext)
			if o := subletFrom(opened(t, path), args...); o.status != 0 || o.stdout != want {
				t.Errorf("%s < file: %+v, want %q", args, o, want)
			}
			o := subletFrom(pipe(t, slurp(t, path)), args...)
			if ext == "npz" {
				if o.status != 1 || !strings.Contains(o.stderr, "standard input: an archive") {
					t.Errorf("%s: %+v", args, o)
				}
			} else if o.status != 0 || o.stdout != want {
				t.Errorf("%s: %+v, want %q", args, o, want)
			}
		}
		for _, to := range []string{"params", "safetensors", "npz"} {
			out := filepath.Join(t.TempDir(), "out."+to)
			must(t, "params", "convert", path, out)
			want := slurp(t, out)
			ins := []*os.File{opened(t, path)}
			if ext != "npz" {
				ins = append(ins, pipe(t, slurp(t, path)))
			}
			for _, in := range ins {
				o := subletFrom(in, "params", "convert", "-", "-", "--from", "."+strings.ToUpper(ext), "--to", to)
				if o.status != 0 || o.stdout != want || !strings.HasPrefix(o.stderr, "tensors: 6, ") {
					t.Errorf("%s to %s: status %d, %q, %d bytes, want %d", ext, to, o.status, o.stderr, len(o.stdout), len(want))
				}
			}
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestParamsRest reads a redirected file from where it stands, and counts what follows in a pipe.
func TestParamsRest(t *testing.T) {
	for _, ext := range []string{"params", "safetensors", "npz"} {
		path := pack(t, "in."+ext, some...)
		later := write(t, "later", []byte("a line\n"+slurp(t, path)))
		f := opened(t, later)
		if _, err := f.Seek(int64(len("a line\n")), 0); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out."+ext)
		if o := subletFrom(f, "params", "convert", "-", out, "--from", ext); o.status != 0 || slurp(t, out) != slurp(t, path) {
			t.Errorf("%s: %+v", ext, o)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	out := filepath.Join(t.TempDir(), "out.params")
	o := subletFrom(pipe(t, slurp(t, dictionary)+strings.Repeat("stale", 1e5)), "params", "convert", "-", out, "--from", "params", "--json")
	var c converted
	if err := json.Unmarshal([]byte(o.stdout), &c); err != nil || c.Trailing != 5e5 || slurp(t, out) != slurp(t, dictionary) {
		t.Errorf("%+v, %v", o, err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestParamsFrom(t *testing.T) {
	in := pack(t, "in.params", some...)
	odd := write(t, "model.bin", []byte(slurp(t, in)))
	if got, want := must(t, "params", "list", odd, "--from", "params"), must(t, "params", "list", in); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out := filepath.Join(t.TempDir(), "out.bin")
	must(t, "params", "convert", odd, out, "--from", "params", "--to", "params")
	if slurp(t, out) != slurp(t, in) {
		t.Error("not what went in")
	}
	fails(t, map[string]failing{
		"input without format":   {"ErrUsage", []string{"params", "list", "-"}},
		"convert without format": {"ErrUsage", []string{"params", "convert", "-", out + ".npz"}},
		"no such format":         {"ErrUsage", []string{"params", "verify", in, "--from", "onnx"}},
		"no such output":         {"ErrUsage", []string{"params", "convert", in, out, "--to", "onnx"}},
		"wrong format":           {"ErrFormat", []string{"params", "list", in, "--from", "npz"}},
		"last of safetensors":    {"ErrUsage", []string{"params", "list", in, "--from", "safetensors", "--last-wins"}},
	})
	if o := sublet("params", "convert", in, "-"); o.status != 1 || o.stdout != "" || !strings.Contains(o.stderr, "--to") {
		t.Errorf("%+v", o)
	}
}

// TestParamsLastWins takes the last tensor of a name, where two are an error otherwise.
func TestParamsLastWins(t *testing.T) {
	path := pack(t, "in.params", tensor{"ab", dtype.Int8, nil, int8(1)}, tensor{"c", dtype.Int8, nil, int8(2)}, tensor{"ad", dtype.Int8, nil, int8(3)})
	twice := write(t, "twice.params", bytes.ReplaceAll([]byte(slurp(t, path)), []byte("ad"), []byte("ab")))
	out := filepath.Join(t.TempDir(), "out.params")
	for _, args := range [][]string{{"list"}, {"verify"}, {"get"}, {"convert"}} {
		args = append([]string{"params"}, append(args, twice)...)
		switch args[1] {
		case "get":
			args = append(args, "ab")
		case "convert":
			args = append(args, out)
		}
		if o := sublet(args...); o.status != 1 || !strings.Contains(o.stderr, "a name occurs twice") || !strings.Contains(o.stderr, "--last-wins") {
			t.Errorf("%s: %+v", args, o)
		}
		text := must(t, append(args, "--last-wins")...)
		want := map[string]string{"get": "  3\nab: ", "verify": "tensors: 2, ", "convert": "tensors: 2, ", "list": "NAME  DTYPE  SHAPE   OFFSET  BYTES\nc "}[args[1]]
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", args, text, want)
		}
		args[2] = "-"
		o := subletFrom(pipe(t, slurp(t, twice)), append(args, "--last-wins", "--from", "params")...)
		if o.status != 0 || o.stdout != text {
			t.Errorf("%s: %+v, want %q", args, o, text)
		}
	}
	if text := must(t, "params", "get", out, "ab"); !strings.HasPrefix(text, "  3\n") {
		t.Errorf("%q", text)
	}
}

// TestStandardOutput writes nothing but the result there.
func TestStandardOutput(t *testing.T) {
	a := floats(t, 2, 2, 1, 2, 3, 4)
	in := pack(t, "in.params", some...)
	for _, c := range []struct {
		report string
		args   []string
		want   []float32
	}{
		{"2x2 float32 in ", []string{"eval", "A+1", "-i", "A=" + a, "--driver", "cpu", "-o", "-"}, []float32{2, 3, 4, 5}},
		{"2x2 float32 in ", []string{"mul", a, a, "--driver", "cpu", "-o", "-"}, []float32{7, 10, 15, 22}},
		{`{"rows":2,`, []string{"mul", a, a, "--driver", "cpu", "-o", "-", "--json"}, []float32{7, 10, 15, 22}},
		{"weight: 2x3 float32", []string{"params", "get", in, "weight", "-o", "-"}, []float32{1, 2, 3, 4, 5, 6}},
		{"DEVICE", []string{"run", wgsl(t, "fn f(i: u32) { a[i] = 7.0; }"), "-g", "3", "-a", "a=3xfloat32", "-o", "a=-"}, []float32{7, 7, 7}},
	} {
		o := sublet(c.args...)
		r, err := npy.NewReader(strings.NewReader(o.stdout), int64(len(o.stdout)))
		if err != nil || o.status != 0 || !strings.HasPrefix(o.stderr, c.report) {
			t.Errorf("%s: %v, status %d, %q", c.args, err, o.status, o.stderr)
			continue
		}
		if v, err := npy.Read[float32](r); err != nil || !slices.Equal(v, c.want) {
			t.Errorf("%s: %v, %v", c.args, v, err)
		}
	}
	if o := sublet("mul", dictionary, a); !strings.Contains(o.stderr, "sublet params get") {
		t.Errorf("%+v", o)
	}
	// Not even what went wrong.
	for _, args := range [][]string{
		{"mul", a, filepath.Join(t.TempDir(), "none.npy"), "-o", "-", "--json"},
		{"params", "convert", a + ".params", "-", "--to", "npz", "--json"},
		{"params", "get", in, "none", "-o", "-", "--json"},
	} {
		if o := sublet(args...); o.status != 1 || o.stdout != "" || !strings.Contains(o.stderr, `"code":"Err`) {
			t.Errorf("%s: %+v", args, o)
		}
	}
}
