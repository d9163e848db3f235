// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// face is how operations of a class are called.
type face struct {
	Params         string // of the function in Go
	Receiver, Rest string // of the method in Go: its receiver and the other parameters
	Make           string // the function in Go that makes the node
	First, Others  string // JavaScript's parameters, as in a declaration
	Maker          string // the function in JavaScript that makes an expression
	Title, Help    string // in the help of `sublet eval`: what the function is of, and its arguments
}

// faceOfOne is that of an operation of one matrix.
func faceOfOne(node, title string) face {
	return face{Params: "a Operand[T]", Receiver: "a", Make: node, First: "a: Expr", Maker: "unary", Title: title}
}

// faces are those of the classes.
var faces = map[ops.Class]face{
	ops.Unary:     faceOfOne("expr.NewMap", "of each element"),
	ops.Transpose: faceOfOne("expr.NewTranspose", "of whole matrices"),
	ops.RowMap:    faceOfOne("expr.NewSoftmax", "of each row, a matrix"),
	ops.Reduction: {
		Params: "a Operand[T]", Receiver: "a", Make: "expr.NewReduction",
		First: "a: Expr", Others: "options?: ReduceOptions", Maker: "reduce",
	},
	ops.Binary: {
		Params: "a, b Operand[T]", Receiver: "a", Rest: "b Operand[T]", Make: "expr.NewMap",
		First: "a: Operand", Others: "b: Operand", Maker: "binary", Title: "of each two elements",
	},
	ops.Product: {
		Params: "a, b Operand[T]", Receiver: "a", Rest: "b Operand[T]", Make: "expr.NewProduct",
		First: "a: Expr", Others: "b: Expr", Maker: "product", Title: "of whole matrices",
	},
	ops.Ternary: {
		Params: "cond, a, b Operand[T]", Receiver: "cond", Rest: "a, b Operand[T]", Make: "expr.NewMap",
		First: "cond: Operand", Others: "a: Operand, b: Operand", Maker: "ternary",
		Title: "of each element and two others", Help: "(C,\u00a0A,\u00a0B)",
	},
	ops.Limits: {
		Params: "a Operand[T], lo, hi T", Receiver: "a", Rest: "lo, hi T", Make: "expr.NewMap",
		First: "a: Expr", Others: "low: Operand, high: Operand", Maker: "limits",
		Title: "of each element and two others", Help: "(A,\u00a0lo,\u00a0hi)",
	},
	ops.MatrixLimits: {Params: "a, low, high Operand[T]", Receiver: "a", Rest: "low, high Operand[T]", Make: "expr.NewMap"},
	ops.ScalarLast:   {Params: "a Operand[T], s T", Receiver: "a", Rest: "s T", Make: "expr.NewMap"},
	ops.ScalarFirst:  {Params: "s T, a Operand[T]", Receiver: "a", Rest: "s T", Make: "expr.NewMap"},
}

// named is the face with other names of the operands, which are all matrices.
func (f face) named(params string) face {
	list := strings.Split(params, ", ")
	f.Params, f.Receiver, f.Rest = params+" Operand[T]", list[0], strings.Join(list[1:], ", ")+" Operand[T]"
	f.First, f.Others = list[0]+": Operand", strings.Join(list[1:], ": Operand, ")+": Operand"
	if f.Help != "" {
		f.Help = "(" + strings.ReplaceAll(strings.ToUpper(params), " ", "\u00a0") + ")"
	}
	return f
}

var types = regexp.MustCompile(`\??: \w+| Operand\[T\]| T\b`)

// names leaves the types out of parameters.
func names(params string) string { return types.ReplaceAllString(params, "") }

// jsparams are the types of parameters in a comment of JavaScript.
func jsparams(params string) string {
	if params == "options?: ReduceOptions" {
		return "@param {{axis?: unknown}} [options]"
	}
	return "@param {unknown} " + strings.ReplaceAll(names(params), ", ", " @param {unknown} ")
}

// row is an operation with its face.
type row struct {
	*ops.Operation
	face
	Number int // the code of an element-wise operation, or of a reduction
	Calls  int // of helpers in its text
	Loops  int // 1 if the text for floats loops, and 2 if one of those for integers does
}

var operand = regexp.MustCompile(`\b[xyz]\b`)

// Reference makes a statement's right side of the text of a reference.
func (r row) Reference() string {
	if strings.Contains(r.Go, "math.") {
		return "N(" + operand.ReplaceAllString(r.Go, "float64($0[i])") + ")"
	}
	return operand.ReplaceAllString(r.Go, "$0[i]")
}

// HasKernel reports whether an operation is a reduction that a kernel computes.
func (r row) HasKernel() bool { return r.Class == ops.Reduction && r.Call == "" }

// Script is the number of the operation in a program of JavaScript.
func (r row) Script() string {
	switch {
	case r.HasKernel():
		return "Reduction." + r.Name
	case r.Class == ops.Product || r.Class == ops.Reduction:
		return ""
	}
	return "Op." + r.Code
}

// ScriptDoc returns an operation's sentence for JavaScript.
func (r row) ScriptDoc() string {
	doc := strings.TrimPrefix(r.Doc, "is ")
	if formula := doc[1] == ' ' || strings.HasPrefix(doc, "exp("); !formula {
		doc = strings.ToUpper(doc[:1]) + doc[1:]
	}
	if r.Class == ops.Reduction {
		doc = "The " + r.Doc + " of all elements, or along an axis, whose length becomes 1"
	}
	doc = r.sentence(doc)
	if r.NumPy != "" {
		doc += " NumPy's " + r.NumPy + "."
	}
	return strings.ReplaceAll(doc, "lo..hi", "low..high")
}

// sentence makes a sentence of what the row says about a name.
func (r row) sentence(doc string) string {
	doc = strings.TrimSpace(doc + ". " + r.Note)
	if r.Ulp > 0 {
		doc += " Within " + strconv.Itoa(r.Ulp) + " ulp."
	}
	return doc
}

// form is a function that follows from a row: one for most, three for a reduction.
type form struct {
	row
	Func, Axis, Title string
	Doc               string
}

// Forms returns the functions of a row in Go.
func (r row) Forms() []form {
	if r.Class != ops.Reduction {
		return []form{{r, r.Name, "", r.Title, r.sentence(r.Name + " " + r.Doc)}}
	}
	every, rows, cols := r.Every, r.Name+"Rows", r.Name+"Cols"
	return []form{
		{r, every, "fuse.AxisAll", "of all elements", r.sentence(every + " is the " + r.Doc + " of all elements, a 1x1 matrix")},
		{r, rows, "fuse.AxisRows", "of each row, a column", rows + " is the " + r.Doc + " of each row, a column."},
		{r, cols, "fuse.AxisCols", "of each column, a row", cols + " is the " + r.Doc + " of each column, a row."},
	}
}

// Operands are the arguments of a function in Go as nodes.
func (f form) Operands() string {
	operands := strings.Split(names(f.Params), ", ")
	for i, a := range operands {
		if a == "s" || a == "lo" || a == "hi" {
			operands[i] = "scalar(" + a + ")"
		} else {
			operands[i] = "from(" + strconv.Quote(f.Func) + ", " + a + ")"
		}
	}
	return strings.Join(operands, ", ")
}

// Listed are the operands in a list called a.
func (f form) Listed() string {
	return strings.Join([]string{"a[0]", "a[1]", "a[2]"}[:f.Arity()], ", ")
}

// Node is the call that makes the node of the operation.
func (f form) Node(operands string) string {
	args := []string{strconv.Quote(f.Func)}
	switch {
	case f.Class == ops.RowMap:
		args = append(args, strconv.FormatBool(f.Name == "LogSoftmax"))
	case f.HasKernel():
		args = append(args, "fuse.Reduce"+f.Name)
	case f.Make == "expr.NewMap" && f.Call == "":
		args = append(args, "fuse.Op"+f.Code)
	}
	if f.Axis != "" {
		args = append(args, f.Axis)
	}
	return cmp.Or(f.Call, f.Make) + "(" + strings.Join(append(args, operands), ", ") + ")"
}

// Method is the name of the method in Go.
func (f form) Method() string {
	if f.Class == ops.Transpose {
		return "T"
	}
	return f.Func
}

// MethodDoc is the method's documentation.
func (f form) MethodDoc() string { return f.Method() + strings.TrimPrefix(f.Doc, f.Func) }

// Texts returns the names in matrix.Eval.
func (f form) Texts() []string {
	if f.Axis == "fuse.AxisRows" || f.Axis == "fuse.AxisCols" {
		return []string{strings.ToLower(f.Func)}
	}
	return f.Text
}

// Names returns the names of a group's functions.
func (t table) Names(g ops.Group) string {
	var list []string
	for _, r := range t.Rows {
		for _, f := range r.Forms() {
			if r.Group == g.Title {
				list = append(list, f.Func)
			}
		}
	}
	return strings.Replace(g.Names, "*", strings.Join(list, " "), 1)
}

// Help lists the functions of matrix.Eval, in lines.
func (t table) Help() []string {
	var titles, list []string
	texts := map[string][]string{}
	for _, r := range t.Rows {
		for _, f := range r.Forms() {
			for _, text := range f.Texts() {
				if texts[f.Title] == nil {
					titles = append(titles, f.Title)
				}
				texts[f.Title] = append(texts[f.Title], text+r.Help)
			}
		}
	}
	for _, title := range titles {
		lines := wrap(strings.Join(texts[title], " "), 60)
		last := len(lines) - 1
		lines[last] = fmt.Sprintf("%-60s    %s", lines[last], title)
		for _, line := range lines {
			list = append(list, strings.ReplaceAll(line, "\u00a0", " "))
		}
	}
	return list
}
