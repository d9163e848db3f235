// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/matrix"
)

// shown is how many rows and columns are printed of a larger matrix, half at each end.
const shown = 10

// printMatrix writes the elements in columns.
func printMatrix[T matrix.Elem](w io.Writer, rows, cols int, values []T) error {
	return printCells(w, rows, cols, func(i, j int) any { return values[i*cols+j] })
}

// printCells writes what at returns in columns. It asks only for what is shown.
func printCells(w io.Writer, rows, cols int, at func(i, j int) any) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i := range ends(rows) {
		if i == rows-shown/2 && rows > shown {
			fmt.Fprintln(tw, strings.Repeat("...\t", min(cols, shown+1)))
		}
		for j := range ends(cols) {
			if j == cols-shown/2 && cols > shown {
				fmt.Fprint(tw, "...\t")
			}
			fmt.Fprintf(tw, "%v\t", at(i, j))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// ends returns the numbers below n, without those in the middle that are not shown.
func ends(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n; i++ {
			if i == shown/2 && n > shown {
				i = n - shown/2
			}
			if !yield(i) {
				return
			}
		}
	}
}

// maxNested is how many elements, and how many rows, --json prints at most.
const maxNested = 10_000

// nested returns the rows for JSON, as NumPy's tolist does; nil where there are too many. JSON has no NaN and no infinities: they
// are the texts that JavaScript's Number and Python's float read.
func nested[T matrix.Elem](rows, cols int, values []T) [][]any {
	if max(rows, len(values)) > maxNested {
		return nil
	}
	all := make([][]any, rows)
	for i := range all {
		all[i] = make([]any, cols)
		for j := range all[i] {
			all[i][j] = jsonNumber(values[i*cols+j])
		}
	}
	return all
}

func jsonNumber(v any) any {
	if h, ok := v.(matrix.Half); ok {
		v = h.Float32()
	}
	f, ok := v.(float32)
	switch x := float64(f); {
	case ok && math.IsNaN(x):
		return "NaN"
	case ok && math.IsInf(x, 1):
		return "Infinity"
	case ok && math.IsInf(x, -1):
		return "-Infinity"
	}
	return v
}
