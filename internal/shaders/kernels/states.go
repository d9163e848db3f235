// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// held is a state in the reference.
type held [3]float64

// none is the index that a state without an element has.
const none = math.MaxUint32

// foldAll is the reference of the kernels that fold.
func foldAll[N fuse.Num](r reference, e *fuse.Eval[N], shape []int) {
	rows, cols, parts := shape[0], shape[1], shape[2]
	f := folding[N]{fold: r.k.fold, e: e, planes: r.k.fold.state().planes, down: shape[4], along: shape[5], rows: rows}
	f.number = float64(math.Float32frombits(uint32(shape[6])))
	byCols := r.k.form == foldCols
	lines, width := rows, parts // of the result
	if byCols {
		lines, width = parts, cols
	}
	states, row := make([]held, width), make([]held, cols)
	for i := range lines {
		for k := range states {
			states[k] = f.start()
		}
		for from := i; from < rows; from += lines {
			f.load(from, row)
			for j, s := range row {
				k := j
				if !byCols {
					k = r.k.partOf(j/4, cols/4, parts)
				}
				states[k] = f.merge(states[k], s)
			}
		}
		for k, s := range states {
			f.put(i, k, s, lines)
		}
	}
}

// partOf tells which part of a row takes a vector; whole is how many are whole.
func (k *Kernel) partOf(vector, whole, parts int) int {
	if k.form != foldRows {
		return vector % parts
	}
	if vector == whole {
		return parts - 1
	}
	return vector / shaders.Ceil(whole, parts)
}

// folding computes in float64, to be a reference; integers wrap at every step, which float64 holds exactly.
type folding[N fuse.Num] struct {
	fold
	e           *fuse.Eval[N]
	planes      []fuse.Type
	down, along int
	rows        int
	number      float64
}

// load reads the states of a row.
func (f *folding[N]) load(i int, row []held) {
	values := make([]N, len(row))
	for k := range max(len(f.planes), 1) {
		if !f.next && k > 0 {
			break
		}
		clear(values)
		f.e.Apply(i+k*f.rows, 0, values)
		for j, v := range values {
			switch {
			case len(f.planes) == 0:
				row[j] = held{float64(v)}
			case f.next:
				row[j][k] = f.planes[k].Load(uint32(v))
			default:
				row[j] = f.lift(float64(v), i*f.down+j*f.along)
			}
		}
	}
}

func (f *folding[N]) lift(x float64, index int) held {
	switch f.op {
	case fuse.ReduceVar, fuse.ReduceStd:
		return held{1, x, x - x}
	case fuse.ReduceLogSumExp:
		return held{x, 1}
	case fuse.ReduceCountNonzero:
		if x == 0 {
			return held{}
		}
		return held{1}
	}
	return held{x, float64(uint32(index))}
}

func (f *folding[N]) start() held {
	switch {
	case len(f.planes) == 0:
		return held{f.of.Load(f.identity())}
	case f.op == fuse.ReduceLogSumExp:
		return held{math.Inf(-1)}
	case f.result() == fuse.I32 && f.op != fuse.ReduceCountNonzero:
		return held{0, none}
	}
	return held{}
}

func (f *folding[N]) result() fuse.Type { return f.state().result }

// merge folds y into x.
func (f *folding[N]) merge(x, y held) held {
	switch f.op {
	case fuse.ReduceVar, fuse.ReduceStd:
		return mergeMoments(x, y)
	case fuse.ReduceLogSumExp:
		return mergePowers(x, y)
	case fuse.ReduceCountNonzero:
		return held{x[0] + y[0]}
	case fuse.ReduceArgMax:
		return first(x, y, y[0] > x[0])
	case fuse.ReduceArgMin:
		return first(x, y, y[0] < x[0])
	}
	return held{combine[N](f.kind(), x[0], y[0])}
}

func mergeMoments(x, y held) held {
	switch {
	case x[0] == 0:
		return y
	case y[0] == 0:
		return x
	}
	n, d := x[0]+y[0], y[1]-x[1]
	return held{n, x[1] + d*y[0]/n, x[2] + y[2] + d*d*x[0]*y[0]/n}
}

func mergePowers(x, y held) held {
	top := math.Max(x[0], y[0])
	scaled := func(h held) float64 {
		if h[0] == top {
			return h[1]
		}
		return h[1] * math.Exp(h[0]-top)
	}
	return held{top, scaled(x) + scaled(y)}
}

// first returns the state of the element that wins.
func first(x, y held, better bool) held {
	absent, xn, yn := x[1] == none, math.IsNaN(x[0]), math.IsNaN(y[0])
	even := x[0] == y[0] || xn && yn
	if y[1] != none && (absent || better || yn && !xn || even && y[1] < x[1]) {
		return y
	}
	return x
}

// combine folds a value in.
func combine[N fuse.Num](op fuse.Reduction, h, x float64) float64 {
	_, float := any(N(0)).(float32)
	switch op {
	case fuse.ReduceMax, fuse.ReduceNormInf, fuse.ReduceAnyNonzero:
		return max(h, x)
	case fuse.ReduceMin, fuse.ReduceAllNonzero:
		return min(h, x)
	case fuse.ReduceProd:
		if float {
			return h * x
		}
		return float64(N(h) * N(x))
	}
	if float {
		return h + x
	}
	return float64(N(h) + N(x))
}

// put writes a result, or its planes.
func (f *folding[N]) put(i, j int, s held, height int) {
	switch {
	case len(f.planes) == 0:
		f.e.Store(i, j, []N{N(f.finished(s))})
	case f.last:
		f.e.StoreBits(i, j, f.result().Store(f.finished(s)))
	default:
		for k, t := range f.planes {
			f.e.StoreBits(i+k*height, j, t.Store(s[k]))
		}
	}
}

func (f *folding[N]) finished(s held) float64 {
	if !f.last {
		return s[0]
	}
	switch f.op {
	case fuse.ReduceMean:
		return s[0] * f.number
	case fuse.ReduceNorm2:
		return math.Sqrt(s[0] * f.number)
	case fuse.ReduceNormP:
		return math.Pow(s[0], f.number)
	case fuse.ReduceVar:
		return s[2] * f.number
	case fuse.ReduceStd:
		return math.Sqrt(s[2] * f.number)
	case fuse.ReduceLogSumExp:
		return s[0] + math.Log(s[1])
	case fuse.ReduceArgMax, fuse.ReduceArgMin:
		return s[1]
	}
	return s[0]
}
