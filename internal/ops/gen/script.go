// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// codes writes the numbers of JavaScript's encoded programs.
func codes() string {
	w := &writer{}
	w.put("%s/** Element-wise operations: their instructions in an expression, and their codes in package fuse. */\n", header)
	w.put("export const ElementWise = Object.freeze({\n")
	var real []string
	for i, o := range ops.ElementWise() {
		if o.Name == "" {
			continue
		}
		w.put("  %s: %d,\n", o.CodeName(), ops.FirstCode+i)
		if o.Real {
			real = append(real, "ElementWise."+o.CodeName())
		}
	}
	w.put("});\n\n/** The element-wise operations of real numbers. */\nexport const REAL = [\n")
	for _, line := range wrap(strings.Join(real, ", ")+",", 120) {
		w.put("  %s\n", line)
	}
	w.put("];\n\n/** What Op.Reduce computes. */\nexport const Reduction = Object.freeze({")
	for i, o := range reductions() {
		if i > 0 {
			w.put(", ")
		}
		w.put("%s: %d", o.Name, i)
	}
	w.put("});\n")
	return w.String()
}

// reductions returns those that have a kernel.
func reductions() []ops.Operation {
	var list []ops.Operation
	for _, o := range ops.Table {
		if o.Class == ops.Reduction && o.Call == "" {
			list = append(list, o)
		}
	}
	return list
}

const scriptTypes = `import {Op, Reduction} from './protocol.mjs';

/** @typedef {import('./expr.mjs').Expr} Expr */

`

const expressionHead = `
/**
 * What an expression can be given to: the methods of Expr.
 * @param {{
 *   unary: (a: unknown, where: string, op: number) => Expr,
 *   binary: (a: unknown, where: string, op: number, b: unknown) => Expr,
 *   power: (a: unknown, where: string, op: number, b: unknown) => Expr,
 *   limits: (a: unknown, where: string, op: number, low: unknown, high: unknown) => Expr,
 *   product: (a: unknown, where: string, b: unknown) => Expr,
 *   reduce: (a: unknown, where: string, what: number, options?: {axis?: unknown}) => Expr,
 *   mean: (a: unknown, where: string, options?: {axis?: unknown}) => Expr,
 * }} make
 */
export const methods = ({unary, binary, power, limits, product, reduce, mean}) => class {
`

const functionHead = `
/**
 * The operations as functions of any operands: methods of Gpu.
 * @param {{
 *   of: (gpu: unknown, where: string, a: unknown) => Expr,
 *   binary: (gpu: unknown, where: string, op: number, a: unknown, b: unknown) => Expr,
 *   power: (gpu: unknown, where: string, op: number, a: unknown, b: unknown) => Expr,
 *   ternary: (gpu: unknown, where: string, op: number, a: unknown, b: unknown, c: unknown) => Expr,
 * }} make
 */
export const functions = ({of, binary, power, ternary}) => class {
`

// scriptMethods writes JavaScript's methods of Expr and of Gpu.
func scriptMethods() string {
	w := &writer{}
	w.put("%s%s", header, strings.TrimRight(scriptTypes, "\n")+"\n"+expressionHead)
	for _, o := range ops.Table {
		if name := o.JSName(); name != "" && o.Class != ops.Ternary {
			scriptMethod(w, &o, name)
		}
	}
	w.put("};\n%s", functionHead)
	for _, o := range ops.Table {
		if name := o.JSName(); name != "" {
			scriptFunction(w, &o, name)
		}
	}
	w.put("};\n")
	return w.String()
}

// parameters returns JavaScript's parameters beside the first, and their types in comments.
func parameters(o *ops.Operation) (types, names string) {
	switch o.Class {
	case ops.Binary, ops.Product:
		return "@param {unknown} b", "b"
	case ops.Ternary:
		return "@param {unknown} a @param {unknown} b", "a, b"
	case ops.Limits:
		return "@param {unknown} low @param {unknown} high", "low, high"
	case ops.Reduction:
		return "@param {{axis?: unknown}} [options]", "options"
	}
	return "", ""
}

func scriptMethod(w *writer, o *ops.Operation, name string) {
	types, names := parameters(o)
	maker, code := map[ops.Class]string{
		ops.Unary: "unary", ops.RowMap: "unary", ops.Binary: "binary", ops.Limits: "limits", ops.Product: "product", ops.Reduction: "reduce",
	}[o.Class], "Op."+o.CodeName()
	if o.JSCall != "" {
		maker = o.JSCall
	}
	if o.Class == ops.Reduction {
		code = "Reduction." + o.Name
	}
	args := []string{"this", "'" + name + "'"}
	if maker != "mean" && maker != "product" {
		args = append(args, code)
	}
	if names != "" {
		w.put("  /** %s */\n", types)
		args = append(args, names)
	}
	w.put("  %s(%s) { return %s(%s); }\n", name, names, maker, strings.Join(args, ", "))
}

func scriptFunction(w *writer, o *ops.Operation, name string) {
	types, names := parameters(o)
	first := "a"
	if o.Class == ops.Ternary {
		first = o.Args[0]
	}
	w.put("  /** %s */\n", strings.TrimSpace("@param {unknown} "+first+" "+types))
	all := first
	if names != "" {
		all += ", " + names
	}
	w.put("  %s(%s) { return ", name, all)
	switch o.Class {
	case ops.Ternary:
		w.put("ternary(this, '%s', Op.%s, %s)", name, o.CodeName(), all)
	case ops.Binary:
		maker := "binary"
		if o.JSCall != "" {
			maker = o.JSCall
		}
		w.put("%s(this, '%s', Op.%s, %s)", maker, name, o.CodeName(), all)
	default:
		w.put("of(this, '%s', a).%s(%s)", name, name, names)
	}
	w.put("; }\n")
}

// declarations writes the types of these methods.
func declarations() string {
	w := &writer{}
	w.put(`%simport type { Expr, Operand, ReduceOptions } from "./matrix.js";

/**
 * The operations of an expression, which a and cond stand for. Those of real numbers are `+"`ErrUnsupported`"+` on integers. Comparisons
 * and logic yield 1 and 0 in the operands' element type; any number but 0 is true.
 */
export interface ExprOperations {
`, header)
	for _, o := range ops.Table {
		if name := o.JSName(); name != "" && o.Class != ops.Ternary {
			_, rest := declared(&o)
			w.put("%s  %s(%s): Expr;\n", scriptDoc(&o), name, rest)
		}
	}
	w.put("}\n\n/** The operations as functions. Where either operand may be a number, one of them must be none. */\nexport interface GpuOperations {\n")
	for _, o := range ops.Table {
		if name := o.JSName(); name != "" {
			first, rest := declared(&o)
			if rest != "" {
				first += ", " + rest
			}
			w.put("%s  %s(%s): Expr;\n", scriptDoc(&o), name, first)
		}
	}
	w.put("}\n")
	return w.String()
}

// declared returns the first parameter in a declaration and the others.
func declared(o *ops.Operation) (first, rest string) {
	switch o.Class {
	case ops.Binary:
		return "a: Operand", "b: Operand"
	case ops.Product:
		return "a: Expr", "b: Expr"
	case ops.Ternary:
		return o.Args[0] + ": Operand", o.Args[1] + ": Operand, " + o.Args[2] + ": Operand"
	case ops.Limits:
		return "a: Expr", "low: Operand, high: Operand"
	case ops.Reduction:
		return "a: Expr", "options?: ReduceOptions"
	}
	return "a: Expr", ""
}

// scriptDoc returns an operation's sentence for JavaScript.
func scriptDoc(o *ops.Operation) string {
	doc := upper(strings.TrimPrefix(o.Doc, "is "))
	if o.Class == ops.Reduction {
		doc = "The " + o.Doc + " of all elements, or along an axis, whose length becomes 1"
	}
	text := sentence(o, doc)
	if o.NumPy != "" {
		text += " NumPy's " + o.NumPy + "."
	}
	return jsdoc(strings.ReplaceAll(text, "lo..hi", "low..high"))
}

// jsdoc makes a comment of a text.
func jsdoc(text string) string {
	lines := wrap(text, 120)
	if len(lines) == 1 {
		return "  /** " + text + " */\n"
	}
	return "  /**\n   * " + strings.Join(lines, "\n   * ") + "\n   */\n"
}

// upper makes the first letter of a sentence a capital, unless it is a formula's.
func upper(s string) string {
	if len(s) < 2 || s[1] == ' ' || strings.HasPrefix(s, "exp(") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
