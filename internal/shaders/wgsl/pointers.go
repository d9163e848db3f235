// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"slices"
	"strconv"
	"strings"
)

// pointers resolves the names inside of functions, and what each pointer that is handed to a function points to.
type pointers struct {
	*Types
	functions map[string]*function
	order     []*function
	module    map[string]*variable // variables outside of functions
	refs      map[int]*variable    // what the word at a token stands for, if it is declared in a function
	calls     map[int]*call        // of functions of the text, by the token of the name
	hoists    map[int][]*step      // by the token of a let, the indices in it
	held      map[int]*step        // the same, by the first token of each
	words     map[string]bool      // every word of the text, and new names
	fresh     int                  // counts new names
	scopes    []scope
}

type function struct {
	name, body, end int // tokens; body and end are those of its braces
	parts           [][2]int
	params          []*variable
	bound           bool // it has pointers to memory that naga lets no function's parameter point to
	plain           int  // how many calls are of the function itself
}

// variable is a name for a value, for memory or for a pointer.
type variable struct {
	name          string
	token         int
	memory        bool   // it is declared by var
	module        bool   // outside of functions
	pointer       bool   // it is a parameter and a pointer
	path          *path  // what a let points to
	space, access string // of memory, or of that pointed to
	typ           string // likewise; "" if it is not known
	rename        string
}

// path is what a pointer points to: a variable, or what a parameter points to, or a part of that.
type path struct {
	root  *variable
	steps []*step
	typ   string
}

// step is a member or an index.
type step struct {
	text     string // of one that is no computed index
	from, to int    // the tokens of a computed index
	let      int    // the token of the let in whose value it is computed, or 0
	name     string // of what holds it
}

type call struct {
	to    *function
	args  [][2]int
	paths []*path // of the arguments that are pointers
}

type scope struct {
	end   int // its last token
	names map[string]*variable
}

// resolve reads a whole text. What is wrong, or not understood, is noted.
func (s *Scan) resolve() *pointers {
	p := &pointers{
		Types: s.Types(), functions: map[string]*function{}, module: map[string]*variable{}, refs: map[int]*variable{},
		calls: map[int]*call{}, hoists: map[int][]*step{}, held: map[int]*step{}, words: map[string]bool{},
	}
	for i, t := range s.Tokens {
		if t.Kind == Word {
			p.words[s.At(i)] = true
		}
	}
	s.declared(func(keyword string, name int) {
		switch d := p.decls[s.At(name)]; {
		case d.name != name: // declared twice
		case keyword == "fn" && s.Char(name+1) == '(':
			if f := p.signature(name); f != nil {
				p.functions[s.At(name)] = f
				p.order = append(p.order, f)
			}
		case keyword == "var":
			v := &variable{name: s.At(name), token: name, memory: true, module: true}
			if s.Char(name-1) == '>' {
				v.space, v.access = p.qualifiers(name)
			}
			p.module[v.name] = v
		}
	})
	for _, v := range p.module { // after the functions, which may be called
		v.typ = p.declaredType(v.token, p.statementEnd(v.token))
	}
	for _, f := range p.order {
		p.walk(f)
	}
	return p
}

// qualifiers reads the address space and the access mode before a variable's name.
func (p *pointers) qualifiers(name int) (space, access string) {
	open := name - 1
	for open > 0 && p.Char(open) != '<' {
		open--
	}
	if space = p.At(open + 1); p.Char(open+2) == ',' {
		return space, p.At(open + 3)
	}
	return space, defaultAccess(space)
}

func defaultAccess(space string) string {
	if space == "storage" || space == "uniform" {
		return "read"
	}
	return "read_write"
}

// signature reads the parameters of a function; nil if it has no body.
func (p *pointers) signature(name int) *function {
	close := int(p.Match[name+1])
	f := &function{name: name, parts: p.Split(name+2, close)}
	for f.body = close + 1; f.body < len(p.Tokens) && p.Char(f.body) != '{'; f.body++ {
		if p.Char(f.body) == ';' {
			return nil
		}
	}
	if f.body == len(p.Tokens) {
		return nil
	}
	f.end = int(p.Match[f.body])
	for _, part := range f.parts {
		colon := part[0]
		for colon < part[1] && p.Char(colon) != ':' {
			colon++
		}
		v := &variable{name: p.At(colon - 1), token: colon - 1}
		if p.pointer(colon+1, 0) {
			v.pointer = true
			v.space, v.access, v.typ = p.pointee(colon+1, 0)
			f.bound = f.bound || v.space != "function" && v.space != "private"
		}
		p.refs[v.token] = v
		f.params = append(f.params, v)
	}
	return f
}

// pointee reads a type of pointers, or an alias of one.
func (p *pointers) pointee(i, depth int) (space, access, typ string) {
	if d := p.decls[p.At(i)]; d != nil && d.keyword == "alias" && depth < maxNested {
		return p.pointee(d.name+2, depth+1)
	}
	if p.Char(i+1) != '<' || p.Char(i+3) != ',' {
		return "", "", ""
	}
	space = p.At(i + 2)
	access = defaultAccess(space)
	typ, end := p.typeText(i+4, 0)
	if p.Char(end) == ',' && p.IsWord(end+1) {
		access = p.At(end + 1)
	}
	return space, access, typ
}

// pointer reports whether a type is one of pointers.
func (m *Types) pointer(i, depth int) bool {
	if d := m.decls[m.At(i)]; d != nil && d.keyword == "alias" && depth < maxNested {
		return m.pointer(d.name+2, depth+1)
	}
	return m.At(i) == "ptr"
}

func (p *pointers) lookup(name string) *variable {
	for _, scope := range slices.Backward(p.scopes) {
		if v := scope.names[name]; v != nil {
			return v
		}
	}
	return nil
}

// newName makes a name that the text does not have.
func (p *pointers) newName(like string) string {
	for {
		p.fresh++
		if name := like + "_" + strconv.Itoa(p.fresh); !p.words[name] {
			p.words[name] = true
			return name
		}
	}
}

func (p *pointers) statementEnd(i int) int {
	for ; i < len(p.Tokens) && p.Char(i) != ';'; i++ {
		switch p.Char(i) {
		case '(', '[', '{':
			i = int(p.Match[i])
		}
	}
	return i
}

// walk resolves the names in a function's block. What is declared counts from the end of its statement on.
func (p *pointers) walk(f *function) {
	params := map[string]*variable{}
	for _, v := range f.params {
		params[v.name] = v
	}
	p.scopes = []scope{{f.end, params}}
	open := map[int]*call{} // by the last token
	declares := map[int]*variable{}
	for i := f.body + 1; i <= f.end; i++ {
		c, v := open[i], declares[i]
		switch {
		case c != nil:
			p.arguments(i, c)
		case v != nil:
			p.declare(v, i)
		case p.Char(i) == '{':
			p.scopes = append(p.scopes, scope{int(p.Match[i]), map[string]*variable{}})
		case !p.IsWord(i) || p.Char(i-1) == '.' || p.Char(i-1) == '@':
		case p.At(i) == "for" && p.Char(i+1) == '(':
			if block := int(p.Match[i+1]) + 1; p.Char(block) == '{' {
				p.scopes = append(p.scopes, scope{int(p.Match[block]), map[string]*variable{}})
			}
		case p.At(i) == "let" || p.At(i) == "const" || p.At(i) == "var":
			name := i + 1
			for p.At(i) == "var" && p.Char(i+1) == '<' && name < f.end && p.Char(name-1) != '>' {
				name++
			}
			v := &variable{name: p.At(name), token: name, memory: p.At(i) == "var", space: "function", access: "read_write"}
			p.refs[name], declares[p.statementEnd(name)] = v, v
			i = name
		default:
			if v := p.lookup(p.At(i)); v != nil {
				p.refs[i] = v
			} else if to := p.functions[p.At(i)]; to != nil && p.Char(i+1) == '(' {
				p.calls[i] = &call{to: to, args: p.given(i + 1)}
				open[int(p.Match[i+1])] = p.calls[i]
			}
		}
		for len(p.scopes) > 0 && p.scopes[len(p.scopes)-1].end <= i {
			p.scopes = p.scopes[:len(p.scopes)-1]
		}
	}
}

// declare ends a declaration.
func (p *pointers) declare(v *variable, end int) {
	p.scopes[len(p.scopes)-1].names[v.name] = v
	if v.memory {
		v.typ = p.declaredType(v.token, end)
		return
	}
	from := p.valueOf(v.token, end)
	if v.path = p.pointerTo(from, end, 0); v.path == nil {
		return
	}
	for _, st := range v.path.steps {
		if st.from >= from && st.text == "" {
			st.let = v.token - 1
			p.hoists[v.token-1] = append(p.hoists[v.token-1], st)
			p.held[st.from] = st
		}
	}
}

// valueOf returns the first token of what a declaration's name is set to, or the end.
func (p *pointers) valueOf(name, end int) int {
	for i := name; i < end; i++ {
		if p.Char(i) == '=' {
			return i + 1
		}
	}
	return end
}

// arguments resolves the pointers that a call hands on.
func (p *pointers) arguments(close int, c *call) {
	c.paths = make([]*path, len(c.to.params))
	if len(c.args) < len(c.to.params) {
		p.refuse(close, "a function is called with too few arguments")
		return
	}
	for n, v := range c.to.params {
		if !v.pointer {
			continue
		}
		from, end := c.args[n][0], c.args[n][1]
		to := p.pointerTo(from, end, 0)
		if to == nil {
			p.refuse(from, "this should be a pointer, and is not understood as one")
			return
		}
		c.paths[n] = to
		if !to.needsCopy() {
			continue
		}
		if to.typ == "" || p.normal(to.typ) != p.normal(v.typ) || to.root.space != v.space || to.root.access != v.access {
			p.refuse(from, "this pointer to a part of a variable is not of the parameter's type, or the type of the variable is not plain from its declaration")
			return
		}
		if !to.root.module && p.lookup(to.root.name) != to.root && to.root.rename == "" { // it is hidden here
			to.root.rename = p.newName(to.root.name)
		}
		p.hold(to)
	}
}

// hold gives names to the indices that were computed at a let before.
func (p *pointers) hold(to *path) {
	for _, st := range to.steps {
		if st.let == 0 || st.name != "" {
			continue
		}
		if st.name = p.newName("index"); p.Char(st.let-1) == '(' {
			p.refuse(st.let, "a pointer with an index is declared in the head of a loop")
		}
	}
}

// needsCopy reports whether naga cannot hand such a pointer to a function: it ends the process over one to a part of a variable, and
// refuses one to a buffer.
func (to *path) needsCopy() bool {
	r := to.root
	return len(to.steps) > 0 || r.module && r.space != "private"
}

// pointerTo parses an expression that is a pointer, or returns nil.
func (p *pointers) pointerTo(from, to, depth int) *path {
	for from < to && p.Char(from) == '(' && int(p.Match[from]) == to-1 {
		from, to = from+1, to-1
	}
	if from >= to || depth > maxNested {
		return nil
	}
	if p.Char(from) == '&' {
		return p.reference(from+1, to, depth+1)
	}
	if v := p.refs[from]; v != nil && to-from == 1 {
		return v.target()
	}
	return nil
}

// target is what a name points to, nil for one that is no pointer.
func (v *variable) target() *path {
	if v.pointer {
		return &path{root: v, typ: v.typ}
	}
	return v.path
}

// reference parses what the & of a pointer stands before: memory, and members and indices.
func (p *pointers) reference(from, to, depth int) *path {
	if from >= to || depth > maxNested {
		return nil
	}
	if p.Char(from) == '*' {
		return p.pointerTo(from+1, to, depth+1)
	}
	end, base := from+1, (*path)(nil)
	if p.Char(from) == '(' {
		end = int(p.Match[from]) + 1
		if base = p.reference(from+1, end-1, depth+1); base == nil && end < to {
			base = p.pointerTo(from+1, end-1, depth+1)
		}
	} else if v := p.named(from); v != nil && v.memory {
		base = &path{root: v, typ: v.typ}
	} else if v != nil && end < to {
		base = v.target()
	}
	if base == nil {
		return nil
	}
	return p.steps(base, end, to)
}

// named returns what the word at a token stands for, if it is declared as a value.
func (p *pointers) named(i int) *variable {
	if v := p.refs[i]; v != nil {
		return v
	}
	return p.module[p.At(i)]
}

// steps adds members and indices to a path.
func (p *pointers) steps(base *path, i, to int) *path {
	all := &path{base.root, append([]*step(nil), base.steps...), base.typ}
	for i < to {
		st, next := &step{}, i+2
		switch {
		case p.Char(i) == '.' && p.IsWord(i+1):
			st.text = "." + p.At(i+1)
			all.typ = p.member(all.typ, p.At(i+1))
		case p.Char(i) == '[':
			next = int(p.Match[i]) + 1
			st.from, st.to = i+1, next-1
			if st.to-st.from == 1 && p.Tokens[st.from].Kind == Number {
				st.text = "[" + p.At(st.from) + "]"
			}
			all.typ = p.element(all.typ)
		default:
			return nil
		}
		if next > to || st.text == "" && st.from >= st.to {
			return nil
		}
		all.steps, i = append(all.steps, st), next
	}
	return all
}

// given cuts the arguments of a call. In them a < is a comparison unless it follows a type.
func (m *Types) given(open int) (list [][2]int) {
	start, end := open+1, int(m.Match[open])
	for i := start; i < end; i++ {
		switch char := m.Char(i); {
		case m.At(i) == "array":
			_, next := m.typeAt(i)
			i = min(next, end) - 1
		case char == '(' || char == '[' || char == '{':
			i = int(m.Match[i])
		case char == ',':
			list = append(list, [2]int{start, i})
			start = i + 1
		}
	}
	if start < end {
		list = append(list, [2]int{start, end})
	}
	return list
}

// joinSteps writes members and indices behind a variable's name.
func joinSteps(steps []*step) string {
	var b strings.Builder
	for _, st := range steps {
		if st.text != "" {
			b.WriteString(st.text)
		} else {
			b.WriteString("[" + st.name + "]")
		}
	}
	return b.String()
}
