// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"strings"

	"github.com/gogpu/naga/ir"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// suffix is behind the names of a text that the compiler gets.
const suffix = "_of_text"

// portable returns a text that means the same to the library's compiler, line by line. It takes a function for a builtin one of the same
// name, and no alias for a type to cast bits to.
func portable(s *wgsl.Scan) string {
	types := map[string]string{}
	for i := range s.Tokens {
		if s.At(i) == "alias" && s.Char(i+2) == '=' {
			end := i + 3
			for end < len(s.Tokens) && s.Char(end) != ';' {
				end++
			}
			types[s.At(i+1)] = s.Join(i+3, end)
		}
	}
	var b strings.Builder
	at := 0
	for i := range s.Tokens {
		if s.At(i) != "bitcast" || s.Char(i+1) != '<' {
			continue
		}
		for j := i + 2; s.IsWord(j) || s.Char(j) == '<'; j++ {
			name := s.At(j)
			for range len(types) { // an alias may be one of another
				if t, ok := types[name]; ok {
					name = t
				}
			}
			if name = spelled(name); name != s.At(j) {
				b.WriteString(s.Text[at:s.Pos(j)] + name)
				at = s.Pos(j) + len(s.At(j))
			}
		}
	}
	b.WriteString(s.Text[at:])
	if t, err := wgsl.Tokenize(b.String()); err == nil {
		return t.Qualify(suffix)
	}
	return s.Text
}

// spelled is vec4<f32> for vec4f.
func spelled(name string) string {
	scalars := map[byte]string{'f': "<f32>", 'i': "<i32>", 'u': "<u32>", 'h': "<f16>"}
	if len(name) == len("vec4f") && strings.HasPrefix(name, "vec") && scalars[name[4]] != "" {
		return name[:4] + scalars[name[4]]
	}
	return name
}

// lower changes what the library's SPIR-V cannot say, or says wrong.
func lower(m *ir.Module, order []ir.FunctionHandle) {
	sortFunctions(m, order)
	for i := range m.Functions {
		rewriter{m, &m.Functions[i]}.all()
	}
	for i := range m.EntryPoints {
		rewriter{m, &m.EntryPoints[i].Function}.all()
	}
}

// sortFunctions puts functions behind those that they call.
func sortFunctions(m *ir.Module, order []ir.FunctionHandle) {
	sorted, places := make([]ir.Function, len(order)), make([]ir.FunctionHandle, len(order))
	for i, h := range order {
		sorted[i], places[h] = m.Functions[h], ir.FunctionHandle(i)
	}
	m.Functions = sorted
	move := func(f *ir.Function) {
		for i, e := range f.Expressions {
			if r, ok := e.Kind.(ir.ExprCallResult); ok {
				f.Expressions[i].Kind = ir.ExprCallResult{Function: places[r.Function]}
			}
		}
		calls(f.Body, func(s *ir.Statement, c ir.StmtCall) {
			c.Function = places[c.Function]
			s.Kind = c
		})
	}
	for i := range m.Functions {
		move(&m.Functions[i])
	}
	for i := range m.EntryPoints {
		move(&m.EntryPoints[i].Function)
	}
}
