// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSparseFiles evaluates with sparse matrices of both kinds of files, and writes results to all of them.
func TestSparseFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, data string) string { return fileOf(t, dir, name, data) }
	at := func(name string) string { return filepath.Join(dir, name) }
	s := put("s.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 1\n2 3 2.5\n3 1 -1\n3 3 4\n")
	x := put("x.csv", "1,2\n3,4\n5,6\n")
	must(t, "eval", "S*X", "-i", "S="+s, "-i", "X="+x, "-o", at("p.csv"), "--driver", "cpu")
	if got := slurp(t, at("p.csv")); got != "1,2\n12.5,15\n19,22\n" {
		t.Errorf("%q", got)
	}
	must(t, "eval", "G = S*S.T; D = G + 1", "-i", "S="+s, "-o", "G="+at("g.npz"), "-o", "D="+at("d.mtx"), "--driver", "cpu")
	must(t, "eval", "G", "-i", "G="+at("g.npz"), "-o", at("g.mtx"), "--driver", "cpu")
	want := "%%MatrixMarket matrix coordinate real general\n3 3 7\n1 1 1\n1 3 -1\n2 2 6.25\n2 3 10\n3 1 -1\n3 2 10\n3 3 17\n"
	if got := slurp(t, at("g.mtx")); got != want {
		t.Errorf("%q", got)
	}
	if got := slurp(t, at("d.mtx")); got != "%%MatrixMarket matrix array real general\n3 3\n2\n1\n0\n1\n7.25\n11\n0\n11\n18\n" {
		t.Errorf("%q", got)
	}
	must(t, "eval", "G - G", "-i", "G="+at("d.mtx"), "-o", at("z.npy"), "--driver", "cpu")
	if h, v := read[float32](t, at("z.npy")); !slices.Equal(h.Shape, []int64{3, 3}) || !slices.Equal(v, make([]float32, 9)) {
		t.Errorf("%v %v", h, v)
	}
	vast := put("vast.mtx", "%%MatrixMarket matrix coordinate pattern general\n100000 100000 2\n7 9\n100000 100000\n")
	if out := must(t, "eval", "2*V", "-i", "V="+vast, "--driver", "cpu"); !strings.Contains(out, "[6, 8] 2\n[99999, 99999] 2\n") || !strings.Contains(out, "entries: 2") {
		t.Errorf("%q", out)
	}
	fails(t, map[string]failing{
		"no matrix":  {"ErrFormat", []string{"eval", "S", "-i", "S=" + put("bad.mtx", "hello\n")}},
		"no archive": {"ErrType", []string{"eval", "S", "-i", "S=" + put("bad.npz", "hello\n")}},
		"too large":  {"ErrOverflow", []string{"eval", "S", "-i", "S=" + put("large.mtx", "%%MatrixMarket matrix array real general\n1 1\n1e300\n")}},
		"dense":      {"ErrUnsupported", []string{"eval", "X", "-i", "X=" + x, "-o", at("dense.npz")}},
		"vast":       {"ErrLimit", []string{"eval", "V + 1", "-i", "V=" + vast}},
	})
}
