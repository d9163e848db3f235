// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// shapesOf are the shapes of operations by their class, as examples have them, and what is to be added.
var shapesOf = map[ops.Class]string{
	ops.Unary:     "m x n -> m x n",
	ops.RowMap:    "m x n -> m x n",
	ops.Order:     "m x n -> m x n",
	ops.Binary:    "m x n, m x n -> m x n; those of 1 stretch",
	ops.Ternary:   "m x n, m x n, m x n -> m x n; those of 1 stretch",
	ops.Limits:    "m x n, m x n, m x n -> m x n; those of 1 stretch",
	ops.Product:   "m x k, k x n -> m x n; of tensors the last two dimensions, those before stretch",
	ops.Reduction: "m x n -> 1 x 1; along axis 0 1 x n, along axis 1 m x 1; a tensor loses its dimensions",
}

// ShapeDoc says what the shapes of operands and result are.
func (r row) ShapeDoc() string {
	text := cmp.Or(r.Example().Shapes, shapesOf[r.Class])
	text, more, _ := strings.Cut(text, ";")
	if more != "" {
		more = ";" + more
	}
	from, to, _ := strings.Cut(text, "-> ")
	if from = strings.TrimSpace(from); from != "" {
		from = "`" + strings.ReplaceAll(from, ", ", "`, `") + "` "
	}
	return "Shapes: " + from + "-> `" + to + "`" + more + "."
}

// argument is an operand of an example, or another argument: one without rows.
var argument = regexp.MustCompile(`([ic]?)\[([^\]]*)\]|\{[^}]*\}|[^\s,\[{][^\s,]*`)

// matrixOf writes an operand of an example in JavaScript.
func matrixOf(kind, text string) string {
	rows := strings.Split(text, "; ")
	cols := len(strings.Fields(rows[0]))
	options := ""
	switch kind {
	case "i":
		options = `, { dtype: "int32" }`
	case "c":
		cols /= 2
		options = `, { dtype: "complex64" }`
	}
	values := strings.Join(strings.Fields(strings.ReplaceAll(text, ";", "")), ", ")
	return "gpu.matrix(" + strconv.Itoa(len(rows)) + ", " + strconv.Itoa(cols) + ", [" + values + "]" + options + ")"
}

// MethodExample shows the method of a name, FunctionExample the function of Gpu.
func (r row) MethodExample(name string) []string   { return r.example(name, true) }
func (r row) FunctionExample(name string) []string { return r.example(name, false) }

// example writes an example in lines: operands, where there are several, and the call with its result.
func (r row) example(name string, method bool) []string {
	call, result, _ := strings.Cut(r.Example().Call, " -> ")
	result, signless := strings.CutPrefix(result, "abs ")
	var operands, args []string
	for _, part := range argument.FindAllStringSubmatch(call, -1) {
		text := part[0]
		if strings.HasSuffix(text, "]") {
			text = matrixOf(part[1], part[2])
			operands = append(operands, text)
		}
		args = append(args, text)
	}
	var lines []string
	if len(operands) > 1 {
		list := r.operandNames(len(operands))
		for i, operand := range list {
			list[i] = operand + " = " + operands[i]
			args[i] = operand
		}
		lines = []string{"const " + strings.Join(list, ", ") + ";"}
	}
	if params := r.Operation.Params; strings.Contains(params, "...") {
		args = []string{"[" + strings.Join(args, ", ") + "]"}
	}
	text := "gpu." + name + "(" + strings.Join(args, ", ") + ")"
	if method {
		text = args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	if signless {
		text += ".abs()"
	}
	if list, ok := strings.CutPrefix(result, "["); ok {
		return append(lines, "await "+text+".read(); // ["+strings.ReplaceAll(strings.TrimSuffix(list, "]"), " ", ", ")+"]")
	}
	return append(lines, "await "+text+".value(); // "+result)
}

// operandNames are the names of the first parameters in JavaScript.
func (r row) operandNames(n int) []string {
	if strings.Contains(r.Operation.Params, "...") {
		return []string{"a", "b"}[:n]
	}
	all := declaredIn(r.Declared())
	var names []string
	for _, p := range all[:n] {
		names = append(names, p.name)
	}
	return names
}

// document writes what is said about an operation in JavaScript, with an example.
func document(sentences, shapes string, example []string) string {
	var b strings.Builder
	b.WriteString("/**\n")
	for _, line := range wrap(sentences, 120) {
		b.WriteString("   * " + line + "\n")
	}
	b.WriteString("   *\n   * " + shapes + "\n   * @example\n")
	for _, line := range example {
		b.WriteString("   * " + line + "\n")
	}
	return b.String() + "   */"
}
