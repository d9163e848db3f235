// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// TestEvalTyped evaluates expressions as people type them.
func TestEvalTyped(t *testing.T) {
	a, b := floats(t, 2, 2, 4, 2, 2, 3), floats(t, 2, 1, 2, 3)
	for text, want := range map[string]string{
		"-A": "-4 -2 -2 -3", "-T(b)*A": "-14 -13", "-A[0]": "-4 -2", "-(A)": "-4 -2 -2 -3", "-2**2": "-4", "fill(2, 1, 7)": "7 7", "eye(2)*2": "2 0 0 2",
		"A @ b": "14 13", "A ** 2": "16 4 4 9", "A[-1, 0]": "2", "(A*b)[1:]": "13", "solve(A, b)": "0 1", "B = A*A; B[0]": "20 14", "x = 2; -x*b": "-4 -6",
		"-onehot(fill(1, 1, 1), 2)": "-0 -1", "-inv(eye(1))": "-1", "int32(2.5*b)": "5 7",
	} {
		out := must(t, "eval", text, "-i", "A="+a, "-i", "b="+b, "--driver", "cpu")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := strings.Join(strings.Fields(strings.Join(lines[:len(lines)-1], " ")), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, args := range [][]string{{"--driver", "cpu", "eval", "-A", "-i", "A=" + a}, {"eval", "-i", "A=" + a, "--driver", "cpu", "-A"}, {"eval", "-iA=" + a, "--driver=cpu", "-A"}} {
		if out := must(t, args...); !strings.HasPrefix(out, "  -4  -2\n") {
			t.Errorf("%q: %q", args, out)
		}
	}
	fails(t, map[string]failing{
		"floor division":   {"ErrSyntax", []string{"eval", "A // 2", "-i", "A=" + a}},
		"chain":            {"ErrSyntax", []string{"eval", "0 < A < 1", "-i", "A=" + a}},
		"exclusive or":     {"ErrSyntax", []string{"eval", "A ^ 2", "-i", "A=" + a}},
		"misspelt":         {"ErrName", []string{"eval", "mean_cols(A)", "-i", "A=" + a}},
		"out of range":     {"ErrIndex", []string{"eval", "A[2]", "-i", "A=" + a}},
		"no such result":   {"ErrName", []string{"eval", "B = A", "-i", "A=" + a, "-o", "C=" + filepath.Join(t.TempDir(), "c.npy")}},
		"no such flag":     {"ErrUsage", []string{"eval", "--out", "A", "-i", "A=" + a}},
		"singular":         {"ErrNotSquare", []string{"eval", "inv(b)", "-i", "b=" + b}},
		"two of the pipes": {"ErrUsage", []string{"eval", "A + B", "-i", "A=-", "-i", "B=-"}},
	})
}

// TestEvalFiles writes several results, and reads and writes text and small integers.
func TestEvalFiles(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")
	write := func(text string) {
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("height, weight\n1.5, 2\n\n-3e2,NaN\n")
	binary := filepath.Join(dir, "b.npy")
	must(t, "eval", "B = A + 1; C = B*2\nB - C", "-i", "A="+in, "-o", out, "-o", "B="+binary, "--driver", "cpu")
	got, err := os.ReadFile(out)
	if err != nil || string(got) != "-2.5,-3\n299,NaN\n" {
		t.Errorf("wrote %q: %v", got, err)
	}
	if h, v := read[float32](t, binary); h.Shape[0] != 2 || v[0] != 2.5 || v[2] != -299 {
		t.Errorf("wrote %v %v", h, v)
	}
	for name, text := range map[string]string{"ragged": "1,2\n3\n", "a word": "1,2\n3,four\n", "beyond": "1e39\n", "quotes": "1,\"2\n"} {
		write(text)
		fails(t, map[string]failing{name: {"ErrFormat", []string{"eval", "A", "-i", "A=" + in, "--driver", "cpu"}}})
	}
	write("")
	if text := must(t, "eval", "sum(A)", "-i", "A="+in, "--driver", "cpu"); !strings.HasPrefix(text, "  0\n") {
		t.Errorf("nothing: %q", text)
	}
	write("1,2\n")
	small := save(t, npy.Header{Type: dtype.Int8, Shape: []int64{1, 3}}, []int8{100, -2, 3})
	must(t, "eval", "A + A", "-i", "A="+small, "-o", binary, "--driver", "cpu")
	if h, v := read[int8](t, binary); h.Type != dtype.Int8 || v[0] != -56 || v[1] != -4 {
		t.Errorf("wrote %v %v", h, v)
	}
	for _, path := range []string{small, in} {
		pipe, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		if run([]string{"eval", "sum(A)", "-i", "A=-", "--driver", "cpu"}, pipe, &stdout, &stderr) != 0 {
			t.Errorf("from standard input: %s", stderr.String())
		}
		_ = pipe.Close()
	}
}
