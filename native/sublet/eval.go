// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

const typesHelp = `
Files are NumPy's .npy, or text with commas where the name ends in .csv: rows of float32 numbers, and a line of headings
that is passed over. Elements are float32, float16, int8 to int32 or uint8 to uint32, the same in all files; --cast
converts other types, such as float64, and mixtures to float32 and reports the largest relative change of an element. An
array of one dimension is a row, one without dimensions is a 1x1 matrix. Either order of elements is read; results are
written row by row. Without -o the result is printed, of a large one the corners. With --json and without -o, values has its rows if
there are no more than 10,000 elements; NaN and infinities are the texts "NaN", "Infinity" and "-Infinity".

The time reported starts with the operands in host memory and ends with the result in host memory: transfers and the
compilation of kernels count, files do not.`

func (a *app) mulCommand() *cobra.Command {
	t := task{app: a, expr: "A*B"}
	c := &cobra.Command{
		Use:     "mul A.npy B.npy",
		Short:   "Multiply two matrices",
		Long:    "Multiply two matrices.\n" + typesHelp,
		Example: "  sublet mul a.npy b.npy -o c.npy",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			t.inputs = []named{{"A", args[0]}, {"B", args[1]}}
			return t.run(c.Context())
		},
	}
	t.flags(c)
	return c
}

func (a *app) evalCommand() *cobra.Command {
	t := task{app: a}
	c := &cobra.Command{
		Use:   "eval EXPR [-i NAME=FILE]...",
		Short: "Evaluate an expression of matrices",
		Long: `Evaluate an expression of matrices. Its grammar is that of a Go expression: * is the matrix product, % the
element-wise product, + - / and comparisons work element by element, && || and ! on 0 and 1, and numbers are numbers.
A ** 2 is the power of each element, A @ B the product, too. T(A) or A.T is the transpose. A[i, j], A[i:k, j:l] and A[::2]
are rows and columns, from 0; negative numbers count from the end. Several statements, B = A*A; C = B + 1, are separated
by semicolons or ends of lines; -o NAME=FILE writes the value of a name, and -o FILE that of the last statement. An
expression may begin with a minus. The functions:

` + functionsHelp + `  slice(A, i, k, j, l) row(A, i) col(A, j)                        rows i to k-1, columns j to l-1, from 0
  fill(rows, columns, value) rowindex(rows, columns) colindex(rows, columns) gather(A, rows, columns)
  float32(A) float16(A) int32(A) uint32(A) int16(A) uint16(A) int8(A) uint8(A) bool(A)

The operators have names as well: * is matmul, % multiply, + add, - subtract and / divide.
` + typesHelp,
		Example: `  sublet eval 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy -o out.npy
  sublet eval 'T(X) * X' -i X=x.npy -o gram.npy
  sublet eval 'solve(A, b)' -i A=a.csv -i b=b.csv
  sublet eval 'B = A*A; C = B + 1' -i A=a.npy -o B=b.npy -o C=c.csv
  sublet eval 'arange(5) ** 2'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if t.expr = strings.TrimPrefix(args[0], minusMark); strings.TrimSpace(t.expr) == "" {
				return cli.Usagef("the expression is empty")
			}
			return t.run(c.Context())
		},
	}
	seen := map[string]bool{}
	c.Flags().FuncP("input", "i", "a matrix of the expression, as `NAME=FILE`; - is standard input", func(s string) error {
		in, err := splitNamed("NAME=FILE", s, seen)
		if err == nil && in.value == standard && slices.ContainsFunc(t.inputs, func(o named) bool { return o.value == standard }) {
			err = cli.Usagef("standard input is one matrix")
		}
		t.inputs = append(t.inputs, in)
		return err
	})
	t.flags(c)
	return c
}

// takesValue are flags of eval whose value is the next argument.
var takesValue = []string{"-i", "--input", "-o", "--output", "--driver", "--adapter", "--timeout"}

// minusMark precedes an expression that begins with a minus.
const minusMark = " "

// minusFirst marks an expression that begins with a minus, so that it is not taken for flags.
func minusFirst(args []string) []string {
	at := slices.Index(args, "eval")
	if at < 0 {
		return args
	}
	for i := at + 1; i < len(args) && args[i] != "--"; i++ {
		switch s := args[i]; {
		case slices.Contains(takesValue, s):
			i++
		case !strings.HasPrefix(s, "-"):
			return args
		case isMinus(s):
			args = slices.Clone(args)
			args[i] = minusMark + s
			return args
		}
	}
	return args
}

// isMinus reports whether an argument that begins with a minus is an expression and no flag.
func isMinus(s string) bool {
	if len(s) < 2 || s[1] == '-' || s == "-i" || s == "-o" || s == "-h" {
		return false
	}
	name, _, assigned := strings.Cut(s[2:], "=")
	switch s[1] {
	case 'i':
		return !assigned || !token.IsIdentifier(name)
	case 'o':
		return strings.Contains(s, "(")
	}
	return true
}

// named is a flag's value NAME=VALUE.
type named struct{ name, value string }

// splitNamed splits a flag's value at its first =. Each name is there once.
func splitNamed(form, s string, seen map[string]bool) (named, error) {
	name, value, ok := strings.Cut(s, "=")
	switch {
	case !ok || value == "":
		return named{}, cli.Usagef("want %s", form)
	case !token.IsIdentifier(name):
		return named{}, cli.Usagef("%q is no name", name)
	case seen[name]:
		return named{}, cli.Usagef("%s is there already", name)
	}
	seen[name] = true
	return named{name, value}, nil
}

// task is an expression over files.
type task struct {
	*app
	expr   string
	inputs []named
	// outputs are the files that results go to, each with the name of a statement, or "" for the last one. Without any the last one is
	// printed.
	outputs []named
	cast    bool

	dev      *gpu.Device
	operands []*array // of the inputs
}

// result is what --json prints for an evaluation.
type result struct {
	Rows       int     `json:"rows"`
	Cols       int     `json:"cols"`
	DType      string  `json:"dtype"`
	Adapter    string  `json:"adapter"`
	Driver     string  `json:"driver"`
	Dispatches uint64  `json:"dispatches"`
	BytesUp    uint64  `json:"bytes_up"`
	BytesDown  uint64  `json:"bytes_down"`
	Seconds    float64 `json:"seconds"` // from data in host memory to the result in host memory
	// Change is there with --cast: the largest relative change of an operand's element.
	Change *float64 `json:"largest_relative_change,omitempty"`
	Values [][]any  `json:"values,omitzero"` // the rows, where no file gets them and there are not too many
}

// flags adds the flags that every evaluation has.
func (t *task) flags(c *cobra.Command) {
	c.Flags().FuncP("output", "o", "`FILE` to write the result to, or NAME=FILE; - is standard output", func(s string) error {
		name, path, ok := strings.Cut(s, "=")
		if !ok || !token.IsIdentifier(name) {
			name, path = "", s
		}
		if path == "" {
			return errors.New("want the name of a file")
		}
		t.outputs = append(t.outputs, named{name, t.claim(path)})
		return nil
	})
	c.Flags().BoolVar(&t.cast, "cast", false, "convert the elements of all files to float32")
}

// run does the task and reports on it.
func (t *task) run(ctx context.Context) error {
	outs := make([]io.Writer, len(t.outputs))
	for i, o := range t.outputs {
		var err error
		if outs[i], err = t.create(o.value); err != nil {
			return err
		}
	}
	defer func() { _ = t.dev.Close() }() // the result is on the host by then
	for _, in := range t.inputs {
		x, err := t.readArray(ctx, in.value, t.cast, func(x *array) error { return t.check(ctx, x) })
		if err != nil {
			return err
		}
		t.operands = append(t.operands, x)
	}
	if t.dev == nil {
		if err := t.open(ctx); err != nil {
			return err
		}
	}
	of := dtype.Float32
	if len(t.operands) > 0 {
		of = t.operands[0].Type
	}
	switch of {
	case dtype.Float16:
		return perform[matrix.Half](ctx, t, of, outs)
	case dtype.Int8:
		return perform[int8](ctx, t, of, outs)
	case dtype.Uint8:
		return perform[uint8](ctx, t, of, outs)
	case dtype.Int16:
		return perform[int16](ctx, t, of, outs)
	case dtype.Uint16:
		return perform[uint16](ctx, t, of, outs)
	case dtype.Int32:
		return perform[int32](ctx, t, of, outs)
	case dtype.Uint32:
		return perform[uint32](ctx, t, of, outs)
	default:
		return perform[float32](ctx, t, of, outs)
	}
}

func (t *task) open(ctx context.Context) (err error) {
	t.dev, err = gpu.Open(ctx, gpu.WithDriver(t.driver), gpu.WithAdapter(t.adapter))
	return err
}

// elementTypes are those of matrices that files may have.
var elementTypes = []dtype.Type{
	dtype.Float32, dtype.Float16, dtype.Int32, dtype.Uint32, dtype.Int16, dtype.Uint16, dtype.Int8, dtype.Uint8,
}

// check judges a file by its header, and opens the device for the first one that is right.
func (t *task) check(ctx context.Context, x *array) error {
	const advice = "; --cast converts to float32 and reports the largest relative change"
	if _, _, err := x.dims(); err != nil {
		return err
	}
	is, typ := "the file is "+x.Type.String(), x.Type
	switch {
	case typ.Code == dtype.Complex64.Code:
		return fault.Fail(x.path, errElem, is)
	case t.cast:
		typ = dtype.Float32
	case !slices.Contains(elementTypes, typ):
		return fault.Fail(x.path, errElem, is, "; those are float32, float16, int8 to int32 and uint8 to uint32", advice)
	case len(t.operands) > 0 && typ != t.operands[0].Type:
		first := t.operands[0]
		return fault.Fail(x.path, errMixed, is, ", and ", first.path, " is ", first.Type.String(), advice)
	}
	if t.dev == nil {
		if err := t.open(ctx); err != nil {
			return err
		}
	}
	if largest := t.dev.Info().Limits.MaxBufferSize; uint64(x.Len()) > largest/uint64(typ.Size()) {
		return fault.Fail(x.path, gpu.ErrLimit, fmt.Sprintf("%d elements of %v, the largest buffer has %d bytes", x.Len(), typ, largest))
	}
	return nil
}

// dims returns the size of the matrix that an array is.
func (x *array) dims() (rows, cols int, err error) {
	s := x.Shape
	if len(s) > 2 {
		return 0, 0, fault.Fail(x.path, buffer.ErrShape, fmt.Sprintf("an array of %d dimensions is no matrix", len(s)))
	}
	s = append([]int64{1, 1}[len(s):], s...)
	if max(s[0], s[1]) > math.MaxInt {
		return 0, 0, fault.Fail(x.path, buffer.ErrShape, fmt.Sprintf("%d by %d elements are too many", s[0], s[1]))
	}
	return int(s[0]), int(s[1]), nil
}

// number is the Go type of elements.
type number interface {
	matrix.Elem
	npy.Elem
}

// perform does a task with elements of one type, and writes the results or, where no file gets any, prints the last one.
func perform[T number](ctx context.Context, t *task, of dtype.Type, outs []io.Writer) error {
	vars, err := operands[T](t)
	if err != nil {
		return err
	}
	r := result{DType: of.String()}
	for _, x := range t.operands {
		if t.cast {
			r.Change = new(max(value(r.Change), x.change))
		}
	}
	t.progress.enter("computing", 0)
	start := time.Now()
	names := []string{}
	for _, o := range t.outputs {
		names = append(names, o.name)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	made, err := matrix.EvalAll(t.dev, t.expr, vars, names...)
	if err != nil {
		return err
	}
	var values []T
	for i, m := range made {
		if values, err = m.Read(ctx); err != nil { // row by row
			return err
		}
		r.Seconds = time.Since(start).Seconds()
		r.Rows, r.Cols = m.Dims()
		if i < len(outs) {
			t.progress.enter("writing", 0)
			if err := store(outs[i], t.outputs[i].value, of, r.Rows, r.Cols, values); err != nil {
				return err
			}
		}
	}
	stats, info := t.dev.Stats(), t.dev.Info()
	r.Adapter, r.Driver = info.Name, info.Driver
	r.Dispatches, r.BytesUp, r.BytesDown = stats.Dispatches, stats.BytesUp, stats.BytesDown
	if len(outs) == 0 {
		r.Values = nested(r.Rows, r.Cols, values)
	}
	return t.report(r, func(w io.Writer) error {
		if len(outs) == 0 {
			if err := printCells(w, r.Rows, r.Cols, func(i, j int) (any, error) { return values[i*r.Cols+j], nil }); err != nil {
				return err
			}
		}
		cast := ""
		if t.cast {
			cast = fmt.Sprintf(", largest relative change by --cast: %.3g", value(r.Change))
		}
		_, err := fmt.Fprintf(w, "%dx%d %s in %.3f s on %s (%s); dispatches: %d, bytes up: %d, bytes down: %d%s\n",
			r.Rows, r.Cols, r.DType, r.Seconds, r.Adapter, r.Driver, r.Dispatches, r.BytesUp, r.BytesDown, cast)
		return err
	})
}

// value is what a pointer points to, 0 of none.
func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// operands wraps the files as matrices.
func operands[T number](t *task) (map[string]*matrix.Dense[T], error) {
	vars := map[string]*matrix.Dense[T]{}
	for i, x := range t.operands {
		rows, cols, err := x.dims()
		if err == nil {
			layout := matrix.Options{ColMajor: x.Fortran}
			vars[t.inputs[i].name], err = matrix.FromBuffer[T](t.dev, rows, cols, gpu.HostBytes(x.data), buffer.DontOwnBuffer, layout)
		}
		if err != nil {
			return nil, inFile(x.path, err)
		}
	}
	return vars, nil
}

// store writes a result as the name of its file says.
func store[T number](out io.Writer, path string, of dtype.Type, rows, cols int, values []T) error {
	if isCSV(path) {
		return writeCSV(out, rows, cols, values)
	}
	return npy.Write(out, npy.Header{Type: of, Shape: []int64{int64(rows), int64(cols)}}, values)
}
