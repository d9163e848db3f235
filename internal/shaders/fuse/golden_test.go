// SPDX-License-Identifier: Apache-2.0

package fuse_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldens are functions whose text is kept in testdata.
var goldens = []struct {
	name  string
	block bool
	f     fuse.Func
}{
	{"sigmoid", false, fuse.Func{ // sigmoid(a * s + b), b a row
		Code: []fuse.Instr{
			{Op: fuse.OpLoad},
			{Op: fuse.OpScalar},
			{Op: fuse.OpMul, Y: 1},
			{Op: fuse.OpLoad, X: 1},
			{Op: fuse.OpAdd, X: 2, Y: 3},
			{Op: fuse.OpSigmoid, X: 4},
		},
		Loads:   []fuse.View{{Class: fuse.Vector, Slot: 1}, {Class: fuse.Gather, Slot: 2}},
		Slots:   []fuse.Slot{{Vec: true}, {Vec: true}, {}},
		Scalars: 1,
		Flat:    true,
	}},
	{"tanh_pow", false, fuse.Func{ // helpers that call helpers, each once
		Code:  []fuse.Instr{{Op: fuse.OpAcc}, {Op: fuse.OpTanh}, {Op: fuse.OpExp, X: 1}, {Op: fuse.OpPow, X: 2, Y: 1}, {Op: fuse.OpMax, X: 3}},
		Slots: []fuse.Slot{{Vec: true}},
	}},
	{"half_transposed", true, fuse.Func{ // relu of a transposed float16 matrix, stored as float16
		Code:  []fuse.Instr{{Op: fuse.OpLoad}, {Op: fuse.OpRelu}},
		Loads: []fuse.View{{Type: fuse.F16, Class: fuse.Crossed, Slot: 1}},
		Store: fuse.View{Type: fuse.F16},
		Slots: []fuse.Slot{{Type: fuse.F16, Vec: true}, {Type: fuse.F16, Vec: true}},
	}},
	{"int_divide", false, fuse.Func{ // sign(a / b) of columns of integers, one of them converted
		Type: fuse.I32,
		Code: []fuse.Instr{
			{Op: fuse.OpLoad, Type: fuse.I32},
			{Op: fuse.OpLoad, X: 1},
			{Op: fuse.OpConvert, X: 1, Type: fuse.I32},
			{Op: fuse.OpDiv, Y: 2, Type: fuse.I32},
			{Op: fuse.OpSign, X: 3, Type: fuse.I32},
		},
		Loads: []fuse.View{{Type: fuse.I32, Class: fuse.Column, Slot: 1}, {Class: fuse.Vector, Slot: 2}},
		Store: fuse.View{Type: fuse.I32, Class: fuse.Gather},
		Slots: []fuse.Slot{{Type: fuse.I32}, {Type: fuse.I32}, {Vec: true}},
	}},
	{"user_function", false, fuse.Func{ // f(a, where(a, b, a))
		Code: []fuse.Instr{
			{Op: fuse.OpLoad}, {Op: fuse.OpLoad, X: 1}, {Op: fuse.OpCopy}, {Op: fuse.OpWhere, Y: 1}, {Op: fuse.OpCall, Y: 2},
		},
		Loads: []fuse.View{{Class: fuse.Vector, Slot: 1}, {Class: fuse.Vector}},
		Slots: []fuse.Slot{{Vec: true}, {Vec: true}},
	}},
}

// TestGolden compares generated text with testdata; -update rewrites it.
func TestGolden(t *testing.T) {
	for _, g := range goldens {
		if g.name == "user_function" {
			scan, err := wgsl.Tokenize("fn f(x: f32, y: f32) -> f32 { return half * (x + y); }\nconst half = 0.5;")
			if err != nil {
				t.Fatal(err)
			}
			g.f.Calls = []fuse.Call{fuse.NewCall(scan, "f", 2)}
		}
		path := filepath.Join("testdata", g.name+".wgsl")
		got := g.f.Text(1, g.block, "")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: the text has changed; -update accepts it:\n%s", g.name, got)
		}
	}
}

// TestBlamed blames the user's text for what is said about its lines, and for nothing else.
func TestBlamed(t *testing.T) {
	scan, err := wgsl.Tokenize("fn f(x: f32) -> f32 {\n return g(x);\n}\nfn g(x: f32) -> f32 { return x; }")
	if err != nil {
		t.Fatal(err)
	}
	source := "// ours\n" + fuse.NewCall(scan, "f", 1).WGSL + "\n// ours"
	for line, want := range map[int]string{0: "", 1: "", 2: "", 4: "line 2: wrong\n\treturn g(x);", 7: "", 8: "", 9: "", -1: ""} {
		if got := fuse.Blamed(wgsl.Diagnostic{Line: line, Column: 3, Text: "wrong"}, source); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
}
