// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// otherNames are what functions are called elsewhere, above all in NumPy, MATLAB and CNTK, without underscores, and what stands for them
// here: nothing, where a name that is nearly the same would be another function.
const otherNames = `absolute fabs modulus=abs|amax=maxall|amin=minall|average=mean|clip=clamp|concat concatenate cat append=vstack or hstack|
cumprod=cumprodrows or cumprodcols|cumsum=cumsumrows or cumsumcols|dot mm gemm mtimes=matmul|floordivide=floordiv|
full ones zeros=fill|hadamard times elementtimes=multiply|plus=add|minus=subtract|identity=eye|invert bitwisenot=bitnot|leftshift=shiftleft|
rightshift=shiftright|ln=log|logicaland=and|logicalnot=not|logicalor=or|logicalxor=xor|maximum=max|minimum=min|negative uminus=neg|power=pow|
reciprocal elementinverse=recip|repeat=repeatrows or repeatcols|sort=sortrows or sortcols|argsort=argsortrows or argsortcols|stddev stdev=std|
softmaxrows=softmax|logsoftmaxrows=logsoftmax|hardmaxrows=hardmax|take=takerows or takecols|tr=trace|truedivide rdivide=divide|
topk=topkrows or topkcols|argtopk=argtopkrows or argtopkcols|variance=var|float=float32|half=float16|int=int32|uint=uint32|astype=float32|
swish=silu|expit logistic=sigmoid|rectifiedlinear=relu|determinant=det|bitwiseand=bitand|bitwiseor=bitor|bitwisexor=bitxor|matrixrank=rank|
hcat horzcat=hstack|vcat vertcat=vstack|nnz=countnonzero|pseudoinverse=pinv|fix=trunc|rint=round|sqr=square|invsqrt=rsqrt|invcbrt=rcbrt|
svd=svdvals, svd_u and svd_v|qr=qfactor and rfactor|lu=lowerlu and upperlu|eig=eigvalsh and eigh|chol=cholesky|
linsolve mldivide=solve|histc=histogram|digitize=searchsorted|norm l2norm frobenius frobeniusnorm=norm2|normrows=norm2rows|
normcols=norm2cols|l1norm=norm1|linfnorm infnorm maxnorm=norminf|argmaxall=argmax|argminall=argmin|element submatrix=slice|column=col|
select if ifelse=where|setrows=putrows|setcols=putcols|setdiag=putdiag|addrows scatter scatteradd=addtorows|addcols=addtocols|
reverse flip=fliprows or flipcols|bmm batchmatmul=mulstack|expand broadcast=broadcastto|repmat=tile|flatten ravel view=reshape|
sumofelements=sum|meshgrid=rowindex and colindex|ctranspose=conjtranspose|median mode size shape diff=`

// listedName looks up a name of another library.
func listedName(name string) (here string, ok bool) {
	for entry := range strings.SplitSeq(otherNames, "|") {
		names, here, _ := strings.Cut(entry, "=")
		if slices.Contains(strings.Fields(names), name) {
			return here, true
		}
	}
	return "", false
}

// otherName is listedName that also makes meancols of colmeans, and the like.
func otherName(name string) (here string, ok bool) {
	if here, ok = listedName(name); ok {
		return here, true
	}
	for _, axis := range []string{"rows", "cols"} {
		rest, ok := strings.CutPrefix(name, axis[:3])
		for _, base := range []string{rest, strings.TrimSuffix(rest, "s")} {
			if other, listed := listedName(base); listed {
				base = other
			}
			if arity, _ := textFunction(base + axis); ok && arity != 0 {
				return base + axis, true
			}
		}
	}
	return "", false
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
	if here, ok := otherName(name); ok {
		return meant(here)
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
