// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestEvalValues has the rows in JSON, where no file gets them.
func TestEvalValues(t *testing.T) {
	inf := float32(math.Inf(1))
	special := floats(t, 2, 3, 0.1, -inf, inf, float32(math.NaN()), 3, -16777216)
	for _, c := range []struct {
		expr, path, want string
	}{
		{"A", special, `[[0.1,"-Infinity","Infinity"],["NaN",3,-16777216]]`},
		{"A", floats(t, 0, 3), `[]`},
		{"A", floats(t, 2, 0), `[[],[]]`},
		{"A", save(t, npy.Header{Type: dtype.Uint32, Shape: []int64{2}}, []uint32{7, math.MaxUint32}), `[[7,4294967295]]`},
		{"A", save(t, npy.Header{Type: dtype.Float16, Shape: []int64{2}}, []matrix.Half{matrix.ToHalf(1.5), dtype.HalfFromBits(0x7e00)}), `[[1.5,"NaN"]]`},
		{"fill(100, 100, 2) + A", floats(t, 1, 1, 1), "[" + strings.Repeat(","+"["+strings.Repeat(",3", 100)[1:]+"]", 100)[1:] + "]"},
		{"fill(100, 101, 2) + A", floats(t, 1, 1, 1), ""},
		{"A", floats(t, 10_001, 0), ""},
	} {
		text := must(t, "eval", c.expr, "-i", "A="+c.path, "--driver", "cpu", "--json")
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &got); err != nil || string(got["values"]) != c.want {
			t.Errorf("%s: %v, values %s, want %s", c.expr, err, got["values"], c.want)
		}
	}
	a := floats(t, 2, 2, 1, 2, 3, 4)
	if text := must(t, "mul", a, a, "--driver", "cpu", "--json"); !strings.Contains(text, `"values":[[7,10],[15,22]]`) {
		t.Errorf("%q", text)
	}
}

// TestFloat64 says what a file is, and by how much the option that converts it changes it.
func TestFloat64(t *testing.T) {
	double := save(t, npy.Header{Type: dtype.Float64, Shape: []int64{3}}, []float64{0.1, 2, 0})
	single := floats(t, 1, 3, 1, 2, 3)
	for _, args := range [][]string{
		{"eval", "A", "-i", "A=" + double}, {"mul", double, single}, {"mul", single, double},
	} {
		o := sublet(args...)
		for _, want := range []string{double, "float64", "--cast", "largest relative change"} {
			if o.status != 1 || !strings.Contains(o.stderr, want) {
				t.Errorf("%s: status %d, no %q in %q", args, o.status, want, o.stderr)
			}
		}
	}
	want := (float64(float32(0.1)) - 0.1) / 0.1
	text := must(t, "eval", "A+B", "-i", "A="+double, "-i", "B="+single, "--cast", "--driver", "cpu")
	if !strings.HasSuffix(text, ", largest relative change by --cast: 1.49e-08\n") {
		t.Errorf("%q", text)
	}
	var got result
	text = must(t, "eval", "A+B", "-i", "A="+double, "-i", "B="+single, "--cast", "--driver", "cpu", "--json")
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Change == nil || *got.Change != want {
		t.Errorf("%v, %v, want %v", err, text, want)
	}
	text = must(t, "eval", "B", "-i", "B="+single, "--cast", "--driver", "cpu", "--json")
	if !strings.Contains(text, `"largest_relative_change":0,`) {
		t.Errorf("%q", text)
	}
}

// TestEvalComplex reads and writes complex numbers, beside real ones too.
func TestEvalComplex(t *testing.T) {
	z := save(t, npy.Header{Type: dtype.Complex64, Shape: []int64{2, 2}}, []complex64{1 + 2i, 3, -1i, complex(0.5, float32(math.Inf(-1)))})
	a := floats(t, 2, 2, 1, 2, 3, 4)
	dir := t.TempDir()
	out, text := filepath.Join(dir, "out.npy"), filepath.Join(dir, "out.csv")
	for _, d := range drivers {
		printed := must(t, "eval", "z", "-i", "z="+z, "--driver", d)
		if want := "  1+2j      3+0j\n  0-1j  0.5-Infj\n2x2 complex64 in "; !strings.HasPrefix(printed, want) {
			t.Errorf("%s: printed as %q", d, printed)
		}
		var got struct{ Values any }
		if err := json.Unmarshal([]byte(must(t, "eval", "z[1]", "-i", "z="+z, "--json", "--driver", d)), &got); err != nil {
			t.Fatal(err)
		}
		if want := []any{[]any{[]any{0.0, -1.0}, []any{0.5, "-Infinity"}}}; !reflect.DeepEqual(got.Values, want) {
			t.Errorf("%s: in JSON %v", d, got.Values)
		}
		must(t, "eval", "a % z + 1", "-i", "z="+z, "-i", "a="+a, "-o", out, "--driver", d)
		h, v := read[complex64](t, out)
		if want := []complex64{2 + 2i, 7, 1 - 3i}; h.Type != dtype.Complex64 || !slices.Equal(v[:3], want) {
			t.Errorf("%s: %v %v, want %v", d, h, v, want)
		}
		must(t, "eval", "z[0]", "-i", "z="+z, "-o", text, "--driver", d)
		if line := slurp(t, text); line != "1+2j,3+0j\n" {
			t.Errorf("%s: in .csv %q", d, line)
		}
	}
}
