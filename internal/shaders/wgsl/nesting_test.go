// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unsafe says why a compiler must not get a text.
func unsafe(text string) string {
	s, err := Tokenize(text)
	if s == nil {
		return err.Error()
	}
	return s.Unsafe()
}

func TestUnsafe(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name, source string
		want         bool
	}{
		{"nothing", "", false},
		{"brackets at the limit", rep("(", maxNesting) + rep(")", maxNesting), false},
		{"brackets beyond", rep("[", maxNesting+1), true},
		{"closing brackets", rep(")", 1000) + rep("}", 1000), false},
		{"brackets in turn", rep("f(x);", 10000), false},
		{"operators at the limit", rep("+x", limits[operators].most), false},
		{"operators beyond", rep("+x", limits[operators].most+1), true},
		{"operators in statements", rep("x=x+1;", 10000), false},
		{"operators in arguments", rep("f(1+x)", 10000), false},
		{"operators between arguments", rep("f(x)+", 10000), true},
		{"operators in an array", rep("-1,", 10000), false},
		{"elements at the limit", rep("1,", limits[elements].most), false},
		{"elements beyond", rep("1,", limits[elements].most+1), true},
		{"elements of many lists", rep("f(1, 2);", 100000), false},
		{"functions beyond", rep("fn f() {}", maxNamed+1), true},
		{"operators in blocks", rep("if a==b{}", 10000), false},
		{"operators in comments", rep("x // ++++++++++\n", 10000) + rep("/* +++ /* +++ */ */", 1000), false},
		{"open comment", "/* " + rep("(", 1000), true},
		{"line comment at the end", "// ((", false},
		{"slash at the end", "/", false},
		{"members at the limit", "x" + rep(".x", limits[members].most), false},
		{"members beyond", "x" + rep(".x", limits[members].most+1), true},
		{"branches at the limit", "if a {}" + rep("else if a {x=1;}", limits[branches].most), false},
		{"branches beyond", "if a {}" + rep("else if a {x=1;}", limits[branches].most+1), true},
		{"branches of many", rep("if a {x=1;} else if b {x=2;} else {x=3;}", 10000), false},
		{"constants at the limit", rep("const a = 1;", maxDeclarations), false},
		{"constants beyond", rep("const a = 1;", maxDeclarations+1), true},
		{"declarations beyond", rep("struct S { s: T } override o = p;", maxDeclarations/2+1), true},
		{"types at the limit", rep("array<", maxTypes) + "f32" + rep(", 1>", maxTypes), false},
		{"types beyond", rep("array<", maxTypes+1), true},
		{"pointers beyond", rep("ptr<function,", maxTypes+1), true},
		{"types in turn", rep("var<private> a: array<vec4<f32>, 4>;", 10000), false},
		{"comparisons", rep("if a<b {}", 10000) + rep("f(a<b,c<d);", 10000), false},
		{"names like keywords", rep("constant alias_ elsewhere ", 10000), false},
		{"after a comment and \\r", "//\r" + rep("(", maxNesting+1), true},
		{"after a comment and \\v", "//\v" + rep("(", maxNesting+1), true},
		{"after a comment and \\f", "//\f" + rep("(", maxNesting+1), true},
		{"after a comment and U+0085", "//\u0085" + rep("(", maxNesting+1), true},
		{"after a comment and U+2028", "//\u2028" + rep("(", maxNesting+1), true},
		{"after a comment and U+2029", "//\u2029" + rep("(", maxNesting+1), true},
	} {
		if what := unsafe(c.source); (what != "") != c.want {
			t.Errorf("%s: got %q, want an objection: %v", c.name, what, c.want)
		}
	}
}

// The library's own kernels are far from the limits.
func TestOwnKernelsAreShallow(t *testing.T) {
	count := 0
	err := filepath.WalkDir("..", func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".wgsl" {
			return err
		}
		count++
		source, err := os.ReadFile(path)
		if what := unsafe(string(source)); what != "" {
			t.Errorf("%s: %s", path, what)
		}
		if scan, err := Tokenize(string(source)); err != nil || scan.Excess("main", 16<<10, Effort) != "" {
			t.Errorf("%s: %v, %s", path, err, scan.Excess("main", 16<<10, Effort))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Error("no kernels")
	}
}
