// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// param is a parameter of a shaping: an operand, several ones, or a number.
type param struct{ name, kind string }

// params reads parameters as Go has them, where one without a type has that of the next.
func params(list string) []param {
	var all []param
	for part := range strings.SplitSeq(list, ", ") {
		name, kind, _ := strings.Cut(part, " ")
		all = append(all, param{name, kind})
	}
	for i := len(all) - 2; i >= 0; i-- {
		if all[i].kind == "" {
			all[i].kind = all[i+1].kind
		}
	}
	return all
}

func (p param) operand() bool  { return strings.HasSuffix(p.kind, "]") }
func (p param) variadic() bool { return strings.HasPrefix(p.kind, "...") }

// shapingFace is how a shaping is called: as a method of its first operand, if that is one of the result's type.
func shapingFace(o *ops.Operation) face {
	f := face{Params: o.Params, Make: "shapingNode", Maker: "shaped", Title: "that makes or shapes a matrix"}
	var rest, script []string
	numbers := 0
	for i, p := range params(o.Params) {
		if !p.operand() {
			numbers++
		}
		typed := p.name + " " + p.kind
		switch {
		case i == 0 && p.kind == "Operand[T]":
			f.Receiver, f.First = p.name, p.name+": Expr"
			continue
		case p.variadic():
			f.Maker, typed = "", ""
			script = append(script, p.name+": readonly Expr[]")
		case p.operand():
			script = append(script, p.name+": Expr")
		case numbers > o.Least:
			script = append(script, p.name+"?: number")
		default:
			script = append(script, p.name+": number")
		}
		rest = append(rest, typed)
	}
	if first := params(o.Params)[0]; f.Receiver == "" && !first.variadic() {
		script = append(script, "options?: { dtype?: DType }")
	}
	f.Rest, f.Others = strings.Join(rest, ", "), strings.Join(script, ", ")
	return f
}

// shapingOperands are the operands as a list of nodes, and the numbers.
func (f form) shapingOperands() string {
	var list, numbers []string
	for _, p := range params(f.Operation.Params) {
		switch {
		case p.variadic():
			return "nodes(" + strconv.Quote(f.Func) + ", " + p.name + ")"
		case p.operand():
			list = append(list, "from("+strconv.Quote(f.Func)+", "+p.name+")")
		default:
			numbers = append(numbers, "float64("+p.name+")")
		}
	}
	text := "nil"
	if list != nil {
		text = "[]*node{" + strings.Join(list, ", ") + "}"
	}
	return strings.Join(append([]string{text}, numbers...), ", ")
}

// Counts are how many operands a shaping has, -1 for any, and how many numbers it takes at least and at most.
func (r row) Counts() string {
	operands, numbers := 0, 0
	for _, p := range params(r.Operation.Params) {
		switch {
		case p.variadic():
			operands = -1
		case p.operand():
			operands++
		default:
			numbers++
		}
	}
	return strconv.Itoa(operands) + ", " + strconv.Itoa(r.Least) + ", " + strconv.Itoa(numbers)
}

// Shapes reports whether an operation is a shaping.
func (r row) Shapes() bool { return r.Class == ops.Shaping }

// Builder is the method that puts a shaping together.
func (r row) Builder() string { return strings.ToLower(r.Name[:1]) + r.Name[1:] }

// Sized reports whether the arguments begin with rows and columns that a shape can stand for: an array of both.
func (r row) Sized() bool {
	return strings.HasPrefix(strings.TrimPrefix(r.Operation.Params, "a Operand[T], "), "rows, cols int") && r.Name != "Roll"
}

// ShapingHelp lists the shapings of matrix.Eval with their arguments.
func (t table) shapingHelp() (list []string) {
	for _, r := range t.Rows {
		if !r.Shapes() {
			continue
		}
		var args []string
		numbers := 0
		for _, p := range params(r.Operation.Params) {
			name := p.name
			switch {
			case p.variadic():
				name = "A, B, ..."
			case p.operand():
				name = strings.ToUpper(name)
			default:
				if numbers++; numbers > r.Least {
					name = "[" + name + "]"
				}
			}
			args = append(args, name)
		}
		for _, text := range r.Text {
			list = append(list, text+"("+strings.ReplaceAll(strings.Join(args, ","), " ", "")+")")
		}
	}
	return list
}
