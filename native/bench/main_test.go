// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReport has BENCHMARKS.md, the charts and the README's lines be what make bench-report writes of the figures.
func TestReport(t *testing.T) {
	t.Chdir("../..")
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(results)); err != nil {
		t.Fatal(err)
	}
	written, readme := filepath.Join(folder, "BENCHMARKS.md"), filepath.Join(folder, "README.md")
	text, err := os.ReadFile("README.md")
	if err = errors.Join(err, os.WriteFile(readme, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := report(folder, written, readme); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"BENCHMARKS.md": written, "README.md": readme}
	for _, name := range sets {
		if _, err := os.Stat(filepath.Join(results, name+".svg")); !errors.Is(err, fs.ErrNotExist) {
			files[filepath.Join(results, name+".svg")] = filepath.Join(folder, name+".svg")
		}
	}
	for is, want := range files {
		a, err := os.ReadFile(is)
		b, failed := os.ReadFile(want)
		if err = errors.Join(err, failed); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not what make bench-report writes: %v", is, err)
		}
	}
	if len(files) < 3 {
		t.Errorf("only %d files", len(files))
	}
}

// TestParse reads the output of benchmarks, each of several times.
func TestParse(t *testing.T) {
	var s set
	err := s.parse(strings.NewReader(`goos: linux
cpu: Some Processor
note: as it was
BenchmarkMul/2-2   	       1	  3000000 ns/op
BenchmarkMul/1-2   	       1	  3000000 ns/op
BenchmarkGonumFactors/lu/512-2   	       1	  3000000 ns/op
BenchmarkFactors/lu/512-2        	       1	  1000000 ns/op	 3 GFLOP/s
BenchmarkFactors/lu/512-2        	       1	  9000000 ns/op
BenchmarkFactors/lu/512-2        	       1	  2000000 ns/op
BenchmarkRace/sum1048576/plain_JavaScript-2 	       1	  500000.5 ns/op
--- FAIL: BenchmarkOther
`))
	if err != nil || !strings.HasPrefix(s.Machine, "Some Processor, ") || !slices.Equal(s.Notes, []string{"as it was"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if !slices.Equal(s.Columns, []string{"Sublet", "gonum", "plain JavaScript"}) || len(s.Rows) != 4 || s.Rows[0].Name != "Mul, 1" || s.Rows[1].Name != "Mul, 2" {
		t.Fatalf("%+v", s)
	}
	if r := s.Rows[2]; r.Name != "Factors, lu, 512" || !maps.Equal(r.Ms, map[string]float64{"Sublet": 2, "gonum": 3}) {
		t.Errorf("%+v", r)
	}
	if r := s.Rows[3]; r.Name != "sum1048576" || !maps.Equal(r.Ms, map[string]float64{"plain JavaScript": 0.5000005}) {
		t.Errorf("%+v", r)
	}
}

// TestPeers reads results of both benchmarks with other libraries: what is wrong or not offered has no time.
func TestPeers(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(results, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("README.md", []byte("a\n"+begin+"\nold\n"+end+"\nz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, kept, row string }{
		"web.in": {
			`{"when": "2026-01-02T03:04:05Z", "chrome": "150", "machine": {"cpu": "X", "cores": 2}, "peers": {"raw": {}, "tfjs": {"info": {"version": "4"}}, "sublet": {}},
			"items": {"sum1M": {"peers": {"sublet": {"ms": 1}, "raw": {"ms": 2, "wrong": true}, "tfjs": {"ms": 3}}}}, "cold": {"sublet": {"total_ms": 9, "bytes_gzip": 1024}}}`,
			"peers-web", "| sum1M | 1 |  | 3 |\n| first product of a fresh page | 9 |  |  |\n| **relative to Sublet's** | **1.00** | | **3.00** |\n",
		},
		"native.in": {
			`{"When": "2026-01-02", "Machine": "Y", "Peers": [{"Name": "born", "Note": "b"}, {"Name": "ours", "Note": "o"}], "Items": ["sum1M"],
			"Cells": {"sum1M": {"ours": {"Median": 2}, "born": {"Median": 1, "NA": "no"}}}}`,
			"peers-native", "| sum1M | 2 |  |\n",
		},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"peers", name}); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"report"}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("BENCHMARKS.md")
		if _, failed := os.Stat(filepath.Join(results, c.kept+".json")); err != nil || failed != nil || !strings.Contains(string(text), c.row) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if text, err := os.ReadFile("README.md"); err != nil || strings.Contains(string(text), "old") || !strings.Contains(string(text), "items (2026-01-02, X, 2 cores, Chromium 150 with SwiftShader): TensorFlow.js 3.00\n"+end+"\nz\n") {
		t.Errorf("README.md: %v\n%s", err, text)
	}
	for name, text := range map[string]string{"empty": "{}", "text": "x", "other": `{"Cells": 3}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"peers", name}); err == nil {
			t.Errorf("%s was kept", name)
		}
	}
	if err := run([]string{"record", "other", "x"}); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}
