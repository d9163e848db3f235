// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// otherNames are what functions are called elsewhere, above all in NumPy, without underscores.
var otherNames = map[string]string{
	"absolute": "abs", "fabs": "abs", "amax": "maxall", "amin": "minall", "average": "mean", "clip": "clamp", "concat": "vstack",
	"concatenate": "vstack", "cumprod": "cumprodrows", "cumsum": "cumsumrows", "dot": "matmul", "mm": "matmul", "gemm": "matmul",
	"floordivide": "floordiv", "full": "fill", "hadamard": "multiply", "identity": "eye", "invert": "bitnot",
	"leftshift": "shiftleft", "rightshift": "shiftright", "ln": "log", "logicaland": "and", "logicalnot": "not", "logicalor": "or",
	"logicalxor": "xor", "maximum": "max", "minimum": "min", "negative": "neg", "ones": "fill", "zeros": "fill", "power": "pow",
	"reciprocal": "recip", "repeat": "repeatrows", "sort": "sortrows", "argsort": "argsortrows", "stddev": "std", "stdev": "std",
	"softmaxrows": "softmax", "logsoftmaxrows": "logsoftmax", "hardmaxrows": "hardmax", "take": "takerows", "tr": "trace",
	"truedivide": "divide", "rowsum": "sumrows", "colsum": "sumcols", "rowmeans": "meanrows", "colmeans": "meancols", "rowsums": "sumrows",
	"colsums": "sumcols", "topk": "topkrows", "variance": "var", "cat": "vstack", "float": "float32", "half": "float16", "int": "int32",
	"uint": "uint32", "astype": "float32", "swish": "silu", "expit": "sigmoid", "logistic": "sigmoid", "determinant": "det",
	"bitwiseand": "bitand", "bitwiseor": "bitor", "bitwisexor": "bitxor", "bitwisenot": "bitnot", "matrixrank": "rank", "hcat": "hstack",
	"horzcat": "hstack", "vertcat": "vstack", "vcat": "vstack", "nnz": "countnonzero", "pseudoinverse": "pinv", "fix": "trunc", "rint": "round",
	"svd": "svdvals", "chol": "cholesky", "linsolve": "solve", "mldivide": "solve", "eig": "eigh", "histc": "histogram", "digitize": "searchsorted",
	"norm": "norm2", "element": "slice", "submatrix": "slice", "column": "col",
}

// functionNames are the names of all functions of a text.
func functionNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range textNames {
			if !yield(name) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(textForms)) {
			if !yield(name) {
				return
			}
		}
	}
}

// meantFunction suggests a function in place of an unknown name, in small letters.
func (e *evaluator) meantFunction(name string) string {
	if e.advised {
		return "" // the first error is the one that is reported
	}
	e.advised = true
	name = strings.ReplaceAll(name, "_", "")
	known := func(name string) bool {
		for f := range functionNames() {
			if f == name {
				return true
			}
		}
		return false
	}
	if other := otherNames[name]; known(other) {
		return meant(other)
	}
	return meant(nearest(name, functionNames()))
}

// meantMatrix suggests a name of a matrix in place of an unknown one, which is no function.
func (e *evaluator) meantMatrix(name string) string {
	if e.advised {
		return ""
	}
	e.advised = true
	names := e.names()
	if len(names) > maxSuggested {
		names = names[:maxSuggested]
	}
	lower := strings.ToLower(name)
	if textShaping(lower) >= 0 || textForms[lower].operands+textForms[lower].numbers > 0 {
		return ": a function needs parentheses"
	} else if arity, _ := textFunction(lower); arity != 0 {
		return ": a function needs parentheses"
	}
	return meant(nearest(name, slices.Values(names)))
}

// Names are compared of no more matrices, and of no greater length.
const (
	maxSuggested = 1000
	maxCompared  = 40
)

func meant(name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + name + "?"
}

// nearest returns the name with the fewest letters to change, the first one of several, "" where none is near. Changes of case count
// little.
func nearest(name string, names iter.Seq[string]) (best string) {
	if len(name) > maxCompared {
		return ""
	}
	limit := 1 + len(name)/4
	if len(name) < 3 {
		limit = 0 // of such a name only the case may be wrong
	}
	for other := range names {
		if len(other) > maxCompared || max(len(other)-len(name), len(name)-len(other)) > limit {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d <= limit {
			best, limit = other, d-1
		}
	}
	return best
}

// distance is the number of bytes to insert, to leave out, to change or to swap with the next one (optimal string alignment).
func distance(a, b string) int {
	var rows [maxCompared + 1][maxCompared + 1]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
