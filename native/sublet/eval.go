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
			if t.expr = args[0]; t.expr == "" || len(t.inputs) == 0 {
				return usagef("want an expression, and its matrices by -i NAME=FILE")
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
		return named{}, usagef("want %s", form)
	case !token.IsIdentifier(name):
		return named{}, usagef("%q is no name", name)
	case seen[name]:
		return named{}, usagef("%s is there already", name)
	}
	seen[name] = true
	return named{name, value}, nil
}

// task is an expression over files.
type task struct {
	app    *app
	expr   string
	inputs []named
	output string // "" prints the result
	cast   bool

	operands []operand
	progress *progress
	result   result
	print    func(io.Writer) error // prints the elements, where no file gets them
}

// operand is a file of a matrix.
type operand struct {
	*arrayFile
	name       string
	rows, cols int
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
	outputFlag(c, &t.output, "`FILE` to write the result to; - is standard output")
	c.Flags().BoolVar(&t.cast, "cast", false, "convert the elements of all files to float32")
}

// run does the task and reports on it.
func (t *task) run(ctx context.Context) error {
	t.app.claim(t.output)
	t.progress = newProgress(t.app.err)
	defer t.progress.stop()
	t.progress.enter("reading", 0)
	defer func() {
		for _, o := range t.operands {
			o.close()
		}
	}()
	for _, in := range t.inputs {
		f, err := openArray(in.value, t.progress)
		if err != nil {
			return err
		}
		t.operands = append(t.operands, operand{arrayFile: f, name: in.name})
		if err := t.operands[len(t.operands)-1].setSize(); err != nil {
			return err
		}
	}
	typ, err := t.elementType()
	if err != nil {
		return err
	}
	t.result.DType = typ.String()
	evaluate := perform[float32]
	switch typ {
	case dtype.Float16:
		evaluate = perform[matrix.Half]
	case dtype.Int32:
		evaluate = perform[int32]
	case dtype.Uint32:
		evaluate = perform[uint32]
	}
	if t.output == "" {
		err = evaluate(ctx, t, typ, nil)
	} else {
		err = t.app.write(t.output, func(out io.Writer) error { return evaluate(ctx, t, typ, out) })
	}
	if err != nil {
		return err
	}
	t.progress.stop()
	return t.app.report(&t.result, t.report)
}

// report prints the result, where no file got it, and a line about the work.
func (t *task) report(w io.Writer) error {
	r, cast := &t.result, ""
	if r.Change != nil {
		cast = fmt.Sprintf(", largest relative change by --cast: %.3g", *r.Change)
	}
	if t.print != nil {
		if err := t.print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%dx%d %s in %.3f s on %s (%s); dispatches: %d, bytes up: %d, bytes down: %d%s\n",
		r.Rows, r.Cols, r.DType, r.Seconds, r.Adapter, r.Driver, r.Dispatches, r.BytesUp, r.BytesDown, cast)
	return err
}

func (o *operand) setSize() error {
	s := o.Shape
	if len(s) > 2 {
		return fault.Fail(o.path, buffer.ErrShape, fmt.Sprintf("an array of %d dimensions is no matrix", len(s)))
	}
	s = append([]int64{1, 1}[len(s):], s...)
	if max(s[0], s[1]) > math.MaxInt {
		return fault.Fail(o.path, buffer.ErrShape, fmt.Sprintf("%d by %d elements are too many", s[0], s[1]))
	}
	o.rows, o.cols = int(s[0]), int(s[1])
	return nil
}

// elementType returns the type to compute in, which is that of all operands, or float32 when they are cast to it.
func (t *task) elementType() (dtype.Type, error) {
	const advice = "; --cast converts to float32 and reports the largest relative change"
	first := t.operands[0]
	for _, o := range t.operands {
		switch is := "the file is " + o.Type.String(); {
		case o.Type.Code == dtype.Complex64.Code:
			return o.Type, fault.Fail(o.path, errElem, is)
		case t.cast:
		case o.Type != dtype.Float32 && o.Type != dtype.Float16 && o.Type != dtype.Int32 && o.Type != dtype.Uint32:
			return o.Type, fault.Fail(o.path, errElem, is, "; those are float32, float16, int32 and uint32", advice)
		case o.Type != first.Type:
			return o.Type, fault.Fail(o.path, errMixed, is, ", and ", first.path, " is ", first.Type.String(), advice)
		}
	}
	if t.cast {
		return dtype.Float32, nil
	}
	return first.Type, nil
}

// perform does a task with elements of one type, and writes the result where somebody wants it.
func perform[T matrix.Elem](ctx context.Context, t *task, typ dtype.Type, out io.Writer) error {
	dev, err := gpu.Open(ctx, gpu.WithDriver(t.app.driver), gpu.WithAdapter(t.app.adapter))
	if err != nil {
		return err
	}
	defer func() { _ = dev.Close() }() // the result is on the host by then
	vars := map[string]*matrix.Dense[T]{}
	if t.cast {
		t.result.Change = new(float64)
	}
	for _, o := range t.operands {
		if largest := dev.Info().Limits.MaxBufferSize; uint64(o.Len()) > largest/uint64(typ.Size()) {
			return fault.Fail(o.path, gpu.ErrLimit, fmt.Sprintf("%d elements of %v, the largest buffer has %d bytes", o.Len(), typ, largest))
		}
	}
	for _, o := range t.operands {
		data, change, err := o.read(ctx, t.cast)
		if err != nil {
			return err
		}
		if t.cast {
			*t.result.Change = max(*t.result.Change, change)
		}
		layout := matrix.Options{ColMajor: o.Fortran}
		if vars[o.name], err = matrix.FromBuffer[T](dev, o.rows, o.cols, gpu.HostBytes(data), buffer.DontOwnBuffer, layout); err != nil {
			return inFile(o.path, err)
		}
	}
	t.progress.enter("computing", 0)
	start := time.Now()
	x := matrix.Eval(t.expr, vars)
	values, err := x.Read(ctx) // row by row
	if err != nil {
		return err
	}
	r := &t.result
	r.Seconds = time.Since(start).Seconds()
	r.Rows, r.Cols = x.Dims()
	stats, info := dev.Stats(), dev.Info()
	r.Adapter, r.Driver = info.Name, info.Driver
	r.Dispatches, r.BytesUp, r.BytesDown = stats.Dispatches, stats.BytesUp, stats.BytesDown
	if out == nil {
		r.Values = nested(r.Rows, r.Cols, values)
		t.print = func(w io.Writer) error {
			return printCells(w, r.Rows, r.Cols, func(i, j int) (any, error) { return values[i*r.Cols+j], nil })
		}
		return nil
	}
	t.progress.enter("writing", int64(len(values)*typ.Size()))
	h := npy.Header{Type: typ, Shape: []int64{int64(r.Rows), int64(r.Cols)}}
	return npy.Write(io.MultiWriter(out, t.progress), h, values)
}
