// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/binary"
	"math"
)

// numbers is memory of float32 numbers for reference implementations, which compute in float64 and round what they store. They convert
// products before they add them: Go fuses on some machines otherwise.
type numbers []byte

func (m numbers) at(i int) float64 { return float64(math.Float32frombits(word(m, i))) }

func (m numbers) set(i int, v float64) {
	if i >= 0 && i < len(m)/4 {
		binary.LittleEndian.PutUint32(m[4*i:], math.Float32bits(float32(v)))
	}
}

// exchange exchanges two runs of numbers.
func (m numbers) exchange(a, b, count int) {
	for j := range count {
		x, y := word(m, a+j), word(m, b+j)
		m.set(a+j, float64(math.Float32frombits(y)))
		m.set(b+j, float64(math.Float32frombits(x)))
	}
}

// factor runs the reference of a kernel of decompositions.
func (r reference) factor(shape []int, storage [][]byte) {
	w := numbers(storage[0])
	switch r.k.form {
	case eliminateForm:
		for item := range shape[0] {
			eliminate(w, shape, item*shape[1], r.k.params[1] == 1, r.k.params[2] == 1)
		}
	case swapForm:
		swap(w, shape, r.k.params[0] == 1)
	case invertForm:
		invert(w, numbers(storage[1]), shape, r.k.params[0] == 1)
	case reflectForm:
		for t := range shape[1] {
			reflect(w, shape, t)
		}
	case rotateForm:
		rotate(w, shape)
	}
}

// eliminate is the reference of that kernel, for the matrix that begins so much later.
func eliminate(w numbers, shape []int, shift int, pivoted, jordan bool) {
	rows, cols, width, stride, begin, pivots := shape[2], shape[3], shape[4], shape[5], shape[6]+shift, shape[7]+shift
	for t := range cols {
		if pivoted {
			r, top := t, -1.0
			for i := t; i < rows; i++ {
				if x := math.Abs(w.at(begin + i*stride + t)); x > top {
					r, top = i, x
				}
			}
			w.exchange(begin+t*stride, begin+r*stride, width)
			w.set(pivots+t*stride, float64(shape[8]+r))
		}
		row := begin + t*stride
		pivot := w.at(row + t)
		first := t + 1
		if jordan {
			first = 0
		}
		for i := first; i < rows && pivot != 0; i++ {
			if i == t {
				continue
			}
			at := begin + i*stride
			factor := float64(float32(w.at(at+t) / pivot))
			w.set(at+t, factor)
			if jordan {
				w.set(at+t, 0)
			}
			for j := t + 1; j < width; j++ {
				w.set(at+j, w.at(at+j)-float64(factor*w.at(row+j)))
			}
		}
	}
}

// swap is the reference of that kernel.
func swap(w numbers, shape []int, reverse bool) {
	cols, skip, skipped, stride, offset, pivots, first, count := shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6], shape[7]
	for n := range count {
		t := n
		if reverse {
			t = count - 1 - n
		}
		to, from := offset+(first+t)*stride, offset+int(w.at(pivots+t*stride))*stride
		w.exchange(to, from, min(skip, cols))
		w.exchange(to+skip+skipped, from+skip+skipped, max(cols-skip, 0))
	}
}

// invert is the reference of that kernel.
func invert(lower, inverse numbers, shape []int, unit bool) {
	for block := 0; block*FactorBlock < shape[0]; block++ {
		n := min(FactorBlock, shape[0]-block*FactorBlock)
		from, to := shape[1]+block*FactorBlock*(shape[2]+shape[3]), shape[4]+block*shape[7]
		for j := range n {
			column := make([]float64, n)
			for i := j; i < n; i++ {
				if i == j {
					column[i] = 1
				}
				for k := j; k < i; k++ {
					column[i] -= float64(lower.at(from+i*shape[2]+k*shape[3]) * column[k])
				}
				if !unit {
					column[i] /= lower.at(from + i*(shape[2]+shape[3]))
				}
			}
			for i, x := range column {
				inverse.set(to+i*shape[5]+j*shape[6], x)
			}
		}
	}
}

// reflect is the reference of that kernel, for column t.
func reflect(w numbers, shape []int, t int) {
	rows, cols, stride, begin := shape[0], shape[1], shape[2], shape[3]
	at := func(i, j int) int { return begin + i*stride + j }
	norm := 0.0
	for i := t; i < rows; i++ {
		norm = math.Hypot(norm, w.at(at(i, t)))
	}
	alpha := w.at(at(t, t))
	beta, factor := -norm, 2.0
	if alpha < 0 {
		beta = norm
	}
	if beta != 0 {
		factor = (beta - alpha) / beta
	}
	for i := t + 1; i < rows; i++ {
		if alpha != beta {
			w.set(at(i, t), w.at(at(i, t))/(alpha-beta))
		} else {
			w.set(at(i, t), 0)
		}
	}
	w.set(at(t, t), beta)
	for c := t + 1; c < cols; c++ {
		sum := w.at(at(t, c))
		for i := t + 1; i < rows; i++ {
			sum += float64(w.at(at(i, t)) * w.at(at(i, c)))
		}
		sum = float64(sum * factor)
		w.set(at(t, c), w.at(at(t, c))-sum)
		for i := t + 1; i < rows; i++ {
			w.set(at(i, c), w.at(at(i, c))-float64(sum*w.at(at(i, t))))
		}
	}
}

// rotate is the reference of that kernel.
func rotate(w numbers, shape []int) {
	blocks, stride, offset, marks, round, sweep := shape[0], shape[2], shape[3], shape[4], shape[5], shape[6]
	if sweep > 0 && w.at(marks+4*(sweep-1)) == 0 {
		return
	}
	circle := blocks - 1
	for k := range blocks / 2 {
		first, second := (round+k)%circle, (round+circle-k)%circle
		if k == 0 {
			first = circle
		}
		var rows [8]int
		for i := range 4 {
			rows[i], rows[4+i] = offset+(4*first+i)*stride, offset+(4*second+i)*stride
		}
		if meet(w, shape, rows) {
			w.set(marks+4*sweep, 1)
		}
	}
}

// meet rotates the rows that begin at eight places, and reports whether it changed them.
func meet(w numbers, shape []int, rows [8]int) bool {
	cols, near := 4*shape[1], float64(math.Float32frombits(uint32(shape[7])))
	var values [8][]float64
	for i := range values {
		values[i] = make([]float64, cols)
		for j := range cols {
			values[i][j] = w.at(rows[i] + j)
		}
	}
	var g, q [8][8]float64
	for i := range g {
		q[i][i] = 1
		for j := range i + 1 {
			for k, x := range values[i] {
				g[i][j] += float64(x * values[j][k])
			}
			g[j][i] = g[i][j]
		}
	}
	rotated, order := false, [8]int{0, 1, 2, 3, 4, 5, 6, 7}
	for range 7 {
		for k := range 4 {
			rotated = turn(&g, &q, order[k], order[4+k], near) || rotated
		}
		order = [8]int{order[0], order[4], order[1], order[2], order[5], order[6], order[7], order[3]}
	}
	for j := 0; j < cols && rotated; j++ {
		for i := range rows {
			sum := 0.0
			for k := range q {
				sum += float64(q[i][k] * values[k][j])
			}
			w.set(rows[i]+j, sum)
		}
	}
	return rotated
}

// turn rotates two rows and columns of a symmetric matrix, and rows of the product of the rotations, unless they are near enough to
// orthogonal.
func turn(g, q *[8][8]float64, x, y int, near float64) bool {
	if !(math.Abs(g[x][y]) > near*math.Sqrt(g[x][x])*math.Sqrt(g[y][y])) {
		return false
	}
	zeta := (g[y][y] - g[x][x]) / (2 * g[x][y])
	tangent := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
	cosine := 1 / math.Hypot(1, tangent)
	sine := cosine * tangent
	rotated := func(a, b float64) (float64, float64) {
		return float64(cosine*a) - float64(sine*b), float64(sine*a) + float64(cosine*b)
	}
	for k := range g {
		q[x][k], q[y][k] = rotated(q[x][k], q[y][k])
		g[x][k], g[y][k] = rotated(g[x][k], g[y][k])
	}
	for k := range g {
		g[k][x], g[k][y] = rotated(g[k][x], g[k][y])
	}
	return true
}
