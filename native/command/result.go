// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/matrix"
)

// blockBytes is how much of a result is read from the device at a time, in whole rows.
var blockBytes = 64 << 20

// write writes a result in blocks of rows, as the name of the file says. spent grows by the time in which they are read.
func (t *task) write(ctx context.Context, out io.Writer, path string, m *matrix.Dense[matrix.Any], spent *time.Duration) error {
	rows, cols := m.Dims()
	t.progress.enter("writing", int64(rows)*int64(cols)*int64(m.DType().Size()))
	if hasSuffix(path, ".mtx") {
		return writeArray(ctx, out, m)
	}
	if hasSuffix(path, ".npz") {
		return fault.Fail(path, gpu.ErrUnsupported, "the result is not sparse; .npy and .mtx hold all elements")
	}
	if hasSuffix(path, ".csv") {
		b := bufio.NewWriter(out)
		err := blocks(ctx, m, spent, func(cells cells) error {
			t.progress.add(int64(len(cells.bytes)))
			return writeCSV(b, cells, cols)
		})
		if err != nil {
			return err
		}
		return b.Flush()
	}
	h := npy.Header{Shape: []int64{int64(rows), int64(cols)}}
	for file, typ := range elementTypes {
		if typ == m.DType() {
			h.Type = file
		}
	}
	w, err := npy.NewWriter(out, h)
	if err != nil {
		return err
	}
	err = blocks(ctx, m, spent, func(cells cells) error {
		_, err := w.Write(cells.bytes)
		t.progress.add(int64(len(cells.bytes)))
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// cells are elements of one of the types of matrices.
type cells struct {
	bytes []byte // as in a file
	count int
	at    func(i int) any
}

// blocks reads a matrix in blocks of rows.
func blocks(ctx context.Context, m *matrix.Dense[matrix.Any], spent *time.Duration, each func(cells) error) error {
	rows, cols := m.Dims()
	step := max(blockBytes/max(cols*m.DType().Size(), 1), 1)
	for i := 0; i < rows && cols > 0; i += step {
		start := time.Now()
		block, err := readRows(ctx, m, i, min(i+step, rows))
		*spent += time.Since(start)
		if err == nil {
			err = each(block)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readRows reads rows i to k-1.
func readRows(ctx context.Context, m *matrix.Dense[matrix.Any], i, k int) (cells, error) {
	rows, cols := m.Dims()
	if i > 0 || k < rows {
		m = m.Slice(i, k, 0, cols)
		defer func() { _ = m.Close() }() // a view
	}
	switch m.DType() {
	case matrix.Float16:
		return readAs[matrix.Half](ctx, m)
	case matrix.Int32:
		return readAs[int32](ctx, m)
	case matrix.Uint32:
		return readAs[uint32](ctx, m)
	case matrix.Int16:
		return readAs[int16](ctx, m)
	case matrix.Uint16:
		return readAs[uint16](ctx, m)
	case matrix.Int8:
		return readAs[int8](ctx, m)
	case matrix.Uint8:
		return readAs[uint8](ctx, m)
	case matrix.Bool:
		return readAs[bool](ctx, m)
	case matrix.Complex64:
		return readAs[complex64](ctx, m)
	default:
		return readAs[float32](ctx, m)
	}
}

func readAs[T matrix.Elem](ctx context.Context, m *matrix.Dense[matrix.Any]) (cells, error) {
	typed, err := matrix.As[T](m)
	if err != nil {
		return cells{}, err
	}
	v, err := typed.Read(ctx)
	return cells{host.BytesOf(v), len(v), func(i int) any { return v[i] }}, err
}

// writeCSV writes rows so that they are read back as they were: floats with all the digits that it takes, and 1 and 0 for true and false.
func writeCSV(w *bufio.Writer, c cells, cols int) error {
	var line []byte
	for i := range c.count {
		switch v := c.at(i).(type) {
		case float32:
			line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
		case matrix.Half:
			line = strconv.AppendFloat(line, float64(v.Float32()), 'g', -1, 32)
		case bool:
			line = append(line, "01"[boolIndex(v)])
		case complex64:
			line = append(line, complexText(complex128(v), 64)...)
		default:
			line = fmt.Append(line, v)
		}
		if i%cols < cols-1 {
			line = append(line, ',')
			continue
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		line = line[:0]
	}
	return nil
}

// complexText is a complex number of so many bits as NumPy and Python read it.
func complexText(v complex128, bits int) string {
	text := strconv.FormatComplex(v, 'g', -1, bits)
	return strings.TrimSuffix(text[1:], "i)") + "j"
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// printed reads what is shown of a result, and returns what prints it. r gets its values where there are few.
func printed(ctx context.Context, m *matrix.Dense[matrix.Any], r *result, spent *time.Duration) (func(io.Writer) error, error) {
	start := time.Now()
	defer func() { *spent += time.Since(start) }()
	rows := map[int]cells{} // by the first one, all together where there are few
	all := r.Rows*r.Cols*m.DType().Size() <= blockBytes
	list := []int{0}
	if !all {
		list = indices(r.Rows)
	}
	for _, i := range list {
		to := i + 1
		if all {
			to = r.Rows
		}
		if i < 0 || to > r.Rows {
			continue
		}
		var err error
		if rows[i], err = readRows(ctx, m, i, to); err != nil {
			return nil, err
		}
	}
	at := func(i, j int) any {
		if all {
			return rows[0].at(i*r.Cols + j)
		}
		return rows[i].at(j)
	}
	if all && max(r.Rows, r.Rows*r.Cols) <= maxNested {
		r.Values = nested(r.Rows, r.Cols, at)
	}
	return func(w io.Writer) error {
		return printCells(w, r.Rows, r.Cols, func(i, j int) (any, error) { return at(i, j), nil })
	}, nil
}
