// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"maps"

	"github.com/gogpu/naga/ir"
)

// reach walks the functions that an entry point calls.
type reach struct {
	module    *ir.Module
	globals   map[ir.GlobalVariableHandle]bool // that they use
	begun     map[ir.FunctionHandle]bool
	done      map[ir.FunctionHandle]bool
	order     []ir.FunctionHandle // the called before their callers
	recursion bool
}

// reached returns what an entry point and all functions call, and the global variables that the entry point and those that it calls use.
func reached(m *ir.Module, entry *ir.Function) (r *reach, globals map[ir.GlobalVariableHandle]bool) {
	r = &reach{
		module: m, globals: map[ir.GlobalVariableHandle]bool{}, begun: map[ir.FunctionHandle]bool{}, done: map[ir.FunctionHandle]bool{},
	}
	r.function(entry)
	globals = maps.Clone(r.globals)
	for i := range m.Functions {
		r.call(ir.FunctionHandle(i))
	}
	return r, globals
}

func (r *reach) function(f *ir.Function) {
	for _, e := range f.Expressions {
		if g, ok := e.Kind.(ir.ExprGlobalVariable); ok {
			r.globals[g.Variable] = true
		}
	}
	calls(f.Body, func(_ *ir.Statement, c ir.StmtCall) { r.call(c.Function) })
}

func (r *reach) call(f ir.FunctionHandle) {
	if r.begun[f] || int(f) >= len(r.module.Functions) {
		r.recursion = r.recursion || !r.done[f]
		return
	}
	r.begun[f] = true
	r.function(&r.module.Functions[f])
	r.done[f] = true
	r.order = append(r.order, f)
}

// calls visits the calls in a block.
func calls(b []ir.Statement, visit func(*ir.Statement, ir.StmtCall)) {
	for i := range b {
		switch s := b[i].Kind.(type) {
		case ir.StmtBlock:
			calls(s.Block, visit)
		case ir.StmtIf:
			calls(s.Accept, visit)
			calls(s.Reject, visit)
		case ir.StmtSwitch:
			for _, c := range s.Cases {
				calls(c.Body, visit)
			}
		case ir.StmtLoop:
			calls(s.Body, visit)
			calls(s.Continuing, visit)
		case ir.StmtCall:
			visit(&b[i], s)
		}
	}
}
