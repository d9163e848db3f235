// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestPrepareVerifies(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "mnist.tgz")
	if err := os.WriteFile(in, []byte("another archive"), 0o600); err != nil {
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
	type matrix struct {
		rows, cols int
		data       []float32
	}
	x := matrix{3, 2, []float32{1, -2, 3, 4, -5, 6}}
	c := matrix{2, 2, []float32{35, -20, -20, 56}}
	nan := float32(math.NaN())
	for name, test := range map[string]struct {
		c  matrix
		ok bool
	}{
		"right":       {c, true},
		"wrong":       {matrix{2, 2, []float32{35, -20, -20, 56.001}}, false},
		"NaN":         {matrix{2, 2, []float32{35, nan, -20, 56}}, false},
		"wrong shape": {x, false},
	} {
		xs, cs := filepath.Join(dir, "x.npy"), filepath.Join(dir, "c.npy")
		if err := save(xs, x.rows, x.cols, x.data); err != nil {
			t.Fatal(err)
		}
		if err := save(cs, test.c.rows, test.c.cols, test.c.data); err != nil {
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
