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
	ops.RowMap: {
		Params: "a Operand[T]", Receiver: "a", Make: "softmaxNode",
		First: "a: Expr", Others: "options?: NormaliseOptions", Maker: "normalise",
	},
	ops.Reduction: {
		Params: "a Operand[T]", Receiver: "a", Make: "reduceNode",
		First: "a: Expr", Others: "options?: ReduceOptions", Maker: "reduce",
	},
	ops.Binary: {
		Params: "a, b Operand[T]", Receiver: "a", Rest: "b Operand[T]", Make: "expr.NewMap",
		First: "a: Operand", Others: "b: Operand", Maker: "binary", Title: "of each two elements",
	},
	ops.Order: {
		Params: "a Operand[T]", Receiver: "a", Make: "sortNode",
		First: "a: Expr", Others: "options?: OrderOptions", Maker: "order",
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

var types = regexp.MustCompile(`\??: \{[^}]*\}|\??: (readonly )?\w+(\[\])?| Operand\[\w+\]| T\b| float64| int\b| \.\.\.int| \.\.\.Operand\[T\]`)

// numbered are the faces of reductions that take a number.
var numbered = map[string]face{
	ops.Ddof: {
		Params: "a Operand[T], ddof ...int", Receiver: "a", Rest: "ddof ...int", Make: "reduceNode",
		First: "a: Expr", Others: "options?: SpreadOptions", Maker: "spread",
	},
	ops.Power: {
		Params: "a Operand[T], p float64", Receiver: "a", Rest: "p float64", Make: "reduceNode",
		First: "a: Expr", Others: "p: number, options?: ReduceOptions", Maker: "norm", Help: "(A,\u00a0p)",
	},
}

// topmost is the face of what takes so many elements.
var topmost = face{
	Params: "a Operand[T], k int", Receiver: "a", Rest: "k int", Make: "sortNode",
	First: "a: Expr", Others: "k: number, options?: OrderOptions", Maker: "topmost", Help: "(A,\u00a0k)",
}

// names leaves the types out of parameters.
func names(params string) string { return types.ReplaceAllString(params, "") }

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

// Typed are the parameters of the method in JavaScript, as in a declaration.
func (r row) Typed() string {
	switch {
	case r.Alone: // its options are an error
		return ""
	case r.Class == ops.Product:
		return strings.Replace(r.Others, "Expr", "Factor", 1)
	}
	return r.Others
}

// Declared are the parameters of the function in JavaScript, as in a declaration.
func (r row) Declared() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.First+", "+r.Typed(), ", "), ", ")
}

// Called are the parameters in Go.
func (r row) Called() string { return r.face.Params }

// Reduces reports whether an operation is a reduction.
func (r row) Reduces() bool { return r.Class == ops.Reduction }

// Result is the element type of what a function in Go returns.
func (r row) Result() string {
	return cmp.Or(r.Makes, "T")
}

// Pass are the arguments with which a method calls its function.
func (r row) Pass() string { return strings.Replace(names(r.face.Params), "ddof", "ddof...", 1) }

// Script is the number of the operation in a program of JavaScript.
func (r row) Script() string {
	switch {
	case r.Reduces():
		return "Reduction." + r.Name
	case r.Shapes():
		return "Shaping." + r.Name
	case r.Class == ops.Product:
		return ""
	}
	return "Op." + r.Code
}

// formula is a documentation that begins with the name of an operand or of a function.
var formula = regexp.MustCompile(`^([a-e]( |,)|[a-z]+[0-9]?\()`)

// article is one that begins with an article.
var article = regexp.MustCompile(`^a (square matrix|row of|rows x cols) `)

// ScriptDoc returns an operation's sentences for JavaScript.
func (r row) ScriptDoc() string {
	doc := strings.TrimPrefix(strings.TrimPrefix(r.Doc, "is "), "has ")
	switch {
	case r.Class == ops.Order:
		doc = strings.Replace("Each row, or along axis 0 each column, as "+doc, "as sorted", "sorted", 1)
	case r.Alone:
		doc = "The " + doc + ", of a tensor only where it has two dimensions"
	case r.Reduces():
		doc = "The " + doc + " of all elements, or along an axis, whose length becomes 1"
	case !formula.MatchString(doc) || article.MatchString(doc):
		doc = strings.ToUpper(doc[:1]) + doc[1:]
	}
	doc = inScript(onlyGo.Replace(r.sentence(doc)))
	return strings.ReplaceAll(doc, "lo..hi", "low..high")
}

// onlyGo leaves out what JavaScript does not have.
var onlyGo = strings.NewReplacer(" LU tells the condition.", "", " In a text it is A.H, too.", "")

var capital = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)

// inScript has a text call operations and errors what they are called in JavaScript.
func inScript(text string) string {
	return capital.ReplaceAllStringFunc(text, func(word string) string {
		if strings.HasPrefix(word, "Err") {
			return "`" + word + "`"
		}
		for i := range ops.Table {
			if o := &ops.Table[i]; o.Name == word && !ordinary[word] {
				return "`" + cmp.Or(o.JS, strings.ToLower(word)) + "`"
			}
		}
		return word
	})
}

// ordinary are names of operations that are words as well.
var ordinary = map[string]bool{"Real": true, "Complex": true, "Gumbel": true, "Where": true}

// Spellings are the names in JavaScript: ours, and NumPy's where that is another one.
func (r row) Spellings() []string {
	words := strings.Split(r.NumPy, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	switch name := strings.Join(words, ""); {
	case r.JS == "":
		return nil
	case name != "" && name != r.JS:
		return []string{r.JS, name}
	}
	return []string{r.JS}
}

// Short is what editors show with the further declarations of an operation: its first sentence.
func (r row) Short() string {
	first, _, _ := strings.Cut(r.ScriptDoc(), ". ")
	return strings.TrimSuffix(first, ".") + "."
}

// SpellingDoc is the documentation of a name in JavaScript.
func (r row) SpellingDoc(name string) string {
	if name == r.JS {
		return r.ScriptDoc()
	}
	return "NumPy's name of `" + r.JS + "`. " + r.ScriptDoc()
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
	if r.Class == ops.RowMap {
		return []form{
			{r, r.Name, "fuse.AxisRows", "of each row, a matrix", r.sentence(r.Name + " " + r.Doc)},
			{r, r.Name + "Cols", "fuse.AxisCols", "of each column, a matrix", r.Name + "Cols is " + r.Name + " of each column."},
			{r, r.Name + "All", "fuse.AxisAll", "of all elements, a matrix", r.Name + "All is " + r.Name + " of all elements together."},
		}
	}
	if r.Class == ops.Order {
		return []form{
			{r, r.Name + "Rows", "fuse.AxisRows", "of each row, a matrix", r.sentence(r.Name + "Rows is each row as " + r.Doc)},
			{r, r.Name + "Cols", "fuse.AxisCols", "of each column, a matrix", r.sentence(r.Name + "Cols is each column as " + r.Doc)},
		}
	}
	if r.Class != ops.Reduction {
		return []form{{r, r.Name, "", r.Title, r.sentence(r.Name + " " + r.Doc)}}
	}
	every, rows, cols := r.Every, r.Name+"Rows", r.Name+"Cols"
	if r.Alone {
		return []form{{r, every, "fuse.AxisAll", "of all elements", r.sentence(every + " is the " + r.Doc + ", a 1x1 matrix")}}
	}
	return []form{
		{r, every, "fuse.AxisAll", "of all elements", r.sentence(every + " is the " + r.Doc + " of all elements, a 1x1 matrix")},
		{r, rows, "fuse.AxisRows", "of each row, a column", rows + " is the " + r.Doc + " of each row, a column" + "."},
		{r, cols, "fuse.AxisCols", "of each column, a row", cols + " is the " + r.Doc + " of each column, a row" + "."},
	}
}

// Operands are the arguments of a function in Go as nodes.
func (f form) Operands() string {
	if f.Class == ops.Shaping {
		return f.shapingOperands()
	}
	operands := strings.Split(names(f.face.Params), ", ")
	for i, a := range operands {
		switch a {
		case "s", "lo", "hi":
			operands[i] = "scalar(" + a + ")"
		case ops.Ddof:
			operands[i] = "ddofOf(ddof)"
		case ops.Power, ops.Most:
			operands[i] = a
		default:
			operands[i] = "from(" + strconv.Quote(f.Func) + ", " + a + ")"
		}
	}
	switch {
	case f.Reduces() && f.Takes == "":
		operands = append(operands, "0")
	case f.Class == ops.Order && f.Takes == "":
		operands = append(operands, "-1")
	}
	return strings.Join(operands, ", ")
}

// Count is how many arguments a function of matrix.Eval takes, negative if the last one may be left out.
func (f form) Count() int {
	switch f.Takes {
	case ops.Ddof:
		return -2
	case ops.Power, ops.Most:
		return 2
	}
	return f.Arity()
}

// Listed are the operands in a list called a.
func (f form) Listed() string {
	switch {
	case f.Takes == ops.Most:
		return "a[0], countIn(a)"
	case f.Class == ops.Order:
		return "a[0], -1"
	case f.Takes != "":
		return "a[0], numberIn(a)"
	case f.Reduces():
		return "a[0], 0"
	}
	return strings.Join([]string{"a[0]", "a[1]", "a[2]"}[:f.Arity()], ", ")
}

// Node is the call that makes the node of the operation.
func (f form) Node(operands string) string {
	args := []string{strconv.Quote(f.Func)}
	switch {
	case f.Class == ops.Shaping:
		args = append(args, strconv.Itoa(f.Number), "typeOf[T]()")
	case f.Class == ops.RowMap:
		args = append(args, map[string]string{"Softmax": "softmaxPlain", "LogSoftmax": "softmaxLog", "Hardmax": "softmaxHard"}[f.Name])
	case f.Class == ops.Order:
		args = append(args, "order"+f.Name)
	case f.Reduces():
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
	if f.Class == ops.Shaping { // which have a list of their own
		return nil
	}
	if f.Func == f.Every {
		return f.Text
	}
	texts := []string{strings.ToLower(f.Func)}
	for _, text := range f.Text {
		if text != strings.ToLower(f.Every) { // any: anyrows
			texts = append(texts, text+strings.ToLower(strings.TrimPrefix(f.Func, f.Name)))
		}
	}
	return texts
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
	titles = append(titles, "that make or shape matrices; numbers in [] may be left out")
	texts[titles[len(titles)-1]] = t.shapingHelp()
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
