// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/matrix"
)

// shown is how many rows and columns are printed of a larger matrix, half at each end.
const shown = 10

// printMatrix writes the elements in columns.
func printMatrix[T matrix.Elem](w io.Writer, rows, cols int, values []T) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i := range rows {
		if i == shown/2 && rows > shown {
			fmt.Fprintln(tw, strings.Repeat("...\t", min(cols, shown+1)))
		}
		if hidden(i, rows) {
			continue
		}
		for j := range cols {
			if j == shown/2 && cols > shown {
				fmt.Fprint(tw, "...\t")
			}
			if !hidden(j, cols) {
				fmt.Fprintf(tw, "%v\t", printable(values[i*cols+j]))
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func hidden(i, n int) bool { return n > shown && i >= shown/2 && i < n-shown/2 }

// printable turns the bits of a half into a number.
func printable[T matrix.Elem](v T) any {
	if h, ok := any(v).(matrix.Half); ok {
		return h.Float32()
	}
	return v
}
