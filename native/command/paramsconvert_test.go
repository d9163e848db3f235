// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
)

// TestParamsFormats lists the same tensors with the same hashes in all formats, and converts each into each.
func TestParamsFormats(t *testing.T) {
	type same struct{ name, dtype, shape, sum string }
	hashes := func(path string) (s []same) {
		var l []listed
		if err := json.Unmarshal([]byte(must(t, "params", "list", path, "--sha256", "--json")), &l); err != nil {
			t.Fatal(err)
		}
		for _, x := range l {
			s = append(s, same{x.Name, x.DType, shownShape(x.Shape), x.SHA256})
		}
		return s
	}
	want := hashes(pack(t, "want.params", some...))
	if len(want) != len(some) {
		t.Fatal(want)
	}
	for _, from := range []string{"a.params", "a.npz", "a.safetensors"} {
		in := pack(t, from, some...)
		if got := hashes(in); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", from, got, want)
		}
		for _, to := range []string{"b.params", "b.npz", "b.safetensors"} {
			out := filepath.Join(t.TempDir(), to)
			text := must(t, "params", "convert", in, out)
			if text != "tensors: 5, bytes of data: 51\n" {
				t.Errorf("%s to %s: %q", from, to, text)
			}
			if got := hashes(out); !slices.Equal(got, want) {
				t.Errorf("%s to %s: %v, want %v", from, to, got, want)
			}
			if slurp(t, out) != slurp(t, pack(t, to, some...)) {
				t.Errorf("%s to %s: not as if written at once", from, to)
			}
		}
	}
}

// TestParamsThereAndBack takes a dictionary of TVM through the other formats.
func TestParamsThereAndBack(t *testing.T) {
	for _, via := range []string{"x.npz", "x.safetensors"} {
		dir := t.TempDir()
		out := filepath.Join(dir, "out.params")
		must(t, "params", "convert", dictionary, filepath.Join(dir, via))
		must(t, "params", "convert", filepath.Join(dir, via), out)
		if slurp(t, out) != slurp(t, dictionary) {
			t.Errorf("through %s it changed", via)
		}
		must(t, "params", "convert", out, out) // in and out
		if slurp(t, out) != slurp(t, dictionary) {
			t.Error("over itself it changed")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestParamsConvertBool(t *testing.T) {
	in := pack(t, "old.params", tensor{"mask", dtype.Bool1, []int64{2}, []byte{1, 0}})
	for _, to := range []string{"b.npz", "b.safetensors"} {
		out := filepath.Join(t.TempDir(), to)
		must(t, "params", "convert", in, out)
		if text := must(t, "params", "get", out, "mask"); text != "  true  false\nmask: 2 bool, 2 bytes\n" {
			t.Errorf("%s: %q", to, text)
		}
	}
}

func TestParamsCast(t *testing.T) {
	in := pack(t, "in.npz", append([]tensor{
		{"double", dtype.Float64, []int64{4}, []float64{0, math.Inf(-1), math.NaN(), 1e-300}},
	}, some...)...)
	out := filepath.Join(t.TempDir(), "out.params")
	var res converted
	if err := json.Unmarshal([]byte(must(t, "params", "convert", in, out, "--cast", "--json")), &res); err != nil {
		t.Fatal(err)
	}
	if res.Tensors != 6 || res.Cast != 2 || res.Nbytes != 47+16 || res.Change != 1 { // 1e-300 becomes 0
		t.Errorf("%+v", res)
	}
	want := slices.Clone(some)
	want[1] = tensor{"scale", dtype.Float32, nil, float32(0.1)}
	if slurp(t, out) == "" {
		t.Error("nothing written")
	}
	in = pack(t, "in.params", some...)
	text := must(t, "params", "convert", in, out, "--cast")
	if text != "tensors: 5, bytes of data: 47, cast to float32: 1, largest relative change: 1.49e-08\n" {
		t.Errorf("%q", text)
	}
	if slurp(t, out) != slurp(t, pack(t, "want.params", want...)) {
		t.Error("not what was wanted")
	}
	many := make([]float64, 300_000) // more than a block
	for i := range many {
		many[i] = float64(i)
	}
	must(t, "params", "convert", pack(t, "in.params", tensor{"many", dtype.Float64, []int64{300, 1000}, many}), out, "--cast")
	array := filepath.Join(t.TempDir(), "many.npy")
	must(t, "params", "get", out, "many", "-o", array)
	if h, v := read[float32](t, array); !slices.Equal(h.Shape, []int64{300, 1000}) || v[299_999] != 299_999 || v[131_072] != 131_072 {
		t.Errorf("%v %v", h, v[:3])
	}
}

// TestParamsChanged finds out that a file is not what its headers were read from.
func TestParamsChanged(t *testing.T) {
	path := pack(t, "in.params", some...)
	f := &archive{app: &app{progress: &progress{bar: silent}}, path: path}
	err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	headers, trailing, err := f.headers(t.Context(), false)
	if err != nil || trailing != 0 {
		t.Fatal(trailing, err)
	}
	more := append(slices.Clone(headers), headers[0])
	other := slices.Clone(headers)
	other[2].Type = dtype.Uint8
	for name, h := range map[string][]file.Header{"fewer": headers[:4], "more": more, "another": other} {
		if err := f.begin(""); err != nil {
			t.Fatal(err)
		}
		if _, err := f.copyTo(t.Context(), &bytes.Buffer{}, h, false); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParamsInterrupted ends between blocks.
func TestParamsInterrupted(t *testing.T) {
	path := pack(t, "in.params", tensor{"x", dtype.Int8, []int64{3 << 20}, make([]int8, 3<<20)})
	ctx, cancel := context.WithCancel(t.Context())
	f := &archive{app: &app{progress: &progress{bar: silent}}, path: path}
	err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	h, err := f.reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = f.pour(ctx, writerFunc(func(b []byte) (int, error) {
		cancel()
		n += len(b)
		return len(b), nil
	}), h)
	if !errors.Is(err, context.Canceled) || n != 1<<20 {
		t.Errorf("%v after %d bytes", err, n)
	}
	if _, _, err := f.headers(ctx, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
