// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"
	"strings"
)

// otherNames are names of functions that other libraries have for those of Eval.
var otherNames = map[string]string{
	"power": "pow or A ** s", "transpose": "T", "dot": "matmul", "mm": "matmul", "hadamard": "multiply", "ones": "fill(rows, cols, 1)",
	"zeros": "fill(rows, cols, 0)", "identity": "eye", "average": "mean", "avg": "mean", "concat": "vstack or hstack",
	"concatenate": "vstack or hstack", "clip": "clamp", "absolute": "abs", "negative": "neg", "fabs": "abs", "exponential": "exp",
	"ln": "log", "length": "norm2", "norm": "norm2", "magnitude": "norm2",
	"invert": "inv", "determinant": "det", "ifelse": "where", "select": "where", "rows": "row", "cols": "col", "column": "col", "stdev": "std", "variance": "var",
	"product": "prod", "total": "sum", "count": "countnonzero", "nnz": "countnonzero", "tr": "trace", "kronecker": "kron",
}

// axes are the ends of names in NumPy's and Blaze's grammar, which name what is left or what is added up.
var axes = strings.NewReplacer("_", "", "rowwise", "rows", "colwise", "cols", "columnwise", "cols", "columns", "cols")

// meantFunction suggests a function for a name in small letters, for the end of an error's text.
func meantFunction(name string) string {
	all := strings.Fields(textNames)
	for form := range textForms {
		all = append(all, form)
	}
	slices.Sort(all)
	plain := axes.Replace(name)
	for _, n := range []string{name, plain} {
		if other := otherNames[n]; other != "" {
			return "; " + other
		}
		if n != name && slices.Contains(all, n) {
			return "; did you mean " + n + "?"
		}
	}
	return nearest(plain, all)
}

// meant suggests a name for one that there is not.
func (e *evaluator) meant(name string) string {
	if _, operation := textFunction(strings.ToLower(name)); operation != nil || textShaping(strings.ToLower(name)) >= 0 {
		return ", a function, without arguments"
	}
	var all []string
	for known := range e.names {
		all = append(all, known)
	}
	slices.Sort(all)
	return nearest(name, all)
}

// nearest suggests the one of names that is nearest, if it is near.
func nearest(name string, names []string) string {
	best, found := 1+len(name)/4, ""
	if len(name) > 40 {
		return ""
	}
	for _, n := range names {
		if d := distance(name, n, best); d < best || d == best && found == "" {
			best, found = d, n
		}
	}
	if found == "" || best >= len(name) {
		return ""
	}
	return "; did you mean " + found + "?"
}

// distance is how many letters must be inserted, left out, replaced or exchanged with their neighbour to get from a to b (optimal
// string alignment), or more than most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, next := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			d := min(next[j], last[j+1]) + 1
			if a[i] == b[j] {
				d = min(d, last[j])
			} else {
				d = min(d, last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			next[j+1] = d
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
