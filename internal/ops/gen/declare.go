// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// declared is a parameter in a declaration of TypeScript.
type declared struct{ name, kind string }

func list(params []declared) string {
	var texts []string
	for _, p := range params {
		texts = append(texts, p.name+": "+p.kind)
	}
	return strings.Join(texts, ", ")
}

var parameter = regexp.MustCompile(`(\w+\??): (\{[^}]*\}|[^,]+)`)

// declaredIn reads parameters as a face has them.
func declaredIn(params string) []declared {
	var all []declared
	for _, part := range parameter.FindAllStringSubmatch(params, -1) {
		all = append(all, declared{part[1], part[2]})
	}
	return all
}

// Element is the element type of the result in TypeScript, where that of the operands is T.
func (r row) Element() string {
	made := r.Makes
	if made == "" && r.OfComplex() == "float32" {
		return "RealOf<T>"
	}
	if made == "" {
		return "T"
	}
	return fmt.Sprintf("%q", made)
}

// takes is the union of the element types of the operands, "DType" for all.
func (r row) takes() string {
	switch {
	case r.Whole:
		return "IntegerDType"
	case r.Name == "MatrixPower": // a product, if it is no inverse
		return "DType"
	case r.Real && r.OfComplex() != "", r.Name == "Solve", r.Name == "Inverse":
		return "FloatDType | \"complex64\""
	case r.Real, r.Group == "decompositions":
		return "FloatDType"
	}
	return "DType"
}

// mixed is the declaration for float32 beside complex64, where there is one: kind is the type of the operands, with a verb for their elements.
func (r row) mixed(first, kind string) []string {
	if r.Class != ops.Product && (r.Class != ops.Binary || r.OfComplex() == "") {
		return nil
	}
	made := map[string]string{"T": `"complex64"`, "RealOf<T>": `"float32"`}[r.Element()]
	operand := fmt.Sprintf(kind, `"float32" | "complex64"`)
	return []string{"(" + first + ": " + operand + ", b: " + operand + "): " + fmt.Sprintf(kind, made) + ";"}
}

var optionsOf = map[string]string{"Reduce": "reduce", "Spread": "spread", "Order": "order", "Normalise": "normalise"}

// Methods are the declarations of the method of expressions and tensors, which K tells apart.
func (r row) Methods() []string {
	var params []declared
	if takes := r.takes(); takes != "DType" {
		params = append(params, declared{"this", "Kinds<" + takes + ">[K]"})
	}
	for _, p := range declaredIn(r.Typed()) {
		switch {
		case p.kind == "Factor":
			p.kind = "Exclude<Operands<T>[K], number>"
		case p.kind == "Operand":
			p.kind = "Operands<T>[K]"
		case strings.HasSuffix(p.kind, "Options"):
			p.name = "axis?"
			p.kind = "Along[K][\"" + optionsOf[strings.TrimSuffix(p.kind, "Options")] + "\"]"
		}
		params = append(params, p)
	}
	line := "(" + list(params) + "): Kinds<" + r.Element() + ">[K];"
	return append([]string{line}, r.mixed("this", "Kinds<%s>[K]")...)
}

// ShapingMethod is the declaration of a method of expressions alone.
func (r row) ShapingMethod() string {
	params := declaredIn(r.Others)
	if takes := r.takes(); takes != "DType" && strings.HasPrefix(r.Declared(), "a: Expr") {
		params = append([]declared{{"this", "Expr<" + takes + ">"}}, params...)
	}
	for i, p := range params {
		if p.kind == "Expr" {
			params[i].kind = "Expr<" + r.elementOf(p.name) + ">"
		}
	}
	return "(" + list(params) + "): Expr<" + r.Element() + ">;"
}

// ShapingMethods are the declarations of a method of expressions alone: sizes may be a shape.
func (r row) ShapingMethods() []string { return r.withShape(r.ShapingMethod()) }

// withShape adds the declaration in which a shape stands for rows and columns, where they are sizes.
func (r row) withShape(line string) []string {
	if !r.Sized() {
		return []string{line}
	}
	return []string{line, strings.Replace(line, "rows: number, cols: number", "shape: readonly [rows: number, cols: number]", 1)}
}

// elementOf is the element type of an operand of a shaping. Indices are converted to int32.
func (r row) elementOf(name string) string {
	for _, p := range params(r.Operation.Params) {
		if p.name == name && p.kind == "Operand[int32]" {
			return "IndexDType"
		}
	}
	return "T"
}

// Functions are the declarations of the function of Gpu.
func (r row) Functions() []string {
	if r.Shapes() {
		return r.withShape(r.shapingFunction())
	}
	head := "<T extends " + r.takes() + ">("
	params := declaredIn(r.Declared())
	var lines []string
	for _, kind := range []string{"Expr", "Tensor"} {
		made := "): " + kind + "<" + r.Element() + ">;"
		if params[0].kind != "Operand" {
			lines = append(lines, head+list(functionParams(params, kind, 0))+made)
			continue
		}
		for i, p := range params {
			if p.kind == "Operand" {
				lines = append(lines, head+list(functionParams(params, kind, i))+made)
			}
		}
	}
	return append(lines, r.mixed("a", "Expr<%s>")...)
}

// functionParams are the parameters of a function, of which the one at a place says what it is of. Those before are less.
func functionParams(params []declared, kind string, at int) []declared {
	params = slices.Clone(params)
	prefix := strings.TrimPrefix(kind, "Expr")
	for i, p := range params {
		switch {
		case i == at:
			p.kind = kind + "<T>"
		case p.kind == "Operand" && i < at && kind == "Expr":
			p.kind = "number"
		case p.kind == "Operand" && i < at:
			p.kind = "Operand<NoInfer<T>>"
		case p.kind == "Operand":
			p.kind = prefix + "Operand<NoInfer<T>>"
		case p.kind == "Factor" && kind == "Expr":
			p.kind = "Expr<NoInfer<T>>"
		case p.kind == "Factor":
			p.kind = "Tensor<NoInfer<T>> | Expr<NoInfer<T>>"
		case strings.HasSuffix(p.kind, "Options"):
			p.name = "axis?"
			p.kind = "Along[\"" + strings.ToLower(kind) + "\"][\"" + optionsOf[strings.TrimSuffix(p.kind, "Options")] + "\"]"
		}
		params[i] = p
	}
	return params
}

func (r row) shapingFunction() string {
	params := declaredIn(r.Declared())
	head, made := "<T extends "+r.takes()+">(", r.Element()
	options := strings.HasSuffix(r.Others, "}")
	for i, p := range params {
		switch {
		case options && p.kind == "number" && strings.HasSuffix(p.name, "?"): // the options may stand in its place
			params[i].kind = "number | { readonly dtype?: T }"
		case p.name == "options?":
			head, made = `<T extends DType = "float32">(`, "NoInfer<T>" // what the result is assigned to says nothing of it
			params[i].kind = "{ readonly dtype?: T }"
		case p.kind == "readonly Expr[]":
			params[i].kind = "readonly Expr<T>[]"
		case p.kind == "Expr" && r.elementOf(p.name) != "T":
			params[i].kind = "Expr<" + r.elementOf(p.name) + ">"
		case p.kind == "Expr" && i > 0:
			params[i].kind = "Expr<NoInfer<T>>"
		case p.kind == "Expr":
			params[i].kind = "Expr<T>"
		}
	}
	return head + list(params) + "): Expr<" + made + ">;"
}
