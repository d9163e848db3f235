// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// fusion writes what package fuse knows of the operations.
func fusion() string {
	w := &writer{}
	w.put("%spackage fuse\n\nimport \"math\"\n\n", header)
	w.put("// The element-wise operations.\nconst (\n")
	list := ops.ElementWise()
	for i, o := range list {
		w.put("Op%s Op = %d\n", o.CodeName(), ops.FirstCode+i)
	}
	w.put("\nopFirst = Op%s\nopEnd Op = %d\n)\n\n", list[0].CodeName(), ops.FirstCode+len(list))
	w.put("var opTable = [opEnd - opFirst]opInfo{\n")
	for _, o := range list {
		w.put("{name: %q, arity: %d, wgsl: %q", strings.ToLower(o.CodeName()), o.Arity(), places.Replace(o.WGSL))
		if o.Real {
			w.put(", floats: true")
		}
		if o.Ints != "" {
			w.put(", ints: %q", places.Replace(o.Ints))
		}
		if o.Uints != "" {
			w.put(", uints: %q", places.Replace(o.Uints))
		}
		w.put("},\n")
	}
	w.put("}\n\n// realTable holds the references of one operand that compute in float64.\n")
	w.put("var realTable = [opEnd - opFirst]func(x float64) float64{\n")
	for _, o := range list {
		if isReal(&o) {
			w.put("Op%s - opFirst: %s,\n", o.CodeName(), realFunction(o.Go))
		}
	}
	w.put("}\n\n// compute is the reference of the other operations: it sets r, element by element, to the result for x, y and z.\n")
	w.put("func compute[N number](op Op, r, x, y, z []N) {\nswitch op {\n")
	for _, o := range list {
		if !isReal(&o) {
			w.put("case Op%s:\nfor i := range r {\nr[i] = %s\n}\n", o.CodeName(), reference(o.Go))
		}
	}
	w.put("}\n}\n")
	return w.String()
}

// places turns the operands in a text of WGSL into places to be filled.
var places = strings.NewReplacer("X", "$0", "Y", "$1", "Z", "$2")

// isReal reports whether an operation's reference takes one operand and computes in float64.
func isReal(o *ops.Operation) bool {
	return o.Class == ops.Unary && (o.Real || strings.Contains(o.Go, "math."))
}

// realFunction makes a function of the text of a reference.
func realFunction(text string) string {
	if name, ok := strings.CutSuffix(text, "(x)"); ok && !strings.Contains(name, " ") {
		return name
	}
	return "func(x float64) float64 { return " + text + " }"
}

var operand = regexp.MustCompile(`\b[xyz]\b`)

// reference makes a statement's right side of the text of a reference.
func reference(text string) string {
	if strings.Contains(text, "math.") {
		return "N(" + operand.ReplaceAllString(text, "float64($0[i])") + ")"
	}
	return operand.ReplaceAllString(text, "$0[i]")
}

// functions writes the functions of package matrix, the methods of Expr and those of Dense.
func functions() string {
	w := &writer{}
	w.put("%spackage matrix\n\nimport \"github.com/sublet-gpu/sublet/internal/shaders/fuse\"\n", header)
	for _, o := range ops.Table {
		if o.Name == "" {
			continue
		}
		for _, f := range forms(&o) {
			function(w, &o, f)
		}
	}
	w.put("\n// The methods of an expression append to it.\n")
	for _, o := range ops.Table {
		if o.Name == "" {
			continue
		}
		for _, f := range forms(&o) {
			method(w, &o, f)
		}
	}
	w.put("\n// The methods of a matrix store a result in it: they are short for Assign.\n")
	for _, o := range ops.Table {
		if o.Store {
			params, args := signature(&o)
			w.put("\n// %s stores %s.\n", o.Name, strings.TrimPrefix(o.Doc, "is "))
			w.put("func (m *Dense[T]) %s(%s) error { return m.Assign(%s(%s)) }\n", o.Name, params, o.Name, args)
		}
	}
	return w.String()
}

// signature returns the parameters and the arguments of a function.
func signature(o *ops.Operation) (params, args string) {
	switch o.Class {
	case ops.Binary, ops.Product:
		return "a, b Operand[T]", "a, b"
	case ops.Ternary:
		list := strings.Join(o.Args, ", ")
		return list + " Operand[T]", list
	case ops.Limits:
		return "a Operand[T], lo, hi T", "a, lo, hi"
	case ops.ScalarLast:
		return "a Operand[T], s T", "a, s"
	case ops.ScalarFirst:
		return "s T, a Operand[T]", "s, a"
	}
	return "a Operand[T]", "a"
}

// helpers are the functions of package matrix that build an expression with an element-wise operation.
var helpers = map[ops.Class]string{
	ops.Unary: "unary", ops.Binary: "binary", ops.Ternary: "ternary", ops.Limits: "limits",
	ops.ScalarLast: "scalarOp", ops.ScalarFirst: "scalarFirst",
}

func function(w *writer, o *ops.Operation, f form) {
	params, args := signature(o)
	call := o.Call
	name := strconv.Quote(f.name)
	switch {
	case o.Class == ops.Reduction && call != "":
		call += "(" + name + ", " + f.axis + ", a)"
	case o.Class == ops.Reduction:
		call = "reduced(" + name + ", reduce" + o.Name + ", " + f.axis + ", a)"
	case call == "":
		call = helpers[o.Class] + "(" + name + ", fuse.Op" + o.CodeName() + ", " + args + ")"
	}
	w.put("\n")
	w.comment(f.doc)
	w.put("func %s[T Elem](%s) *Expr[T] { return %s }\n", f.name, params, call)
}

func method(w *writer, o *ops.Operation, f form) {
	receiver, params, name := "a", "", f.name
	_, args := signature(o)
	switch o.Class {
	case ops.Binary, ops.Product:
		params = "b Operand[T]"
	case ops.Ternary:
		receiver = o.Args[0]
		params = strings.Join(o.Args[1:], ", ") + " Operand[T]"
	case ops.Limits:
		params = "lo, hi T"
	case ops.ScalarLast, ops.ScalarFirst:
		params = "s T"
	case ops.Transpose:
		name = "T"
	}
	w.put("\n")
	w.comment(name + strings.TrimPrefix(f.doc, f.name))
	w.put("func (%s *Expr[T]) %s(%s) *Expr[T] { return %s(%s) }\n", receiver, name, params, f.name, args)
}

// textFunctions writes the functions of matrix.Eval.
func textFunctions() string {
	w := &writer{}
	w.put("%spackage matrix\n\n// textFunctions lists the operations by their names in Eval.\n", header)
	w.put("func textFunctions[T Elem]() map[string]textFunction[T] {\nreturn map[string]textFunction[T]{\n")
	for _, o := range ops.Table {
		for _, n := range textNames(&o) {
			w.put("%q: %s,\n", n.text, textCall(&o, n.name))
		}
	}
	w.put("}\n}\n")
	return w.String()
}

func textCall(o *ops.Operation, name string) string {
	if o.TextCall != "" {
		return o.TextCall
	}
	switch o.Class {
	case ops.Binary, ops.Product:
		return "text2(" + name + "[T])"
	case ops.Ternary:
		return "text3(" + name + "[T])"
	case ops.Limits:
		return "textLimits(" + name + "[T])"
	}
	return "text1(" + name + "[T])"
}

// textName is a name in matrix.Eval and the function that it stands for.
type textName struct{ text, name string }

func textNames(o *ops.Operation) []textName {
	var list []textName
	for _, text := range o.TextNames() {
		list = append(list, textName{text, o.EveryName()})
	}
	if o.Class == ops.Reduction {
		for _, f := range forms(o)[1:] {
			list = append(list, textName{strings.ToLower(f.name), f.name})
		}
	}
	return list
}
