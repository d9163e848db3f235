// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// compress makes a sparse matrix of what is not zero in a dense one. This is the host's work: the matrix is read major by
// major, in one piece.
func compress(ctx context.Context, a *core, format Format) (*sparseCore, error) {
	const op = "SparseFromDense"
	if err := a.usable(op); err != nil {
		return nil, err
	}
	s := newSparse(a.dev, a.t, format, a.Rows, a.Cols)
	if err := s.checkKind(op); err != nil {
		return nil, err
	}
	by := a.slice(op, 0, a.Rows, 0, a.Cols)
	if format != CSR {
		by.Layout = by.T()
	}
	mem := make([]uint32, a.Rows*a.Cols)
	if err := firstError(by.read(ctx, op, hostOf(mem)), by.close()); err != nil {
		return nil, err
	}
	n := s.pack(mem)
	if n > math.MaxInt32 {
		return nil, fail(op, gpu.ErrLimit, "more than 2147483647 values")
	}
	values, err := buffer.FromHost(a.dev, hostOf(mem[:n]))
	if err != nil {
		return nil, named(op, err)
	}
	return s.with(op, values, buffer.FromHost)
}

// pack moves what is to be stored to the front of mem, and lists where it was. It returns how much that is.
func (s *sparseCore) pack(mem []uint32) (n int) {
	if s.format != BlockColumn {
		s.ptr = make([]int32, 1, s.majors+1)
	}
	for c := range s.majors {
		major := mem[c*s.minors:][:s.minors]
		if s.format == BlockColumn {
			if slices.ContainsFunc(major, func(v uint32) bool { return v != 0 }) {
				s.index = append(s.index, int32(c))
				n += copy(mem[n:], major)
			}
			continue
		}
		for i, bits := range major {
			if bits != 0 {
				mem[n] = bits
				s.index = append(s.index, int32(i))
				n++
			}
		}
		s.ptr = append(s.ptr, int32(n))
	}
	return n
}

func (s *sparseCore) assignTo(op string, dst *core) error {
	if err := firstError(s.ready(op), dst.usable(op)); err != nil {
		return err
	}
	size := s.shape()
	return s.write(op, dst, size[0], size[1], s.values, s.scatter)
}

// write has compute write a rows x cols result of the matrix and of another operand to dst, which may overlap them.
func (s *sparseCore) write(
	op string, dst *core, rows, cols int, operand *buffer.Buffer, compute func(*exec.Run, exec.Dense) error,
) error {
	err := dst.store(op, s.dev, s.t, rows, cols, func(d exec.Dense) error {
		return exec.Of(s.dev).During(context.Background(), func(r *exec.Run) error {
			overlaps := d.Buf.Overlaps(s.values) || d.Buf.Overlaps(operand)
			return r.Apart(d, overlaps, func(d exec.Dense) error { return compute(r, d) })
		})
	})
	if err != nil {
		s.tear()
	}
	return err
}

// scatter writes zeros and then the entries.
func (s *sparseCore) scatter(r *exec.Run, dst exec.Dense) error {
	lo, hi := s.span()
	if dst.Empty() || lo == hi {
		return r.Assign(dst, zero(dst))
	}
	l := kernels.Scatter{
		Blocks: s.format == BlockColumn, Count: hi - lo, Begin: lo, First: s.first, Majors: s.majors, Minors: s.minors,
	}
	l.MinorStep, l.MajorStep = dst.Steps()
	if s.format == CSR {
		l.MinorStep, l.MajorStep = l.MajorStep, l.MinorStep
	}
	indices, pointers := words(s.indices, lo, hi), words(s.pointers, s.first, s.first+s.majors+1)
	if l.Blocks {
		indices = words(s.indices, 0, len(s.index))
		pointers = indices
	}
	in, own := r.Input(dst, words(s.values, lo, hi), indices, pointers)
	return r.Execute(plan.Scatter(in, l, own...))
}

// rowList tells how products go through the rows of a matrix. Buffers that are nil are the matrix's own.
type rowList struct {
	changes, generation uint32 // of the matrix and of the device, when the list was made
	rows                int    // after cutting

	indices, pointers, places *buffer.Buffer // places: of the values, where these are not in order
	sums                      *buffer.Buffer // points to the parts of each row; nil where no row was cut
}

func (l *rowList) close() error {
	if l == nil {
		return nil
	}
	return firstError(l.indices.Close(), l.pointers.Close(), l.places.Close(), l.sums.Close())
}

// listed returns the list of rows, made anew if the structure changed.
func (s *sparseCore) listed(op string) (*rowList, error) {
	now := rowList{changes: s.changes.Load(), generation: s.dev.Generation()}
	if s.rows != nil && s.rows.changes == now.changes && s.rows.generation == now.generation {
		return s.rows, nil
	}
	if err := s.recheck(op); err != nil {
		return nil, err
	}
	ptr := s.ptr
	var columns, places []int32
	if s.format != CSR {
		ptr, columns, places = s.byRows()
	}
	var err error
	upload := func(b **buffer.Buffer, v []int32) {
		if err == nil {
			*b, err = buffer.FromHost(s.dev, hostOf(v))
		}
	}
	if chunk := kernels.Chunk(ptr); chunk > 0 {
		var sums []int32
		ptr, sums = kernels.Cut(ptr, chunk)
		upload(&now.sums, sums)
	}
	if now.sums != nil || s.format != CSR {
		upload(&now.pointers, ptr)
	}
	if s.format != CSR {
		upload(&now.indices, columns)
		upload(&now.places, places)
	}
	if err != nil {
		return nil, firstError(err, now.close())
	}
	old := s.rows
	now.rows, s.rows = len(ptr)-1, &now
	return s.rows, old.close()
}

// byRows lists the values of columns row by row, each with its column and its place.
func (s *sparseCore) byRows() (ptr, columns, places []int32) {
	ptr = make([]int32, s.minors+1)
	s.eachValue(func(_, row, _ int) { ptr[row+1]++ })
	for i := range s.minors {
		ptr[i+1] += ptr[i]
	}
	next := slices.Clone(ptr)
	columns, places = make([]int32, ptr[s.minors]), make([]int32, ptr[s.minors])
	s.eachValue(func(column, row, place int) {
		at := next[row]
		columns[at], places[at] = int32(column), int32(place)
		next[row]++
	})
	return ptr, columns, places
}

// eachValue goes through the values of columns in the order in which they are stored.
func (s *sparseCore) eachValue(visit func(column, row, place int)) {
	if s.format == BlockColumn {
		for k, column := range s.index {
			for row := range s.minors {
				visit(int(column), row, k*s.minors+row)
			}
		}
		return
	}
	for column := range s.majors {
		for q := s.ptr[column]; q < s.ptr[column+1]; q++ {
			visit(column, int(s.index[q]), int(q))
		}
	}
}

// mul checks the operands of a product and computes it.
func (s *sparseCore) mul(op string, dst, y *core) error {
	if err := firstError(s.ready(op), y.usable(op), dst.usable(op)); err != nil {
		return err
	}
	size := s.shape()
	switch {
	case y.dev != nil && y.dev != s.dev:
		return fail(op, gpu.ErrForeign, "the factors are on two devices")
	case y.typed != 0 && y.t != s.t:
		return fail(op, gpu.ErrInvalid, s.t.String(), " with ", y.t.String())
	case size[1] != y.Rows:
		return expr.ShapeError(op, size, y.Shape())
	}
	return s.write(op, dst, size[0], y.Cols, y.buf, func(r *exec.Run, d exec.Dense) error { return s.multiply(r, op, d, y.dense()) })
}

// maxScratch is how many bytes of parts there may be at a time: more columns are computed in strips.
var maxScratch = 64 << 20

// multiply computes dst = s * y.
func (s *sparseCore) multiply(r *exec.Run, op string, dst, y exec.Dense) error {
	lo, hi := s.span()
	if dst.Empty() || lo == hi {
		return r.Assign(dst, zero(dst))
	}
	l, err := s.listed(op)
	if err != nil {
		return err
	}
	if l.sums == nil {
		return s.launchRows(r, l, dst, y)
	}
	width := min(max(maxScratch/(16*l.rows)*4, 4), dst.Cols) // of a strip: a multiple of 4 unless it is all
	stride := 4 * shaders.Ceil(width, 4)
	scratch, err := r.Temp(dst.Type, expr.Layout{Rows: l.rows, Cols: stride, Stride: stride})
	for j := 0; err == nil && j < dst.Cols; j += width {
		end := min(j+width, dst.Cols)
		to, from, parts := dst, y, scratch
		to.Layout, from.Layout = dst.Slice(0, dst.Rows, j, end), y.Slice(0, y.Rows, j, end)
		parts.Cols = 4 * shaders.Ceil(to.Cols, 4)
		parts.Stride = parts.Cols
		if err = s.launchRows(r, l, parts, from); err == nil {
			in, own := r.Input(to, words(parts.Buf, 0, parts.Span()), words(l.sums, 0, to.Rows+1))
			err = r.Execute(plan.Sum(in, own...))
		}
	}
	return err
}

// launchRows launches the kernel that goes through the rows.
func (s *sparseCore) launchRows(r *exec.Run, list *rowList, dst, y exec.Dense) error {
	lo, hi := s.span()
	l := kernels.SparseRows{Placed: list.places != nil, Rows: list.rows, Cols: y.Cols, Inner: y.Rows, Entries: hi - lo}
	indices := cmp.Or(list.indices, s.indices)
	pointers, places := cmp.Or(list.pointers, s.pointers), cmp.Or(list.places, indices)
	all := func(b *buffer.Buffer) exec.Dense { return words(b, 0, b.Size()/4) }
	in, own := r.Input(dst, y, words(s.values, lo, hi), all(indices), all(pointers), all(places))
	return r.Execute(plan.Rows(in, l, own[0], own[1:]...))
}
