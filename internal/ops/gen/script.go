// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"regexp"
	"strings"
)

// numberedNames writes names in JavaScript in the order of their operations' numbers.
type numberedNames struct {
	words []string
	next  int // the number that follows
}

// add appends the names of an operation, behind its number where that does not follow from those before.
func (n *numberedNames) add(r row) {
	if script := r.Script(); script != "" && (r.Number == 0 || r.Number != n.next) {
		n.words = append(n.words, "${"+script+"}")
	}
	n.words = append(n.words, strings.Join(r.Spellings(), ","))
	n.next = r.Number + 1
}

// Text writes a template literal.
func (n *numberedNames) Text() string {
	return "`" + strings.Join(wrap(strings.Join(n.words, " "), 150), "\n") + "`"
}

// methodGroup are operations that JavaScript computes in the same way, of so many arguments.
type methodGroup struct {
	Maker     string
	Arguments int // of the function
	numberedNames
}

// MethodGroups returns the operations that matrices and tensors have.
func (t table) MethodGroups() (groups []*methodGroup) {
	byMaker := map[string]*methodGroup{}
	for _, r := range t.Rows {
		if r.Shapes() || r.JS == "" {
			continue
		}
		maker := cmp.Or(r.JSCall, r.Maker)
		g := byMaker[maker]
		if g == nil {
			g = &methodGroup{Maker: maker, Arguments: len(declaredIn(r.Declared()))}
			byMaker[maker] = g
			groups = append(groups, g)
		}
		g.add(r)
	}
	return groups
}

// shapingGroup are shapings of as many operands, -1 for a list of any, of as many numbers at most, and of one shape.
type shapingGroup struct {
	Operands, Numbers int
	Shape             string // the function in JavaScript that computes it
	Sized             bool
	numberedNames
}

// ShapingGroups returns the shapings that are methods, which have one operand before the others, or those that are not.
func (t table) ShapingGroups(methods bool) (groups []*shapingGroup) {
	type key struct {
		operands, numbers int
		shape             string
		sized             bool
	}
	byKey := map[key]*shapingGroup{}
	for _, r := range t.Rows {
		if !r.Shapes() || r.JS == "" || (r.Receiver != "") != methods {
			continue
		}
		k := key{shape: r.scriptShape(), sized: r.Sized()}
		k.operands, k.numbers = r.scriptCounts()
		g := byKey[k]
		if g == nil {
			g = &shapingGroup{Operands: k.operands, Numbers: k.numbers, Shape: k.shape, Sized: k.sized}
			byKey[k] = g
			groups = append(groups, g)
		}
		g.add(r)
	}
	return groups
}

// scriptCounts are how many operands a shaping has in JavaScript behind its receiver, -1 for a list of any, and how many numbers at most.
func (r row) scriptCounts() (operands, numbers int) {
	for _, p := range params(r.Operation.Params) {
		switch {
		case p.variadic():
			operands = -1
		case !p.operand():
			numbers++
		case p.name != r.Receiver:
			operands++
		}
	}
	return operands, numbers
}

// scriptShape is the function in JavaScript that computes the shape, with the parameters up to the last one that it uses.
func (r row) scriptShape() string {
	var list []string
	used := 0
	for i, p := range params(r.Operation.Params) {
		name := p.name
		if regexp.MustCompile(`(^|[^.\w])` + name + `\b`).MatchString(r.Shape) {
			used = i + 1
		} else {
			name = "_" + name
		}
		list = append(list, name)
	}
	return "(" + strings.Join(list[:used], ", ") + ") => [" + r.Shape + "]"
}
