// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

const typesHelp = `
Files are NumPy's .npy, .csv with one row a line, the Matrix Market's .mtx, or .npz as scipy.sparse.save_npz writes them; - is standard
input or output, of which the former may bring any but the last. Matrices of .mtx (coordinate) and .npz are sparse, and results stay so
where the mathematics does; they are written to .mtx and .npz as such, to other files with all elements. Elements are float32, float16,
int32, uint32, int8, uint8, int16, uint16 or bool, or complex64, which may stand beside float32; other types that differ are converted,
as in float32(A), but for indices and the condition of where. Numbers of a .csv, .mtx or .npz are float32. In text, complex numbers are
1+2j, as NumPy has them, and [1, 2] in JSON. float64, int64 and uint64 need --cast, which converts all files to float32 and reports the
largest relative change of an element. Those of fewer than 32 bits are computed with 32 and wrap when they are stored; floats that
become whole numbers saturate. An array of one dimension is a row, one without dimensions is a 1x1 matrix. Either order of elements is
read; results are written row by row, in blocks. A .csv has no names of columns; --header skips a first line of them. A result gets the
format of its file's ending, .npy without one; without -o it is printed, of a large one the corners. With --json and without -o, values
has its rows if there are no more than 10,000 elements; NaN and infinities are the texts "NaN", "Infinity" and "-Infinity".

The time reported starts with the operands in host memory and ends with the result in host memory: transfers and the
compilation of kernels count, files do not.`

const mulHelp = `Multiply two matrices.

With --devices several devices compute the product, each some rows of it (columns of one that has few rows), as many as it has time for.
0 is the first adapter that sublet info lists with wgsl among its features, given the same --driver and --adapter; one may be there
several times. The files are not sparse.
`

func (a *app) mulCommand() *cobra.Command {
	t := task{app: a, expr: "A*B"}
	c := &cobra.Command{
		Use:     "mul A.npy B.npy",
		Short:   "Multiply two matrices",
		Long:    mulHelp + typesHelp,
		Example: "  sublet mul a.npy b.npy -o c.npy\n  sublet mul a.npy b.npy -o c.npy --devices all",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			t.inputs = []named{{"A", args[0]}, {"B", args[1]}}
			return t.run(c.Context())
		},
	}
	t.outputFlag(c, &t.output, "`FILE` to write the result to; - is standard output")
	c.Flags().Func("devices", devicesUsage+", that compute together (default: one device)", t.addDevices)
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
T(A) or A.T is the transpose, 2j an imaginary number, A @ B is A * B, A**2 the element-wise power (Go's ^ is refused). There are no comments.
A[i, j] is an element, A[i] a row, A[:, j] a column and A[i:k, j:l] rows i to k-1 and columns j to l-1 of any operand, from 0;
negative numbers count from the end, -1 is the last one; A[i:k:step] takes every so many rows. In std and var of a matrix, a second
argument is what is subtracted from the number of elements (ddof), not an axis. The functions:

` + functionsHelp + `  slice(A, i, k, j, l) row(A, i) col(A, j)                        the same as brackets
  gather(A, ROWS, COLS)                                           elements at those places, 0 where there is none
  rowindex(rows, cols) colindex(rows, cols)                       the number of each element's row or column, of int32
  float32(A) float16(A) int32(A) uint32(A) int16(A) uint16(A)
  int8(A) uint8(A) bool(A) complex64(A)                           other element types
  fill(rows, columns, value)

The operators have names as well: * is matmul, % multiply, + add, - subtract and / divide. Several statements NAME = EXPR stand in
lines or have semicolons between them; a later one may use the names of those before. -o NAME=FILE writes the result of that name,
-o FILE the last one. Numbers take the type of what they stand beside; where nothing says another one, elements are float32, and uint32
those of randombits. pi, e, inf and nan are numbers unless an input has the name.
` + typesHelp,
		Example: `  sublet eval 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy -o out.npy
  sublet eval 'T(X) * X' -i X=x.npy -o gram.npy
  sublet eval 'S = X*X.T; N = S / sum(S)' -i X=x.csv -o S=s.npy -o N=n.csv
  sublet eval 'eye(3)*2'
  sublet eval --explain plan 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if t.expr = args[0]; strings.TrimSpace(t.expr) == "" {
				return cli.Usagef("the expression is empty")
			}
			if t.explain != "" && len(t.outputs) > 0 {
				return cli.Usagef("--explain computes nothing that -o could write")
			}
			return t.run(c.Context())
		},
	}
	seen := map[string]bool{}
	c.Flags().FuncP("input", "i", "a matrix of the expression, as `NAME=FILE`; - is standard input", func(s string) error {
		in, err := splitNamed("NAME=FILE", s, seen)
		if err == nil && in.value == standard && slices.ContainsFunc(t.inputs, func(n named) bool { return n.value == standard }) {
			err = cli.Usagef("standard input is one matrix")
		}
		t.inputs = append(t.inputs, in)
		return err
	})
	c.Flags().Func("explain", "print how one expression, not several statements, is computed: `plan` lists the kernels, wgsl their sources, too", func(s string) error {
		if s != "plan" && s != "wgsl" {
			return errors.New("want plan or wgsl")
		}
		t.explain = s
		return nil
	})
	c.Flags().FuncP("output", "o", "`FILE` to write the last result to, or NAME=FILE for another; - is standard output", t.addOutput)
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

// endings are those of files of results. What has none is a .npy.
var endings = []string{"", ".npy", ".csv", ".mtx", ".npz"}

// task is an expression over files.
type task struct {
	*app
	expr         string
	inputs       []named
	output       string  // of mul
	outputs      []named // the name "" is the last result. None prints it
	cast, header bool
	explain      string // "plan" or "wgsl": how it is computed is printed, and nothing is computed

	selected // devices, if there are several
	opened   []*gpu.Device
	group    *matrix.DeviceGroup
	dev      *gpu.Device // the first one
	operands []*array    // of the inputs
}

// result is what --json prints for an evaluation.
type result struct {
	Rows       int     `json:"rows"`
	Cols       int     `json:"cols"`
	Entries    *int    `json:"entries,omitempty"` // of a sparse result
	DType      string  `json:"dtype"`
	Adapter    string  `json:"adapter"`
	Driver     string  `json:"driver"`
	Dispatches uint64  `json:"dispatches"`
	BytesUp    uint64  `json:"bytes_up"`
	BytesDown  uint64  `json:"bytes_down"`
	Seconds    float64 `json:"seconds"` // from data in host memory to the result in host memory
	// Change is there with --cast: the largest relative change of an operand's element.
	Change  *float64      `json:"largest_relative_change,omitempty"`
	Values  [][]any       `json:"values,omitzero"`  // the rows, where no file gets them and there are not too many
	Written []namedResult `json:"written,omitzero"` // where outputs have names
	// With --devices: what they are, and what each computed.
	Devices []deviceReport `json:"devices,omitzero"`
	Shares  []matrix.Share `json:"shares,omitzero"`
}

// namedResult is a result of a name in a file.
type namedResult struct {
	Name  string `json:"name"`
	Rows  int    `json:"rows"`
	Cols  int    `json:"cols"`
	DType string `json:"dtype"`
	File  string `json:"file"`
}

// flags adds the flags that every evaluation has.
func (t *task) flags(c *cobra.Command) {
	c.Flags().BoolVar(&t.cast, "cast", false, "convert the elements of all files to float32")
	c.Flags().BoolVar(&t.header, "header", false, "skip the first line of .csv files")
}

// sameFile reports whether two names are of one file, also where there is none yet.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return err == nil && err2 == nil && one.Mode().IsRegular() && os.SameFile(one, other) || filepath.Clean(a) == filepath.Clean(b)
}

// addOutput reads a value of eval's -o.
func (t *task) addOutput(s string) error {
	out := named{"", s}
	if name, path, ok := strings.Cut(s, "="); ok && token.IsIdentifier(name) {
		out = named{name, path}
	}
	if out.value == "" {
		return errors.New("want the name of a file")
	}
	for _, other := range t.outputs {
		switch {
		case (other.value == standard) == (out.value == standard) && sameFile(other.value, out.value):
			return cli.Usagef("two results in %s", out.value)
		case other.name == "" && out.name == "":
			return cli.Usagef("two files for the last result; others are NAME=FILE")
		}
	}
	out.value = t.claim(out.value)
	t.outputs = append(t.outputs, out)
	return nil
}

// run does the task and reports on it.
func (t *task) run(ctx context.Context) error {
	if t.output != "" {
		t.outputs = append(t.outputs, named{"", t.output})
	}
	outs := make([]io.Writer, len(t.outputs))
	for i, o := range t.outputs {
		if ending := filepath.Ext(o.value); o.value != standard && !slices.Contains(endings, strings.ToLower(ending)) {
			return cli.Usagef("%s: files of results end in .npy, .csv, .mtx or .npz, not in %s", o.value, ending)
		}
		var err error
		if outs[i], err = t.create(o.value); err != nil {
			return err
		}
	}
	defer func() {
		for _, d := range t.opened {
			_ = d.Close() // the result is on the host by then
		}
	}()
	for _, in := range t.inputs {
		x, err := t.operand(ctx, in.value)
		if err != nil {
			return err
		}
		t.operands = append(t.operands, x)
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.perform(ctx, outs)
}

// open opens the device, or those of --devices, once.
func (t *task) open(ctx context.Context) (err error) {
	switch {
	case t.dev != nil:
		return nil
	case !t.chosen:
		if t.dev, err = gpu.Open(ctx, append(t.options, gpu.WithDriver(t.driver), gpu.WithAdapter(t.adapter))...); err != nil {
			return err
		}
		t.opened = []*gpu.Device{t.dev}
		t.useTuning(t.dev)
		return nil
	}
	if t.opened, err = t.selected.open(ctx, t.app); err != nil {
		return err
	}
	for _, dev := range t.opened {
		t.useTuning(dev)
	}
	t.dev = t.opened[0]
	t.group, err = matrix.On(t.opened...)
	return err
}

// elementTypes are those of files that are those of matrices.
var elementTypes = map[dtype.Type]matrix.DType{
	dtype.Float32: matrix.Float32, dtype.Float16: matrix.Float16, dtype.Int32: matrix.Int32, dtype.Uint32: matrix.Uint32,
	dtype.Int8: matrix.Int8, dtype.Uint8: matrix.Uint8, dtype.Int16: matrix.Int16, dtype.Uint16: matrix.Uint16, dtype.Bool8: matrix.Bool,
	dtype.Complex64: matrix.Complex64,
}

// check judges a file by its header, and opens the device for the first one that is right.
func (t *task) check(ctx context.Context, x *array) (err error) {
	const advice = "; --cast converts to float32 and reports the largest relative change"
	if _, _, err := x.dims(); err != nil {
		return err
	}
	is, typ := "the file is "+x.Type.String(), x.Type
	_, known := elementTypes[typ]
	switch {
	case typ.Code == dtype.Complex64.Code && (t.cast || !known):
		return fault.Fail(x.path, errElem, is, "; of complex numbers there are those of complex64, which are not cast")
	case t.cast:
		typ = dtype.Float32
	case !known:
		return fault.Fail(x.path, errElem, is, "; those are float32, float16, int32, uint32, int8, uint8, int16, uint16, bool and complex64", advice)
	}
	return t.open(ctx)
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
