// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/sparse"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// hasSuffix reports whether a path ends like that, in letters of any case.
func hasSuffix(path, suffix string) bool { return strings.EqualFold(filepath.Ext(path), suffix) }

// readMTX reads a file of the Matrix Market.
func (t *task) readMTX(ctx context.Context, path string, r io.Reader, size int64) (*array, error) {
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	t.progress.enter("reading", size)
	m, err := sparse.ReadMTX(&counted{r, ctx, t})
	if err != nil {
		return nil, inFile(path, err)
	}
	return t.sparseArray(ctx, path, m)
}

// counted tells how far a file is read, and ends with the context.
type counted struct {
	io.Reader
	ctx context.Context //nolint:containedctx // ends with the file
	t   *task
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.Reader.Read(p)
	c.t.progress.add(int64(n))
	return n, err
}

// readNPZ reads an archive of SciPy's.
func (t *task) readNPZ(ctx context.Context, path string, in *input, size int64) (*array, error) {
	if size < 0 || !sparse.IsNPZ(in.File, size) {
		return nil, fault.Fail(path, errElem, "the archive is no sparse matrix as scipy.sparse.save_npz writes it")
	}
	m, err := sparse.ReadNPZ(in.File, size)
	if err != nil {
		return nil, inFile(path, err)
	}
	return t.sparseArray(ctx, path, m)
}

// sparseArray is what was read as an operand, of float32.
func (t *task) sparseArray(ctx context.Context, path string, m *sparse.Matrix) (*array, error) {
	x := &array{path: path, Header: npy.Header{Type: dtype.Float32, Shape: []int64{int64(m.Rows), int64(m.Cols)}}}
	values := m.Dense
	if m.Sparse() {
		x.sparse, values = m, m.Values
	}
	for _, v := range values {
		f := float32(v)
		if math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
			return nil, fault.Fail(path, errOverflow, fmt.Sprintf("%g does not fit float32", v))
		}
		if change := math.Abs(float64(f)-v) / math.Abs(v); change > x.change { // not so for NaN
			x.change = change
		}
		x.data = binary.LittleEndian.AppendUint32(x.data, math.Float32bits(f))
	}
	return x, t.check(ctx, x)
}

// operandOf is a matrix of an array.
func (t *task) operandOf(x *array) (matrix.Operand[matrix.Any], error) {
	rows, cols, err := x.dims()
	if err != nil {
		return nil, err
	}
	mem := gpu.HostBytes(x.data)
	if m := x.sparse; m != nil {
		format := matrix.CSC
		if m.ByRows {
			format = matrix.CSR
		}
		return matrix.SparseFrom[matrix.Any](t.dev, format, rows, cols, mem, m.Indices, m.Pointers, 0, matrix.Options{Type: matrix.Float32})
	}
	return t.denseOf(x, rows, cols)
}

// entriesOf are those of a sparse result.
func entriesOf(ctx context.Context, s *matrix.Sparse[matrix.Any]) (*sparse.Matrix, error) {
	values, indices, pointers, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	m := &sparse.Matrix{ByRows: s.Format() == matrix.CSR, Indices: indices, Pointers: pointers}
	m.Rows, m.Cols = s.Dims()
	for _, v := range values {
		m.Values = append(m.Values, float64(v))
	}
	return m, nil
}

// writeSparse writes a sparse result where its file is one of sparse matrices, and reports whether it is.
func (t *task) writeSparse(ctx context.Context, out io.Writer, path string, s *matrix.Sparse[matrix.Any]) (done bool, err error) {
	write := sparse.WriteMTX
	switch {
	case hasSuffix(path, ".npz"):
		write = sparse.WriteNPZ
	case !hasSuffix(path, ".mtx"):
		return false, nil
	}
	m, err := entriesOf(ctx, s)
	if err != nil {
		return true, err
	}
	b := bufio.NewWriter(out)
	if err := write(b, m); err != nil {
		return true, err
	}
	return true, b.Flush()
}

// writeArray writes a dense result as an array of the Matrix Market.
func writeArray(ctx context.Context, out io.Writer, m *matrix.Dense[matrix.Any]) error {
	if m.DType() == matrix.Complex64 {
		return fault.Fail("write", gpu.ErrUnsupported, "complex numbers to .mtx; .npy and .csv hold them")
	}
	v, err := m.Read(ctx)
	if err != nil {
		return err
	}
	rows, cols := m.Dims()
	all := make([]float64, len(v))
	for i, x := range v {
		all[i] = float64(x)
	}
	b := bufio.NewWriter(out)
	if err := sparse.WriteMTX(b, &sparse.Matrix{Rows: rows, Cols: cols, Dense: all}); err != nil {
		return err
	}
	return b.Flush()
}

// shownEntries is how many entries of a large sparse result are printed.
const shownEntries = 20

// printedEntries reads a large sparse result, and returns what prints its first entries.
func printedEntries(ctx context.Context, s *matrix.Sparse[matrix.Any]) (func(io.Writer) error, error) {
	m, err := entriesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		n := 0
		for c := 0; c < len(m.Pointers)-1; c++ {
			for q := m.Pointers[c]; q < m.Pointers[c+1]; q++ {
				if n++; n > shownEntries {
					_, err := fmt.Fprintln(w, "...")
					return err
				}
				row, col := int(m.Indices[q]), c
				if m.ByRows {
					row, col = col, row
				}
				if _, err := fmt.Fprintf(w, "[%d, %d] %g\n", row, col, m.Values[q]); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}
