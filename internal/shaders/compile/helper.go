// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"sync"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// calls has, for built-in functions that are no instructions, a call of the library's own WGSL for them.
var calls = [ir.Functions]string{
	ir.FnAcos: "acos4(x)", ir.FnAcosh: "acosh4(x)", ir.FnAsin: "asin4(x)", ir.FnAsinh: "asinh4(x)", ir.FnAtan: "atan4(x)",
	ir.FnAtan2: "angle4(x, y)", ir.FnAtanh: "atanh4(x)", ir.FnCos: "sincos4(x, true)", ir.FnCosh: "cosh4(x)", ir.FnExp: "exp4(x)",
	ir.FnExp2: "exp2_4(x)", ir.FnLog: "log4(x)", ir.FnLog2: "log2_4(x)", ir.FnPow: "pow4(x, y)", ir.FnSin: "sincos4(x, false)",
	ir.FnSinh: "sinh4(x)", ir.FnTan: "tan4(x)", ir.FnTanh: "tanh4(x)",
}

// helpers has the programs of those that were asked for: functions are not changed once they are read.
var helpers struct {
	sync.Mutex
	programs map[ir.Fn]*ir.Program
}

// helper returns the function that computes a built-in one, on vectors of four; nil if that is done otherwise.
func (m *generator) helper(fn ir.Fn) (*ir.Func, error) {
	call := calls[fn]
	if call == "" {
		return nil, nil
	}
	p, err := program(fn, call)
	if err != nil {
		return nil, err
	}
	funcs := p.Funcs[:len(p.Funcs)-1]
	return funcs[len(funcs)-1], m.analyse(funcs)
}

// program reads the text of a helper.
func program(fn ir.Fn, call string) (*ir.Program, error) {
	helpers.Lock()
	defer helpers.Unlock()
	p := helpers.programs[fn]
	if p == nil {
		text := "fn helper(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> { return " + call + "; }\n"
		text += fuse.Helpers(text) + "@group(0) @binding(0) var<storage, read_write> b: array<vec4<f32>>;\n" +
			"@compute @workgroup_size(1) fn main() { b[0] = helper(b[0], b[0]); }\n"
		var err error
		if p, err = front.Parse(text, "main"); err != nil {
			return nil, err
		}
		if helpers.programs == nil {
			helpers.programs = map[ir.Fn]*ir.Program{}
		}
		helpers.programs[fn] = p
	}
	return p, nil
}

// helped calls a helper.
func (g *function) helped(f *ir.Func, x []*node) *node {
	args := make([][]*node, len(f.Params))
	for i := range args {
		v := x[min(i, len(x)-1)]
		if v.typ != wasm.V128 {
			v = g.splat(v)
		}
		args[i] = []*node{v}
	}
	var v *node
	if g.gen.inlined(f) {
		v = g.inline(f, args)[0]
	} else {
		v = g.callFunction(f, args)[0]
	}
	if x[0].typ != wasm.V128 {
		v = g.lane(v, 0, ir.F32)
	}
	return v
}
