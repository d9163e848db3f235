// SPDX-License-Identifier: Apache-2.0

// Package sparse reads and writes files of sparse matrices: the Matrix Market's exchange format, .mtx, and archives as SciPy's save_npz
// writes them, .npz. A matrix is a plain struct here that knows no device; its parts are what matrix.NewSparse takes.
//
// Memory grows with what a file has, not with what its first line claims, but for the pointers: 4 bytes for each row (column), of which there
// may be 2^27. Errors wrap those of package file and name the line of an .mtx, or the archive's member.
//
// The formats are those of Boisvert, Pozo and Remington, The Matrix Market Exchange Formats (NIST IR 5935, 1996), and of scipy.sparse.
package sparse

import (
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Matrix is what a file has.
type Matrix struct {
	Rows, Cols int

	// Dense are all elements, row by row, of a file that has them all; the rest is not used then.
	Dense []float64

	// ByRows says that Values are row after row with their columns for Indices, as CSR has them; else they are column after column with
	// their rows, as CSC. The entries of row (column) m are those from Pointers[m] to Pointers[m+1]-1; Indices increase there.
	ByRows            bool
	Values            []float64
	Indices, Pointers []int32
}

// maxDim is the most rows or columns.
const maxDim = 1 << 27

// Sparse reports whether the file has entries, not all elements.
func (m *Matrix) Sparse() bool { return m != nil && m.Dense == nil }

// check refuses what is no matrix.
func (m *Matrix) check(op string) error {
	wrong := func(detail string) error { return fault.Fail("sparse: "+op, fault.ErrInvalid, detail) }
	switch {
	case m == nil:
		return wrong("no matrix")
	case m.Rows < 0 || m.Cols < 0 || m.Rows > maxDim || m.Cols > maxDim:
		return wrong(strconv.Itoa(m.Rows) + "x" + strconv.Itoa(m.Cols))
	case m.Dense != nil:
		if len(m.Dense) != m.Rows*m.Cols {
			return wrong(strconv.Itoa(len(m.Dense)) + " elements of " + strconv.Itoa(m.Rows) + "x" + strconv.Itoa(m.Cols))
		}
		return nil
	}
	majors, minors := m.Cols, m.Rows
	if m.ByRows {
		majors, minors = minors, majors
	}
	if len(m.Pointers) != majors+1 || len(m.Indices) != len(m.Values) || m.Pointers[0] != 0 || int(m.Pointers[majors]) != len(m.Values) {
		return wrong("pointers, indices and values that do not fit")
	}
	for c := range majors {
		if m.Pointers[c+1] < m.Pointers[c] || int(m.Pointers[c+1]) > len(m.Values) {
			return wrong("pointers that fall")
		}
		last := int32(-1)
		for _, i := range m.Indices[m.Pointers[c]:m.Pointers[c+1]] {
			if i <= last || int(i) >= minors {
				return wrong("indices out of order, or out of range")
			}
			last = i
		}
	}
	return nil
}

// FromTriplets makes a matrix by rows of entries in any order, element (rows[k], cols[k]) being values[k]. Entries in one place are added up.
// Places outside the matrix, and lists of different lengths, are [fault.ErrInvalid].
func FromTriplets(height, width int, rows, cols []int32, values []float64) (*Matrix, error) {
	const op = "FromTriplets"
	wrong := func(detail string) (*Matrix, error) { return nil, fault.Fail("sparse: "+op, fault.ErrInvalid, detail) }
	if height < 0 || width < 0 || height > maxDim || width > maxDim || len(rows) != len(values) || len(cols) != len(values) {
		return wrong("sizes that do not fit")
	}
	for k := range rows {
		if uint(rows[k]) >= uint(height) || uint(cols[k]) >= uint(width) || rows[k] < 0 || cols[k] < 0 {
			return wrong("entry " + strconv.Itoa(k) + " is outside")
		}
	}
	return fromTriplets(height, width, rows, cols, values), nil
}

func fromTriplets(height, width int, rows, cols []int32, values []float64) *Matrix {
	m := &Matrix{Rows: height, Cols: width, ByRows: true, Pointers: make([]int32, height+1)}
	for _, i := range rows {
		m.Pointers[i+1]++
	}
	for i := range height {
		m.Pointers[i+1] += m.Pointers[i]
	}
	next := slices.Clone(m.Pointers)
	order := make([]int32, len(rows)) // of the entries, row by row
	for k, i := range rows {
		order[next[i]] = int32(k)
		next[i]++
	}
	m.Indices, m.Values = make([]int32, 0, len(rows)), make([]float64, 0, len(rows))
	from := int32(0)
	for i := range height {
		row := order[from:m.Pointers[i+1]]
		from = m.Pointers[i+1]
		slices.SortStableFunc(row, func(a, b int32) int { return int(cols[a]) - int(cols[b]) })
		begin := len(m.Indices)
		for _, k := range row {
			if last := len(m.Indices) - 1; last >= begin && m.Indices[last] == cols[k] {
				m.Values[last] += values[k]
				continue
			}
			m.Indices, m.Values = append(m.Indices, cols[k]), append(m.Values, values[k])
		}
		m.Pointers[i+1] = int32(len(m.Indices))
	}
	return m
}

// each visits the entries in their order.
func (m *Matrix) each(visit func(row, col int, v float64) error) error {
	for c := range len(m.Pointers) - 1 {
		for q := m.Pointers[c]; q < m.Pointers[c+1]; q++ {
			row, col := int(m.Indices[q]), c
			if m.ByRows {
				row, col = col, row
			}
			if err := visit(row, col, m.Values[q]); err != nil {
				return err
			}
		}
	}
	return nil
}

func malformed(format string, err error, detail string) error {
	return fault.Fail(format, err, detail)
}
