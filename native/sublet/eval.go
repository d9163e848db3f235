// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/token"
	"io"
	"math"
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
Files are NumPy's .npy. Elements are float32, float16, int32 or uint32, the same in all files; --cast converts other
types, such as float64, and mixtures to float32 and reports the largest relative change of an element. An array of one
dimension is a row, one without dimensions is a 1x1 matrix. Either order of elements is read; results are written row by
row. Without -o the result is printed, of a large one the corners. With --json and without -o, values has its rows if
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
		Use:   "eval EXPR -i NAME=FILE...",
		Short: "Evaluate an expression of matrices",
		Long: `Evaluate an expression of matrices. Its grammar is that of a Go expression: * is the matrix product, % the
element-wise product, + - / and comparisons work element by element, && || and ! on 0 and 1, and numbers are numbers.
T(A) or A.T is the transpose. The functions:

` + functionsHelp + `  slice(A, i, k, j, l) row(A, i) col(A, j)                        rows i to k-1, columns j to l-1, from 0; A is a name
  fill(rows, columns, value)

The operators have names as well: * is matmul, % multiply, + add, - subtract and / divide.
` + typesHelp,
		Example: `  sublet eval 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy -o out.npy
  sublet eval 'T(X) * X' -i X=x.npy -o gram.npy`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch t.expr = args[0]; {
			case t.expr == "":
				return cli.Usagef("the expression is empty")
			case len(t.inputs) == 0:
				return cli.Usagef("-i is missing: want a matrix of the expression, as -i NAME=FILE; the result has its element type")
			}
			return t.run(c.Context())
		},
	}
	seen := map[string]bool{}
	c.Flags().FuncP("input", "i", "a matrix of the expression, as `NAME=FILE`", func(s string) error {
		in, err := splitNamed("NAME=FILE", s, seen)
		t.inputs = append(t.inputs, in)
		return err
	})
	t.flags(c)
	return c
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
	output string // "" prints the result
	cast   bool

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
	t.outputFlag(c, &t.output, "`FILE` to write the result to; - is standard output")
	c.Flags().BoolVar(&t.cast, "cast", false, "convert the elements of all files to float32")
}

// run does the task and reports on it.
func (t *task) run(ctx context.Context) error {
	var out io.Writer
	var err error
	if t.output != "" {
		if out, err = t.create(t.output); err != nil {
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
	switch t.operands[0].Type {
	case dtype.Float16:
		return perform[matrix.Half](ctx, t, out)
	case dtype.Int32:
		return perform[int32](ctx, t, out)
	case dtype.Uint32:
		return perform[uint32](ctx, t, out)
	default:
		return perform[float32](ctx, t, out)
	}
}

// check judges a file by its header, and opens the device for the first one that is right.
func (t *task) check(ctx context.Context, x *array) (err error) {
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
	case typ != dtype.Float32 && typ != dtype.Float16 && typ != dtype.Int32 && typ != dtype.Uint32:
		return fault.Fail(x.path, errElem, is, "; those are float32, float16, int32 and uint32", advice)
	case len(t.operands) > 0 && typ != t.operands[0].Type:
		first := t.operands[0]
		return fault.Fail(x.path, errMixed, is, ", and ", first.path, " is ", first.Type.String(), advice)
	}
	if t.dev == nil {
		if t.dev, err = gpu.Open(ctx, gpu.WithDriver(t.driver), gpu.WithAdapter(t.adapter)); err != nil {
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

// perform does a task with elements of one type, and writes the result to out or, where that is nil, prints it.
func perform[T number](ctx context.Context, t *task, out io.Writer) error {
	vars := map[string]*matrix.Dense[T]{}
	r := result{DType: t.operands[0].Type.String()}
	if t.cast {
		r.Change = new(float64)
	}
	for i, x := range t.operands {
		rows, cols, err := x.dims()
		if err == nil {
			layout := matrix.Options{ColMajor: x.Fortran}
			vars[t.inputs[i].name], err = matrix.FromBuffer[T](t.dev, rows, cols, gpu.HostBytes(x.data), buffer.DontOwnBuffer, layout)
		}
		if err != nil {
			return inFile(x.path, err)
		}
		if t.cast {
			*r.Change = max(*r.Change, x.change)
		}
	}
	t.progress.enter("computing", 0)
	start := time.Now()
	y := matrix.Eval(t.expr, vars)
	values, err := y.Read(ctx) // row by row
	if err != nil {
		return err
	}
	r.Seconds = time.Since(start).Seconds()
	r.Rows, r.Cols = y.Dims()
	stats, info := t.dev.Stats(), t.dev.Info()
	r.Adapter, r.Driver = info.Name, info.Driver
	r.Dispatches, r.BytesUp, r.BytesDown = stats.Dispatches, stats.BytesUp, stats.BytesDown
	if out == nil {
		r.Values = nested(r.Rows, r.Cols, values)
	} else {
		t.progress.enter("writing", 0)
		h := npy.Header{Type: t.operands[0].Type, Shape: []int64{int64(r.Rows), int64(r.Cols)}}
		if err := npy.Write(out, h, values); err != nil {
			return err
		}
	}
	return t.report(r, func(w io.Writer) error {
		if out == nil {
			if err := printCells(w, r.Rows, r.Cols, func(i, j int) (any, error) { return values[i*r.Cols+j], nil }); err != nil {
				return err
			}
		}
		cast := ""
		if t.cast {
			cast = fmt.Sprintf(", largest relative change by --cast: %.3g", *r.Change)
		}
		_, err := fmt.Fprintf(w, "%dx%d %s in %.3f s on %s (%s); dispatches: %d, bytes up: %d, bytes down: %d%s\n",
			r.Rows, r.Cols, r.DType, r.Seconds, r.Adapter, r.Driver, r.Dispatches, r.BytesUp, r.BytesDown, cast)
		return err
	})
}
