// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix"
)

// Work is something to time: a family of kernels and a size.
type Work struct {
	// Family is "product", "vector" (products of a row and a matrix, and with Layout 2 of a matrix and a column),
	// "sparse" (products of a square sparse matrix and a dense one), "reduce-rows", "reduce-columns", "softmax" (of rows), "transpose",
	// "elementwise", or "grid": element-wise functions of parts of matrices.
	Family     string
	Rows, Cols int   // of the result of products, of the operand otherwise
	Inner      int   // of products; of sparse ones how many entries a row has
	Layout     uint8 // of dense products: 1 where the left factor is stored by columns, plus 2 where the right one is
}

// The most elements of a matrix that is timed.
const mostElements = 1 << 26

// ParseWork reads, for example, "product:300x500x700", the sizes of both factors' rows and of the columns, "sparse:5000x20x64", rows,
// entries of a row and columns, and "softmax:777x333". Letters behind dense products tell which factors are stored by columns, n or t
// for each: "product:64x64x64:nt".
func ParseWork(text string) (Work, error) {
	bad := fail("ParseWork", gpu.ErrInvalid, strconv.Quote(text), " is not FAMILY:ROWSxCOLUMNS or FAMILY:ROWSxINNERxCOLUMNS")
	family, rest, _ := strings.Cut(text, ":")
	sizes, letters, lettered := strings.Cut(rest, ":")
	w := Work{Family: family}
	var n []int
	for s := range strings.SplitSeq(sizes, "x") {
		v, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return Work{}, bad
		}
		n = append(n, int(v))
	}
	if w.multiplies() && len(n) == 3 {
		w.Rows, w.Inner, w.Cols = n[0], n[1], n[2]
		at := slices.Index([]string{"nn", "tn", "nt", "tt"}, letters)
		if w.Layout = uint8(max(at, 0)); lettered && at < 0 {
			return Work{}, bad
		}
	} else if w.Rows = n[0]; len(n) == 2 && !lettered {
		w.Cols = n[1]
	}
	if why, code := w.wrong(); code != nil {
		return Work{}, fail("ParseWork", gpu.ErrInvalid, strconv.Quote(text), ": ", why)
	}
	return w, nil
}

// multiplies reports whether there are three sizes.
func (w *Work) multiplies() bool {
	return w.is(kernels.FamilyProduct) || w.is(kernels.FamilyVector) || w.is(kernels.FamilySparse)
}

func (w *Work) is(f kernels.Family) bool { return w.Family == kernels.Families[f] }

// String is the text that [ParseWork] reads.
func (w Work) String() string {
	text := w.Family + ":" + strconv.Itoa(w.Rows)
	if w.multiplies() {
		text += "x" + strconv.Itoa(w.Inner)
	}
	text += "x" + strconv.Itoa(w.Cols)
	if w.Layout > 0 && w.Layout < 4 {
		text += ":" + []string{"nn", "tn", "nt", "tt"}[w.Layout]
	}
	return text
}

// wrong tells what is wrong with the work.
func (w *Work) wrong() (why string, code error) {
	large := func(a, b int) bool {
		return a < 1 || b < 1 || a > mostElements || b > mostElements || a > mostElements/b
	}
	inner := max(w.Inner, 1)
	switch {
	case !slices.Contains(kernels.Families[:], w.Family):
		return "there are " + strings.Join(kernels.Families[:], ", "), gpu.ErrInvalid
	case w.multiplies() != (w.Inner > 0), w.Layout > 3, w.Layout > 0 && (!w.multiplies() || w.is(kernels.FamilySparse)),
		w.is(kernels.FamilyVector) && w.Rows != 1, w.is(kernels.FamilyProduct) && w.Rows == 1, w.is(kernels.FamilySparse) && w.Inner > w.Rows:
		return "products have three sizes, others two; vectors have one row, sparse rows no more entries than columns", gpu.ErrInvalid
	case large(w.Rows, w.Cols), large(w.Rows, inner), large(inner, w.Cols):
		return "sizes are at least 1, matrices have at most 2^26 elements", gpu.ErrLimit
	}
	return "", nil
}

// Suite returns the work that [Run] times by default. Each choice is also used for sizes between half and twice its own.
func Suite() []Work {
	return []Work{
		{"product", 64, 64, 64, 0},
		{"product", 256, 256, 256, 0},
		{"product", 1024, 1024, 1024, 0},
		{"product", 256, 256, 256, 1},
		{"product", 256, 256, 256, 2},
		{"product", 4096, 64, 64, 0},
		{"product", 2048, 32, 16, 0},
		{"vector", 1, 2048, 2048, 0},
		{"vector", 1, 2048, 2048, 2},
		{"sparse", 4096, 64, 40, 0},
		{"sparse", 1 << 16, 1, 8, 0},
		{"reduce-rows", 1, 1 << 20, 0, 0},
		{"reduce-rows", 1024, 1024, 0, 0},
		{"reduce-rows", 16384, 64, 0, 0},
		{"reduce-columns", 1024, 1024, 0, 0},
		{"reduce-columns", 16384, 64, 0, 0},
		{"softmax", 64, 16384, 0, 0},
		{"softmax", 1024, 1024, 0, 0},
		{"softmax", 16384, 64, 0, 0},
		{"transpose", 1024, 1024, 0, 0},
		{"transpose", 256, 256, 0, 0},
		{"elementwise", 1024, 1024, 0, 0},
		{"elementwise", 256, 256, 0, 0},
		{"grid", 1024, 1024, 0, 0},
	}
}

// bench is work on a device: an expression and where its result goes.
type bench struct {
	dst    *dense
	expr   *matrix.Expr[matrix.Any]
	owned  []*dense
	factor *matrix.Sparse[matrix.Any] // nil unless the work is sparse
}

// dense is a matrix of float32. Programs for pages have the code of matrices whose type is known at run time alone.
type dense = matrix.Dense[matrix.Any]

func (b *bench) close() error {
	var err error
	for _, m := range b.owned {
		err = errors.Join(err, m.Close())
	}
	if b.factor != nil {
		err = errors.Join(err, b.factor.Close())
	}
	return err
}

// structure makes that of a sparse matrix in CSR: as many entries in each row, one of each of as many parts of it, elsewhere from row to
// row.
func (w *Work) structure() (indices, pointers []int32) {
	pointers = make([]int32, 1, w.Rows+1)
	at := 0
	for range w.Rows {
		for e := range w.Inner {
			indices = append(indices, int32((e*w.Rows+at)/w.Inner))
		}
		pointers = append(pointers, int32(len(indices)))
		at = (at + 7919) % w.Rows // a prime
	}
	return indices, pointers
}

// random makes an operand.
func (b *bench) random(dev *gpu.Device, rows, cols int) (*dense, error) {
	m, err := matrix.New[matrix.Any](dev, rows, cols)
	if err != nil {
		return nil, err
	}
	b.owned = append(b.owned, m)
	return m, m.Buffer().Write(0, gpu.HostBytes(numbers(rows, cols)))
}

// numbers makes those of a matrix, between -1 and 1 and always the same.
func numbers(rows, cols int) []byte {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	data := make([]byte, 0, 4*rows*cols)
	for range rows * cols {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(2*rng.Float32()-1))
	}
	return data
}

// elements reads a matrix.
func elements(ctx context.Context, m *dense) ([]float32, error) {
	rows, cols := m.Dims()
	data := make([]byte, 4*rows*cols)
	if err := m.Buffer().Read(ctx, buffer.Range(0, len(data)), gpu.HostBytes(data), 0); err != nil {
		return nil, err
	}
	list := make([]float32, rows*cols)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return list, nil
}

// build makes the operands, the expression and the result of work.
func (w *Work) build(dev *gpu.Device) (*bench, error) {
	b := &bench{}
	rows, cols := w.Rows, w.Cols
	var err error
	var first, second *dense
	make := func(m **dense, rows, cols int, turned bool) {
		if err != nil {
			return
		}
		if turned {
			rows, cols = cols, rows
		}
		*m, err = b.random(dev, rows, cols)
	}
	switch {
	case w.is(kernels.FamilySparse):
		make(&first, rows, cols, false)
		if err == nil {
			indices, pointers := w.structure()
			b.factor, err = matrix.SparseFrom[matrix.Any](dev, matrix.CSR, rows, rows, gpu.HostBytes(numbers(rows, w.Inner)), indices, pointers, 0)
		}
	case w.multiplies():
		make(&first, rows, w.Inner, w.Layout&1 != 0)
		make(&second, w.Inner, cols, w.Layout&2 != 0)
	case w.Family == "transpose":
		make(&first, cols, rows, false)
	case w.Family == "grid":
		make(&first, rows, cols+4, false)
	default:
		make(&first, rows, cols, false)
		make(&second, rows, cols, false)
	}
	if err == nil {
		if b.factor != nil {
			b.expr = matrix.Mul(b.factor, first)
		} else {
			b.expr = w.expression(first, second)
		}
		rows, cols = b.expr.Dims()
		b.dst, err = matrix.New[matrix.Any](dev, rows, cols)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.owned = append(b.owned, b.dst)
	return b, nil
}

func (w *Work) expression(a, b *dense) *matrix.Expr[matrix.Any] {
	var x, y matrix.Operand[matrix.Any] = a, b
	switch w.Family {
	case "product", "vector":
		if w.Layout&1 != 0 {
			x = matrix.Transpose(x)
		}
		if w.Layout&2 != 0 {
			y = matrix.Transpose(y)
		}
		return matrix.Mul(x, y)
	case "reduce-rows":
		if w.Rows == 1 {
			return matrix.Sum(x)
		}
		return matrix.SumRows(x)
	case "reduce-columns":
		return matrix.SumCols(x)
	case "softmax":
		return matrix.Softmax(x)
	case "transpose":
		return matrix.Transpose(x)
	case "grid":
		return matrix.Exp(a.Slice(0, w.Rows, 4, w.Cols+4))
	}
	return matrix.Add(matrix.Scale(0.5, x), y)
}
