// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/token"
	"strings"

	"github.com/spf13/cobra"
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
	var t task
	c := &cobra.Command{
		Use:     "mul A.npy B.npy",
		Short:   "Multiply two matrices",
		Long:    "Multiply two matrices.\n" + typesHelp,
		Example: "  sublet mul a.npy b.npy -o c.npy",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			t.inputs = []input{{"A", args[0]}, {"B", args[1]}}
			return a.evaluate(c.Context(), t)
		},
	}
	t.flags(c)
	return c
}

func (a *app) evalCommand() *cobra.Command {
	var t task
	var named []string
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
			var err error
			if t.inputs, err = parseInputs(named); err != nil {
				return err
			}
			if t.expr = args[0]; t.expr == "" {
				return usagef("the expression is empty")
			}
			return a.evaluate(c.Context(), t)
		},
	}
	c.Flags().StringArrayVarP(&named, "input", "i", nil, "a matrix of the expression, as `NAME=FILE`")
	t.flags(c)
	return c
}

// flags adds the flags that every evaluation has.
func (t *task) flags(c *cobra.Command) {
	outputFlag(c, &t.output, "`FILE` to write the result to; - is standard output")
	c.Flags().BoolVar(&t.cast, "cast", false, "convert the elements of all files to float32")
}

// parseInputs splits NAME=FILE.
func parseInputs(named []string) ([]input, error) {
	if len(named) == 0 {
		return nil, usagef("no matrices: give at least one -i NAME=FILE")
	}
	seen := map[string]bool{}
	var in []input
	for _, s := range named {
		name, path, err := splitNamed("-i", "NAME=FILE", s, seen)
		if err != nil {
			return nil, err
		}
		in = append(in, input{name, path})
	}
	return in, nil
}

// splitNamed splits a flag's value at its first =. Each name is there once.
func splitNamed(flag, form, s string, seen map[string]bool) (name, value string, err error) {
	name, value, ok := strings.Cut(s, "=")
	switch {
	case !ok || value == "":
		return "", "", usagef("%s %s: want %s", flag, s, form)
	case !token.IsIdentifier(name):
		return "", "", usagef("%s %s: %q is no name", flag, s, name)
	case seen[name]:
		return "", "", usagef("%s %s: %s is there already", flag, s, name)
	}
	seen[name] = true
	return name, value, nil
}
