// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestLeadingMinus gives expressions that begin with a minus as people type them, anywhere among the flags.
func TestLeadingMinus(t *testing.T) {
	a := "A=" + floats(t, 1, 2, 3, 4)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"  -3  -4\n", []string{"eval", "-A", "-i", a}},
		{"  -3  -4\n", []string{"eval", "-i", a, "-A"}},
		{"  -3  -4\n", []string{"--driver", "cpu", "eval", "--input", a, "-1*A"}},
		{"  -2  -3\n", []string{"eval", "-(A) + 1", "-i", a, "--timeout=1m"}},
		{"  -3  -4\n", []string{"eval", "-i", a, "--", "-A"}},
		{"  3  4\n", []string{"eval", "--A", "-i" + a}},
		{"  0\n", []string{"eval", "-imag*0", "-i", "imag=" + floats(t, 1, 1, 1)}},
	} {
		if got := must(t, append([]string{"--driver=cpu"}, c.args...)...); !strings.HasPrefix(strings.ReplaceAll(got, "-0", "0"), c.want) && !strings.HasPrefix(got, "  -0") {
			t.Errorf("%q printed %q, want %q", c.args, got, c.want)
		}
	}
	fails(t, map[string]failing{
		"unknown flag":    {"ErrUsage", []string{"eval", "A", "-i", a, "--fast"}},
		"two expressions": {"ErrUsage", []string{"eval", "A", "-A", "-i", a}},
		"no value":        {"ErrUsage", []string{"eval", "-A", "-i"}},
	})
}

// TestNoMatrices evaluates what needs no file.
func TestNoMatrices(t *testing.T) {
	for _, d := range drivers {
		for text, want := range map[string]string{
			"fill(2,2,1)": "  1  1\n  1  1\n2x2 float32", "eye(3)*2": "  2  0  0\n  0  2  0\n  0  0  2\n3x3 float32", "arange(4)": "  0  1  2  3\n1x4 float32",
			"int8(arange(3))": "  0  1  2\n1x3 int8", "-1 + 2*3": "  5\n1x1 float32", "bool(arange(2))": "  false  true\n1x2 bool",
			"sqrt(2.25)": "  1.5\n1x1 float32", "fill(1,2,-1.5)": "  -1.5  -1.5\n", "max(1.5,2)": "  2\n1x1 float32", "0*rand(1,2)+fill(1,2,.5)": "  0.5  0.5\n",
			"randombits(1, 1) / randombits(1, 1)": "  1\n1x1 uint32", "x = 1; x + pi - pi": "  1\n",
		} {
			if got := must(t, "eval", text, "--driver", d); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s printed %q, want %q", d, text, got, want)
			}
		}
	}
}

// TestTypes evaluates expressions of files of several element types.
func TestTypes(t *testing.T) {
	u := save(t, npy.Header{Type: dtype.Uint8, Shape: []int64{2, 1}}, []uint8{1, 0})
	m := save(t, npy.Header{Type: dtype.Bool8, Shape: []int64{1, 2}}, []uint8{1, 0})
	files := []string{"-i", "U=" + u, "-i", "M=" + m, "-i", "A=" + floats(t, 2, 2, 1, 2, 3, 4)}
	evaluated := func(args ...string) outcome { return sublet(append(append([]string{"eval"}, args...), files...)...) }
	for _, d := range drivers {
		for text, want := range map[string]string{
			"float32(U) + A": "  2  3\n  3  4\n2x2 float32", "takerows(A, U)": "  3  4\n  1  2\n2x2 float32", "where(M, A, -A)": "  1  -2\n  3  -4\n2x2 float32",
			"where(A < 3, U, 7)": "  1  1\n  7  7\n2x2 uint8", "where(A/9, int32(A), 0)": "  1  2\n  3  4\n2x2 int32", "fill(1,1,.5)": "  0.5\n1x1 float32",
			"where(M, 2j * A, 0)": "  0+2j  0+0j\n  0+6j  0+0j\n2x2 complex64",
		} {
			if o := evaluated(text, "--driver", d); o.status != 0 || !strings.HasPrefix(o.stdout, want) {
				t.Errorf("%s: %s: %+v, want %q", d, text, o, want)
			}
		}
	}
	for text, want := range map[string]string{
		"U*T(M) + A": "Mul: invalid argument: uint8 with bool; ", "A + U": "Add: invalid argument: float32 with uint8; ", "vstack(U, A)": "VStack: invalid argument: uint8 with float32; ",
		"where(M, A, U)": "Where: invalid argument: float32 with uint8; ",
	} {
		for _, flags := range [][]string{{text}, {text, "--explain", "plan"}} {
			if o := evaluated(append(flags, "--driver", "cpu")...); o.status != 1 || !strings.Contains(o.stderr, want+"convert one, as in float32(A), or use --cast\n") {
				t.Errorf("%q: %+v", flags, o)
			}
		}
	}
	if o := sublet("eval", "randombits(1, 1) + eye(1)", "--driver", "cpu"); o.status != 1 || !strings.Contains(o.stderr, "uint32 with float32; convert one, as in float32(A)\n") {
		t.Errorf("%+v", o)
	}
}

// TestSingularSystem solves what has no solution.
func TestSingularSystem(t *testing.T) {
	a, b := "A="+floats(t, 2, 2, 1, 2, 2, 4), "b="+floats(t, 2, 1, 1, 2)
	for _, d := range drivers {
		fails(t, map[string]failing{
			"a system":         {"ErrSingular", []string{"eval", "solve(A, b) + 1", "-i", a, "-i", b, "--driver", d}},
			"the first of two": {"ErrSingular", []string{"eval", "x = inv(A); x[0] * b", "-i", a, "-i", b, "--driver", d}},
			"not definite":     {"ErrNotPosDef", []string{"eval", "cholesky(-A)", "-i", a, "--driver", d}},
		})
	}
}

// TestStatements writes several results.
func TestStatements(t *testing.T) {
	a := "A=" + floats(t, 2, 2, 1, 2, 3, 4)
	dir := t.TempDir()
	b, c := filepath.Join(dir, "b.npy"), filepath.Join(dir, "c.npy")
	for _, d := range drivers {
		text := must(t, "eval", "B = A*A\nC = B + 1", "-i", a, "-o", "B="+b, "-o", "C="+c, "--driver", d)
		if !strings.HasPrefix(text, "B: 2x2 float32 in "+b+"\nC: 2x2 float32 in "+c+"\n2x2 float32 in ") || !strings.Contains(text, "dispatches: 2,") {
			t.Errorf("%s: printed %q", d, text)
		}
		for path, want := range map[string][]float32{b: {7, 10, 15, 22}, c: {8, 11, 16, 23}} {
			if _, v := read[float32](t, path); !slices.Equal(v, want) {
				t.Errorf("%s: %s has %v", d, path, v)
			}
		}
		must(t, "eval", "B = A*A; B % 2; argmaxrows(A)", "-i", a, "-o", c, "--driver", d)
		if h, v := read[int32](t, c); h.Type != dtype.Int32 || !slices.Equal(v, []int32{1, 1}) {
			t.Errorf("%s: %v %v", d, h, v)
		}
	}
	var r result
	if err := json.Unmarshal([]byte(must(t, "eval", "B = A*A; B[0]", "-i", a, "-o", "B="+b, "--json")), &r); err != nil || len(r.Written) != 1 || r.Written[0].Rows != 2 || r.Rows != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	fails(t, map[string]failing{
		"no such name":   {"ErrName", []string{"eval", "B = A", "-i", a, "-o", "C=" + c}},
		"two last ones":  {"ErrUsage", []string{"eval", "B = A", "-i", a, "-o", b, "-o", c}},
		"one file twice": {"ErrUsage", []string{"eval", "B = A; C = A", "-i", a, "-o", "B=" + b, "-o", "C=" + b}},
		"name twice":     {"ErrSyntax", []string{"eval", "A = 1", "-i", a}},
		"other spelling": {"ErrUsage", []string{"eval", "B = A; C = A", "-i", a, "-o", "B=" + b, "-o", "C=" + filepath.Dir(b) + "/./" + filepath.Base(b)}},
		"no file":        {"ErrUsage", []string{"eval", "A", "-i", a, "-o", "B="}},
		"comment":        {"ErrSyntax", []string{"eval", "A // 2", "-i", a}},
		"near miss":      {"ErrName", []string{"eval", "mean_cols(A)", "-i", a}},
		"out of range":   {"ErrIndex", []string{"eval", "A[5]", "-i", a}},
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCSV reads and writes lines of numbers.
func TestCSV(t *testing.T) {
	dir := t.TempDir()
	put := func(name, data string) string { return fileOf(t, dir, name, data) }
	a := put("a.csv", "\ufeff1, 2.5,-3e-2\r\n\"4\",nan,-inf\n")
	endless := put("endless.csv", "")
	devtest.Check(t, os.Truncate(endless, mostOfLine+1<<20))
	fails(t, map[string]failing{"a line without an end": {"ErrFormat", []string{"eval", "A", "-i", "A=" + endless}}})
	devtest.Check(t, os.Remove(endless))
	out := filepath.Join(dir, "out.CSV")
	must(t, "eval", "A", "-i", "A="+a, "-o", out, "--driver", "cpu")
	if got := slurp(t, out); got != "1,2.5,-0.03\n4,NaN,-Inf\n" {
		t.Errorf("%q", got)
	}
	must(t, "eval", "A == A", "-i", "A="+out, "-o", filepath.Join(dir, "o.npy"), "--driver", "cpu")
	if h, v := read[float32](t, filepath.Join(dir, "o.npy")); !slices.Equal(h.Shape, []int64{2, 3}) || !slices.Equal(v, []float32{1, 1, 1, 1, 0, 1}) {
		t.Errorf("%v %v", h, v)
	}
	must(t, "eval", "bool(A - 1)", "-i", "A="+put("named.csv", "x,y\n1,2\n"), "--header", "-o", out, "--driver", "cpu")
	if got := slurp(t, out); got != "0,1\n" {
		t.Errorf("%q", got)
	}
	must(t, "mul", a, put("b.csv", "1\n0\n0\n"), "-o", out, "--driver", "cpu")
	if got := slurp(t, out); got != "1\nNaN\n" {
		t.Errorf("%q", got)
	}
	if got := must(t, "eval", "A", "-i", "A="+put("d.csv", "0.1\n"), "--cast"); !strings.Contains(got, "by --cast: 1.49e-08") {
		t.Errorf("%q", got)
	}
	fails(t, map[string]failing{
		"header":    {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("h.csv", "x,y\n1,2\n")}},
		"ragged":    {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("r.csv", "1,2\n3\n")}},
		"no number": {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("n.csv", "1,2\n3,four\n")}},
		"missing":   {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("m.csv", "1,\n")}},
		"quotes":    {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("q.csv", "1,\"2\n")}},
		"empty":     {"ErrFormat", []string{"eval", "A", "-i", "A=" + put("e.csv", "")}},
		"too large": {"ErrOverflow", []string{"eval", "A", "-i", "A=" + put("l.csv", "1e39\n")}},
		"huge":      {"ErrOverflow", []string{"eval", "A", "-i", "A=" + put("g.csv", "1e999\n")}},
		"none":      {"ErrNotExist", []string{"eval", "A", "-i", "A=" + filepath.Join(dir, "none.csv")}},
	})
	for name, want := range map[string]string{"r.csv": "line 2", "n.csv": "line 2, column 3", "h.csv": "--header"} {
		if o := sublet("eval", "A", "-i", "A="+filepath.Join(dir, name)); !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %q does not say %q", name, o.stderr, want)
		}
	}
}

// TestEvalStandardInput reads either format from a pipe.
func TestEvalStandardInput(t *testing.T) {
	a := floats(t, 2, 2, 1, 2, 3, 4)
	for _, data := range []string{slurp(t, a), "1,2\n3,4\n"} {
		o := subletFrom(pipe(t, data), "eval", "-A", "-i", "A=-", "--driver", "cpu")
		if o.status != 0 || !strings.HasPrefix(o.stdout, "  -1  -2\n  -3  -4\n") {
			t.Errorf("%+v", o)
		}
	}
	if o := subletFrom(opened(t, a), "eval", "A*B", "-i", "A=-", "-i", "B="+a, "-o", "-", "--driver", "cpu"); o.status != 0 || !strings.HasPrefix(o.stdout, npyMagic) {
		t.Errorf("%+v", o)
	}
	for _, data := range []string{"", "\x93NUM", "PK\x03\x04", "hello\n"} {
		if o := subletFrom(pipe(t, data), "eval", "A", "-i", "A=-", "--driver", "cpu"); o.status != 1 || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, "standard input") {
			t.Errorf("%q: %+v", data, o)
		}
	}
	fails(t, map[string]failing{
		"twice": {"ErrUsage", []string{"eval", "A+B", "-i", "A=-", "-i", "B=-"}},
		"none":  {"ErrUsage", []string{"eval", "A", "-i", "A=-"}},
	})
}

func plus[T npy.Elem](t *testing.T, typ dtype.Type, v, want []T) {
	t.Helper()
	in := save(t, npy.Header{Type: typ, Shape: []int64{int64(len(v))}}, v)
	for _, d := range drivers {
		out := filepath.Join(t.TempDir(), "out.npy")
		must(t, "eval", "A + 1", "-i", "A="+in, "-o", out, "--driver", d)
		if h, got := read[T](t, out); h.Type != typ || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", d, h, got, want)
		}
	}
}

// TestNarrowTypes reads and writes elements of fewer than 32 bits as they are.
func TestNarrowTypes(t *testing.T) {
	plus(t, dtype.Int8, []int8{-128, 0, 127}, []int8{-127, 1, -128})
	plus(t, dtype.Uint8, []uint8{0, 254, 255}, []uint8{1, 255, 0})
	plus(t, dtype.Int16, []int16{-5, math.MaxInt16}, []int16{-4, math.MinInt16})
	plus(t, dtype.Uint16, []uint16{7, math.MaxUint16}, []uint16{8, 0})
	plus(t, dtype.Bool8, []uint8{0, 1, 1}, []uint8{1, 1, 1})
	for _, typ := range []dtype.Type{dtype.Int64, dtype.Uint64} {
		in := save(t, npy.Header{Type: typ, Shape: []int64{1}}, []uint64{1}[:1:1])
		if o := sublet("eval", "A", "-i", "A="+in); o.status != 1 || !strings.Contains(o.stderr, "--cast converts to float32") {
			t.Errorf("%+v", o)
		}
	}
}

// TestBlocks writes results of several blocks, and computes a product in several.
func TestBlocks(t *testing.T) {
	defer func(b int, p float64) { blockBytes, longProduct = b, p }(blockBytes, longProduct)
	v := make([]float32, 200*3)
	for i := range v {
		v[i] = float32(i)
	}
	a, out := floats(t, 200, 3, v...), filepath.Join(t.TempDir(), "out.npy")
	unit := floats(t, 3, 3, 2, 0, 0, 0, 2, 0, 0, 0, 2)
	for i := range v {
		v[i] *= 2
	}
	for _, blockBytes = range []int{1, 100, 1 << 20} {
		for _, longProduct = range []float64{0, 1e11} {
			for _, d := range drivers {
				must(t, "mul", a, unit, "-o", out, "--driver", d)
				if h, got := read[float32](t, out); !slices.Equal(h.Shape, []int64{200, 3}) || !slices.Equal(got, v) {
					t.Errorf("%s, blocks of %d: %v", d, blockBytes, h)
				}
			}
		}
		text := must(t, "eval", "A @ U", "-i", "A="+a, "-i", "U="+unit, "--driver", "cpu")
		if lines := strings.Split(text, "\n"); len(lines) != 13 || strings.Join(strings.Fields(lines[10]), " ") != "1194 1196 1198" {
			t.Errorf("blocks of %d: %q", blockBytes, text)
		}
	}
	must(t, "eval", "E*T(E)", "-i", "E="+floats(t, 0, 3), "-o", out)
	if h, _ := read[float32](t, out); !slices.Equal(h.Shape, []int64{0, 0}) {
		t.Errorf("%v", h)
	}
}

// TestBlocksOfTails computes products with what follows element by element in blocks of rows, and has the same results.
func TestBlocksOfTails(t *testing.T) {
	defer func(p float64) { longProduct = p }(longProduct)
	random := func(rows, cols int, seed string) string {
		path := filepath.Join(t.TempDir(), "in.npy")
		must(t, "eval", fmt.Sprintf("normal(%d, %d, 0, 1, %s)", rows, cols, seed), "-o", path, "--driver", "cpu")
		return path
	}
	files := []string{"-i", "A=" + random(200, 30, "1"), "-i", "B=" + random(30, 40, "2"), "-i", "bias=" + random(1, 40, "3"), "-i", "C=" + random(200, 40, "4")}
	var dispatches [2]int
	for _, d := range drivers {
		for text, divides := range map[string]bool{
			"A*B": true, "A@B+1": true, "tanh(A*B + bias)": true, "0.5*A*B": true, "C - A*B": true, "R = A * B": true, "T(T(B)*T(A))": true, "C*B.T*B": false,
			"softmax(A*B)": false, "sum(A*B)": false, "A*B + C*B.T*B": false, "A + 1": false, "A*B; A*B": false, "sqrt(A[0]*B)": false, "colmeans = meancols(A*B)": false,
		} {
			var bits [2]string
			for i, p := range []float64{1e18, 0} {
				longProduct = p
				out := filepath.Join(t.TempDir(), "out.npy")
				var r result
				if err := json.Unmarshal([]byte(must(t, append([]string{"eval", text, "--json", "--driver", d, "-o", out}, files...)...)), &r); err != nil {
					t.Fatal(err)
				}
				bits[i], dispatches[i] = slurp(t, out), int(r.Dispatches)
			}
			if bits[0] != bits[1] || (dispatches[0] < dispatches[1]) != divides {
				t.Errorf("%s: %s: %d launches, %d in blocks, same %v", d, text, dispatches[0], dispatches[1], bits[0] == bits[1])
			}
		}
	}
	longProduct = 0
	named := filepath.Join(t.TempDir(), "named.npy")
	must(t, append([]string{"eval", "R = A*B", "-o", "R=" + named}, files...)...)
	if h, _ := read[float32](t, named); !slices.Equal(h.Shape, []int64{200, 40}) {
		t.Errorf("%v", h)
	}
	fails(t, map[string]failing{"name twice": {"ErrSyntax", append([]string{"eval", "C = A*B"}, files...)}})
}

// TestEndings refuses files of formats that there are not.
func TestEndings(t *testing.T) {
	a, dir := floats(t, 1, 1, 2), t.TempDir()
	for _, name := range []string{"out.txt", "out.npy.gz", "out.json"} {
		out := filepath.Join(dir, name)
		for _, args := range [][]string{{"mul", a, a, "-o", out}, {"eval", "B = A", "-i", "A=" + a, "-o", "B=" + out}} {
			if o := sublet(args...); o.status != 1 || !strings.Contains(o.stderr, "end in .npy, .csv, .mtx or .npz, not in "+filepath.Ext(name)) {
				t.Errorf("%q: %+v", args, o)
			}
		}
	}
	must(t, "mul", a, a, "-o", filepath.Join(dir, "out"), "--driver", "cpu")
	if _, v := read[float32](t, filepath.Join(dir, "out")); !slices.Equal(v, []float32{4}) {
		t.Errorf("%v", v)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestExplain prints plans.
func TestExplain(t *testing.T) {
	a := floats(t, 2, 2, 1, 2, 3, 4)
	if text := must(t, "eval", "--explain", "plan", "tanh(A*A + 1)", "-i", "A="+a, "--driver", "cpu"); !strings.HasPrefix(text, "1: product/") ||
		!strings.Contains(text, "kernels: 1, ") {
		t.Errorf("%q", text)
	}
	if text := must(t, "eval", "--explain=wgsl", "A + eye(2)", "-i", "A="+a, "--driver", "cpu"); !strings.Contains(text, "fn main(") {
		t.Errorf("%q", text)
	}
	if text := must(t, "eval", "--explain", "plan", "eye(2)", "--driver", "cpu", "--json"); !strings.Contains(text, `"bytes_written":16`) {
		t.Errorf("%q", text)
	}
	fails(t, map[string]failing{
		"another":   {"ErrUsage", []string{"eval", "--explain", "all", "A", "-i", "A=" + a}},
		"output":    {"ErrUsage", []string{"eval", "--explain", "plan", "A", "-i", "A=" + a, "-o", a}},
		"malformed": {"ErrSyntax", []string{"eval", "--explain", "plan", "A +", "-i", "A=" + a}},
	})
	for text, one := range map[string]bool{"A; A": true, "B = A*A": true, "A\nA": true, "A +\n)": false, "A == ": false} {
		if o := sublet("eval", "--explain", "plan", text, "-i", "A="+a, "--driver", "cpu"); o.status != 1 || strings.Contains(o.stderr, "it explains one expression") != one {
			t.Errorf("%q: %+v", text, o)
		}
	}
}
