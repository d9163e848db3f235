// SPDX-License-Identifier: Apache-2.0

package gemm

import "unsafe"

// rowPadding is numbers between the packed rows of A, so that rows of a tile do not fall on the same lines of a cache.
const rowPadding = 16

// scratch is what a goroutine needs to multiply. It is kept for later products.
type scratch struct {
	tile    tile
	vectors vectors
	a, b    []float32 // packed blocks
	x       []float32
	y       [dotRows]float32
	sums    [vectorChunk]float32
}

// space returns n numbers at an address that fits the vector registers.
func space(kept *[]float32, n int) []float32 {
	const line = 16
	if cap(*kept) < n+line {
		*kept = make([]float32, n+line)
	}
	all := (*kept)[:n+line]
	skip := -int(uintptr(unsafe.Pointer(&all[0]))/4) & (line - 1)
	return all[skip:][:n]
}

// blocks is a product of a part of C, and how it reads A and B.
type blocks struct {
	*kernel
	scratch      *scratch
	dst, a, b    Matrix
	depth        int // of a pass: passes are about equally deep
	packA, packB bool
}

// multiplyBlocks multiplies block by block.
func multiplyBlocks(k *kernel, dst, a, b Matrix, threads int) {
	passes := (a.Cols + k.depth - 1) / k.depth
	w := blocks{kernel: k, dst: dst, a: a, b: b, depth: ((a.Cols+passes-1)/passes + 3) &^ 3}
	w.packA, w.packB = worthPacking(k, a, b)
	share(threads, 2*dst.Rows*dst.Cols*a.Cols, dst.Rows, dst.Cols, k.rows, k.cols, func(s *scratch, i, j, rows, cols int) {
		w := w
		w.scratch = s
		w.dst = dst.part(i, j, rows, cols)
		w.a, w.b = a.part(i, 0, rows, a.Cols), b.part(0, j, b.Rows, cols)
		w.multiply()
	})
}

// worthPacking tells whether to copy blocks of A and B. Tiles read them where they are unless that is slow, as measured: from rows
// that fall on the same lines of a cache, or from more pages than the processor remembers.
func worthPacking(k *kernel, a, b Matrix) (packA, packB bool) {
	const sameLines, small = 1024, 1 << 17
	if a.Col == 1 {
		packA = a.Row%sameLines == 0 && b.Cols > 8*k.cols
	} else {
		packA = a.Rows*a.Cols > small && b.Cols > 2*k.cols
	}
	return packA, b.Col != 1 || b.Rows*b.Cols > small && a.Rows >= 256
}

// multiply goes through blocks of B, and for each through blocks of A.
func (w *blocks) multiply() {
	for j := 0; j < w.dst.Cols; j += w.across {
		cols := min(w.across, w.dst.Cols-j)
		for p := 0; p < w.a.Cols; p += w.depth {
			depth := min(w.depth, w.a.Cols-p)
			b := w.panelsOfB(w.b.part(p, j, depth, cols))
			for i := 0; i < w.dst.Rows; i += w.down {
				rows := min(w.down, w.dst.Rows-i)
				a := w.panelsOfA(w.a.part(i, p, rows, depth))
				w.scratch.tile.add = p > 0
				w.tiles(w.dst.part(i, j, rows, cols), a, b)
			}
		}
	}
}

// panels is a block of A or B, as tiles read it: panel i begins at data[i*panel].
type panels struct {
	data      []float32
	panel     int
	row, step int // distances in a panel: between A's rows, and along the depth
	depth     int
	last      []float32 // the last panel if it is elsewhere
}

// tiles multiplies two blocks.
func (w *blocks) tiles(c Matrix, a, b panels) {
	t := &w.scratch.tile
	t.aRow, t.aStep, t.bStep, t.cRow, t.depth = a.row, a.step, b.step, c.Row, a.depth
	for j := 0; j < c.Cols; j += w.cols {
		t.cols = min(w.cols, c.Cols-j)
		t.bStep = b.step
		if t.b = b.last; t.cols < w.cols && b.last != nil {
			t.bStep = w.cols
		} else {
			t.b = b.data[j/w.cols*b.panel:]
		}
		for i := 0; i < c.Rows; i += w.rows {
			t.rows = min(w.rows, c.Rows-i)
			t.a = a.data[i/w.rows*a.panel:]
			t.c = c.Data[i*c.Row+j:]
			w.tile(t)
		}
	}
}

// panelsOfA returns a block of A: where it is, or packed, in rows or, if it is transposed, in columns.
func (w *blocks) panelsOfA(a Matrix) panels {
	switch {
	case !w.packA:
		return panels{data: a.Data, panel: w.rows * a.Row, row: a.Row, step: a.Col, depth: a.Cols}
	case a.Row == 1 && a.Col != 1:
		to := pack(&w.scratch.a, a.T(), w.rows)
		to.row = 1
		return to
	}
	row := a.Cols + rowPadding
	to := panels{panel: w.rows * row, row: row, step: 1, depth: a.Cols, data: space(&w.scratch.a, a.Rows*row)}
	copyRows(to.data, row, a)
	return to
}

// panelsOfB returns a block of B: packed, or where it is but for the last panel if its rows are shorter than a tile reads.
func (w *blocks) panelsOfB(b Matrix) panels {
	if w.packB {
		return pack(&w.scratch.b, b, w.cols)
	}
	to := panels{data: b.Data, panel: w.cols, step: b.Row, depth: b.Rows}
	if rest := b.Cols % w.cols; rest > 0 && rest != w.half {
		to.last = pack(&w.scratch.b, b.part(0, b.Cols-rest, b.Rows, rest), w.cols).data
	}
	return to
}

// pack copies a matrix to panels so wide. Columns that the last panel lacks become zeros: tiles read
// them, and arithmetic is slow on some numbers that may be left there.
func pack(kept *[]float32, m Matrix, width int) panels {
	to := panels{panel: width * m.Rows, step: width, depth: m.Rows}
	to.data = space(kept, (m.Cols+width-1)/width*to.panel)
	whole := m.Cols / width * width
	if m.Col == 1 {
		for p := range m.Rows { // rows, not panels: memory is fastest in the order of addresses
			for j, from := 0, m.Data[p*m.Row:]; j < whole; j += width {
				copy(to.data[j/width*to.panel+p*width:][:width], from[j:])
			}
		}
	} else {
		for j := 0; j < whole; j += width {
			copyRows(to.data[j/width*to.panel:], width, m.part(0, j, m.Rows, width))
		}
	}
	if rest := m.Cols - whole; rest > 0 {
		last := to.data[whole/width*to.panel:]
		clear(last)
		copyRows(last, width, m.part(0, whole, m.Rows, rest))
	}
	return to
}

// copyRows copies a matrix to rows so far from each other. It reads four columns of a transposed matrix side by side.
func copyRows(to []float32, row int, m Matrix) {
	if m.Col == 1 {
		for i := range m.Rows {
			copy(to[i*row:][:m.Cols], m.Data[i*m.Row:])
		}
		return
	}
	j := 0
	if m.Row == 1 {
		for ; j+4 <= m.Cols; j += 4 {
			from := m.Data[j*m.Col:]
			a, b, c, d := from[:m.Rows], from[m.Col:][:m.Rows], from[2*m.Col:][:m.Rows], from[3*m.Col:][:m.Rows]
			for i, v := range a {
				*(*[4]float32)(to[i*row+j:]) = [4]float32{v, b[i], c[i], d[i]}
			}
		}
	}
	for ; j < m.Cols; j++ {
		for i := range m.Rows {
			to[i*row+j] = m.Data[i*m.Row+j*m.Col]
		}
	}
}
