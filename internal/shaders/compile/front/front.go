// SPDX-License-Identifier: Apache-2.0

// Package front reads WGSL: it parses a text, resolves its names, checks its types, evaluates its constants, and writes it in the form
// of package ir.
//
// There is no syntax tree. Declarations of the module are found first and resolved when something needs them; expressions become
// typed operands, and statements become those of package ir, as they are read.
package front

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// The limits that keep hostile texts from exhausting the stack, memory and time.
const (
	maxDepth  = 300       // of brackets, statements and declarations within each other
	maxHeight = 1000      // of operators within each other
	maxTypes  = 64        // of types within each other
	maxBytes  = 1<<31 - 1 // of a type
	maxParts  = 1 << 14   // of a type: members of structs, each as often as its struct is in it
	maxValue  = 1 << 16   // scalars of a value
	maxWork   = 1 << 22   // scalars of all constants together
)

// Error is what is wrong with a text, and where.
type Error struct {
	Line   int // from 1 on
	Column int // in characters from 1 on
	Text   string
}

// Error implements [error].
func (e *Error) Error() string {
	return "line " + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column) + ": " + e.Text
}

// Parse reads a text and returns what one of its compute entry points needs. Its errors are of type [*Error].
func Parse(text, entry string) (prog *ir.Program, err error) {
	scan, err := wgsl.Tokenize(text)
	if err != nil {
		return nil, located(err)
	}
	p := &parser{Scan: scan, module: map[string]*decl{}, traits: map[*ir.Type]traits{}, tables: map[*uint64]*ir.Const{}, work: maxWork}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			prog, err = nil, e
		default:
			panic(e)
		}
	}()
	p.skim()
	for _, d := range p.decls {
		p.resolve(d)
	}
	funcs := p.order()
	for _, f := range funcs {
		p.body(f)
	}
	return p.program(funcs, entry)
}

// located makes an [Error] of one of the lexer.
func located(err error) error {
	where, text, _ := strings.Cut(err.Error(), ": ")
	line, e := strconv.Atoi(strings.TrimPrefix(where, "line "))
	if e != nil {
		line, text = 1, err.Error()
	}
	return &Error{line, 1, text}
}

// parser reads one text.
type parser struct {
	*wgsl.Scan
	types    ir.Types
	abstract [3][3]*ir.Type // matrices of abstract numbers
	traits   map[*ir.Type]traits
	results  map[string]*ir.Type // structs that built-in functions return
	inputs   map[*ir.Type][]ir.Input
	module   map[string]*decl
	decls    []*decl
	tables   map[*uint64]*ir.Const // large constants by their scalars
	work     int
	state
}

// state is where the parser is. Resolving a declaration begins a new one.
type state struct {
	i         int // the next token
	depth     int
	noClose   bool // > ends a list of template arguments
	dead      int  // within operands that are not evaluated
	unreached int  // within statements that are not reached
	scope     *scope
	fn        *function  // whose body it is
	out       *[]ir.Stmt // where statements go
	careful   bool       // loads and calls become lets at once: a barrier may come between them and their use
	loop      loop
}

// fail ends the parsing with an error about a token.
func (p *parser) fail(token int, what ...string) {
	pos := p.Pos(token)
	before := p.Text[:pos]
	start := strings.LastIndexByte(before, '\n') + 1
	panic(&Error{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:]), strings.Join(what, "")})
}

// enter counts what is nested; leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.i, "this is nested too deeply")
	}
}

func (p *parser) leave() { p.depth-- }

// spend counts the scalars of constants.
func (p *parser) spend(at, n int) {
	if p.work -= n; n > maxValue || p.work < 0 {
		p.fail(at, "the constants are too large")
	}
}

// program collects what the entry point reaches.
func (p *parser) program(funcs []*function, entry string) (*ir.Program, error) {
	main := slices.IndexFunc(funcs, func(f *function) bool { return f.ir.Name == entry && f.entry })
	if main < 0 {
		return nil, &Error{1, 1, "no compute entry point " + strconv.Quote(entry)}
	}
	prog := &ir.Program{Entry: funcs[main].ir, Size: funcs[main].size}
	called, mentioned := map[*function]bool{funcs[main]: true}, map[*function]bool{funcs[main]: true}
	used := map[*ir.Var]bool{}
	for i := main; i >= 0; i-- { // functions stand after those that they call
		f := funcs[i]
		if mentioned[f] {
			for _, g := range f.calls {
				mentioned[g] = true
			}
			maps.Copy(used, f.mentions)
		}
		if called[f] {
			maps.Copy(called, f.callees)
			maps.Copy(used, f.uses)
			prog.Funcs = append(prog.Funcs, f.ir)
		}
	}
	slices.Reverse(prog.Funcs)
	bindings := map[int]bool{}
	for _, d := range p.decls {
		if d.keyword != "var" || !used[d.sym.ref.Var] {
			continue
		}
		v := d.sym.ref.Var
		if v.Space == ir.Uniform || v.Space == ir.Storage {
			if d.group != 0 {
				p.fail(d.name, v.Name, " is in group ", strconv.Itoa(d.group), ": there is only group 0")
			}
			if bindings[v.Binding] {
				p.fail(d.name, "binding ", strconv.Itoa(v.Binding), " is used twice")
			}
			bindings[v.Binding] = true
		}
		prog.Vars = append(prog.Vars, v)
	}
	return prog, nil
}
