// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestFuncNames has functions whose names are those of what surrounds them, of each other, and of their own parts.
func TestFuncNames(t *testing.T) {
	const helper = "fn scale(x: f32) -> f32 { return x * FACTOR; }"
	text := func(name, factor string) string {
		return "fn " + name + "(x: f32) -> f32 { return scale(x); }\nconst FACTOR = " + factor + ";\n" + helper
	}
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{1, 2, 3}))
		apply := func(text string, x matrix.Operand[float32]) *matrix.Expr[float32] {
			return matrix.Apply(matrix.NewFunc(text), x)
		}
		for _, name := range []string{"apply", "store", "fixed", "fused", "main", "load0", "s0", "p", "V"} {
			sum := matrix.Add(apply(text(name, "2.0"), a), apply(text(name, "10.0"), a)) // one kernel
			got, err := sum.Read(t.Context())
			check(t, err)
			if want := []float32{12, 24, 36}; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		got, err := apply(`/* fn g(x: f32) -> f32 { return 0.0; } /* nested */ */
			struct Pair { f: f32, Pair: f32 }
			fn	f (x : f32,) -> f32 { // a tab, and what only looks like f(
				let Pair2 = 1.0;
				var p = Pair(x, Pair2);
				p.f += other(p.Pair);
				return p.f;
			}
			fn other(f: f32) -> f32 { return f; }`, a).Read(t.Context())
		check(t, err)
		if want := []float32{2, 3, 4}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestFuncComplaints names the lines and the names of the user's text.
func TestFuncComplaints(t *testing.T) {
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{1, 2, 3}))
		for _, text := range []string{
			"fn f(x: f32) -> f32 {\n\treturn nothing;\n}",
			"fn f(x: f32) -> f32 {\n\treturn f2(x) + nothing;\n}\nfn f2(x: f32) -> f32 { return x; }",
			"fn f(x: f32) -> f32 {\n\treturn x + 1i; // nothing\n}",
		} {
			good := matrix.NewFunc("fn f(x: f32) -> f32 { return x; }")
			_, err := matrix.Apply(matrix.NewFunc(text), matrix.Apply(good, a)).Read(t.Context())
			if !errors.Is(err, gpu.ErrCompile) || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), "nothing") {
				t.Errorf("%q: %v", text, err)
			}
			if strings.Contains(err.Error(), "f2_") {
				t.Errorf("a name with a suffix: %v", err)
			}
		}
	})
	for text, want := range map[string]string{
		"fn f(x: f32) -> f32 {\n return x":     "line 1: ",
		"/* fn f(x: f32) -> f32 { return x; }": "line 1: a comment",
		"fn":                                   "no function",
		"fn f":                                 "1 to 6 parameters",
		"fn f()":                               "1 to 6 parameters",
		"fn f(x: f32) { }":                     "f returns nothing",
		"fn f(a: f32, b: f32, c: f32, d: f32, e: f32, f: f32, g: f32) -> f32 { return a; }": "1 to 6 parameters",
		"const x = 1;": "no function",
	} {
		if err := matrix.Apply(matrix.NewFunc(text), matrix.Fill[float32](1, 1, 1)).Err(); !errors.Is(err, matrix.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
