// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// String is the size and the element type of the matrix, as in "2x3 float32": the elements are on a device, and [Fprint] waits for them.
func (m *Dense[T]) String() string {
	c := m.core()
	return c.Shape().String() + " " + c.t.String()
}

// Larger matrices are printed as their corners.
const (
	printedMost = 1000
	cornerMost  = 3
)

// Fprint waits for what is queued and writes the elements, a row a line, in columns. Of more than 1,000 it writes the corners, with
// "..." for what is left out, as NumPy does; only those are read.
func Fprint[T Elem](ctx context.Context, w io.Writer, x Operand[T]) error {
	const op = "Fprint"
	if w == nil {
		return fail(op, buffer.ErrNil, "nil writer")
	}
	n := from(op, x)
	if n.Err != nil {
		return n.Err
	}
	e, cutRows, cutCols := &Expr[T]{n}, false, false
	if float64(n.Rows)*float64(n.Cols) > printedMost {
		if cutRows = n.Rows > 2*cornerMost; cutRows {
			e = e.TakeRows(endsOf(n.Rows))
		}
		if cutCols = n.Cols > 2*cornerMost; cutCols {
			e = e.TakeCols(endsOf(n.Cols))
		}
	}
	rows, cols := e.Dims()
	if rows == 0 || cols == 0 {
		_, err := io.WriteString(w, "("+n.Shape().String()+")\n")
		return err
	}
	values, err := e.read(ctx, op)
	if err != nil {
		return err
	}
	cells, width := make([]string, len(values)), len("...")*shaders.Bit(cutRows || cutCols)
	for k, v := range values {
		cells[k] = elementText(v)
		width = max(width, len(cells[k]))
	}
	var text []byte
	put := func(cell string) { text = append(append(text, strings.Repeat(" ", width+1-len(cell))...), cell...) }
	for i := range rows {
		if cutRows && i == cornerMost {
			put("...")
			text = append(text, '\n')
		}
		for j, cell := range cells[i*cols : (i+1)*cols] {
			if cutCols && j == cornerMost {
				put("...")
			}
			put(cell)
		}
		text = append(text, '\n')
	}
	_, err = w.Write(text)
	return err
}

// elementText is an element with as many digits as tell it from others of its type.
func elementText[T Elem](v T) string {
	t, number := numberOf(v)
	switch t {
	case fuse.F32, fuse.F16:
		return strconv.FormatFloat(number, 'g', -1, 32)
	case fuse.C64:
		return strconv.FormatComplex(complex128(any(v).(complex64)), 'g', -1, 64)
	case fuse.Bool:
		return strconv.FormatBool(number != 0)
	case expr.Untyped:
		return text(number)
	}
	return strconv.FormatInt(int64(number), 10)
}

// endsOf are the first and the last numbers of rows or columns.
func endsOf(count int) *Expr[int32] {
	k := ColIndex(1, 2*cornerMost)
	return k.GreaterEqual(Fill[int32](1, 1, cornerMost)).MulElem(Fill(1, 1, int32(count-2*cornerMost))).Add(k)
}
