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
	done      map[ir.FunctionHandle]bool
	open      map[ir.FunctionHandle]bool // that called the one at hand
	recursion bool
}

// reached returns the global variables that a function and those that it calls use, and whether one of them calls itself.
func reached(m *ir.Module, entry *ir.Function) (globals map[ir.GlobalVariableHandle]bool, recursion bool) {
	r := reach{module: m, globals: map[ir.GlobalVariableHandle]bool{}, done: map[ir.FunctionHandle]bool{}, open: map[ir.FunctionHandle]bool{}}
	r.function(entry)
	globals = maps.Clone(r.globals)
	for i := range m.Functions { // recursion is wrong in what nobody calls, too
		r.call(ir.FunctionHandle(i))
	}
	return globals, r.recursion
}

func (r *reach) function(f *ir.Function) {
	for _, e := range f.Expressions {
		if g, ok := e.Kind.(ir.ExprGlobalVariable); ok {
			r.globals[g.Variable] = true
		}
	}
	r.block(f.Body)
}

func (r *reach) block(b []ir.Statement) {
	for _, s := range b {
		switch s := s.Kind.(type) {
		case ir.StmtBlock:
			r.block(s.Block)
		case ir.StmtIf:
			r.block(s.Accept)
			r.block(s.Reject)
		case ir.StmtSwitch:
			for _, c := range s.Cases {
				r.block(c.Body)
			}
		case ir.StmtLoop:
			r.block(s.Body)
			r.block(s.Continuing)
		case ir.StmtCall:
			r.call(s.Function)
		}
	}
}

func (r *reach) call(f ir.FunctionHandle) {
	switch {
	case int(f) >= len(r.module.Functions):
	case r.open[f]:
		r.recursion = true
	case !r.done[f]:
		r.done[f], r.open[f] = true, true
		r.function(&r.module.Functions[f])
		r.open[f] = false
	}
}
