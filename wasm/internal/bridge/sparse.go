// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// The library looks at the structure of sparse matrices, their indices and pointers, so it is always copied from the page:
// of a wrapped matrix these copies stand in for the page's arrays, and are made again when the page touches it.

// sparseWrapped is the flag of a format that says the memory stays the page's.
const sparseWrapped = 1 << 16

func (b *Bridge) newSparse(a []uint32) error {
	values, indices, pointers := b.page.Object(a[4]), b.page.Object(a[6]), b.page.Object(a[8])
	t, format := a[1]&0xff, a[1]>>8&0xff
	if t > uint32(matrix.Float16) || format > uint32(matrix.BlockColumn) || a[1]>>17 != 0 {
		return invalid("format " + itoa(int(a[1])))
	}
	var made entry
	var err error
	if made.indices, err = b.structure(indices, a[7]); err != nil {
		return err
	}
	if made.pointers, err = b.structure(pointers, a[9]); err != nil {
		b.drop(made.indices)
		return err
	}
	mem, mirror, err := b.host(values, a[5])
	if err != nil {
		b.drop(made.indices, made.pointers)
		return err
	}
	made.mirror = mirror
	made.s, err = b.makeSparse(a[1]&sparseWrapped != 0, matrix.DType(t), matrix.Format(format), int(a[2]), int(a[3]), mem, &made)
	if err != nil || a[1]&sparseWrapped == 0 {
		b.drop(mirror, made.indices, made.pointers)
		made = entry{s: made.s}
	}
	if err != nil {
		return err
	}
	return b.put(a[0], made)
}

func (b *Bridge) makeSparse(
	wrapped bool, t matrix.DType, f matrix.Format, rows, cols int, values gpu.Host, e *entry,
) (*anySparse, error) {
	var flags buffer.Flags
	if wrapped {
		flags = buffer.DontOwnBuffer
	}
	return matrix.SparseFrom[matrix.Any](b.dev, f, rows, cols, values, e.indices.words, e.pointers.words, flags, matrix.OfType(t))
}

// structure copies so many numbers of 32 bits from the page.
func (b *Bridge) structure(object any, count uint32) (*mirror, error) {
	if count > maxMirrored/4 {
		return nil, fault.Fail("bridge", fault.ErrNoMemory, "a structure of "+itoa(int(count))+" numbers")
	}
	m, err := b.mirrored(object, 4*count)
	if err == nil && count > 0 {
		b.page.Load(object, 0, m.bytes)
		m.object = nil
	}
	return m, err
}

// touchSparse copies wrapped memory again. If the new structure is broken everything stays as it was.
func (b *Bridge) touchSparse(a []uint32) error {
	indices, pointers := b.page.Object(a[1]), b.page.Object(a[3])
	e, err := b.entry(a[0])
	switch {
	case err != nil:
		return err
	case e.indices == nil:
		return invalid("a touch of what is no wrapped sparse matrix")
	case uint64(a[2]) != uint64(len(e.indices.words)) || uint64(a[4]) != uint64(len(e.pointers.words)):
		return invalid("a touch with " + itoa(int(a[2])) + " indices")
	}
	e.indices.object, e.pointers.object = indices, pointers
	err = b.reload(e)
	e.indices.object, e.pointers.object = nil, nil
	return b.blame(a[0], err)
}

func (b *Bridge) reload(e *entry) error {
	mirrors := []*mirror{e.indices, e.pointers}
	if e.mirror != nil {
		mirrors = append(mirrors, e.mirror)
	}
	saved := make([][]byte, len(mirrors))
	for i, m := range mirrors {
		saved[i] = bytes.Clone(m.bytes)
		b.page.Load(m.object, 0, m.bytes)
	}
	err := e.s.Touch()
	if err != nil {
		for i, m := range mirrors {
			copy(m.bytes, saved[i])
		}
	}
	return err
}

// sparse returns the sparse matrix of a handle to somebody who wants its elements.
func (b *Bridge) sparse(handle uint32) (*anySparse, error) {
	e, err := b.current(handle)
	if err != nil {
		return nil, err
	}
	if e.s == nil {
		return nil, invalid("something else in place of a sparse matrix")
	}
	return e.s, nil
}

func (b *Bridge) columns(a []uint32) error {
	s, err := b.sparse(a[1])
	if err != nil {
		return err
	}
	v := s.ColumnSlice(int(a[2]), int(a[3]))
	if err := v.Err(); err != nil {
		return err
	}
	made := b.shared(&b.matrices[a[1]])
	made.s = v
	return b.put(a[0], made)
}

func (b *Bridge) values(a []uint32) error {
	s, err := b.sparse(a[1])
	if err != nil {
		return err
	}
	v := s.Values()
	if err := v.Err(); err != nil {
		return err
	}
	made := b.shared(&b.matrices[a[1]])
	made.m = v
	return b.put(a[0], made)
}

func (b *Bridge) append(a []uint32) error {
	e, err := b.entry(a[0])
	if err != nil {
		return err
	}
	if e.s == nil {
		return invalid("an entry for a dense matrix")
	}
	if err := e.s.Append(int(a[1]), int(a[2]), decoded(e.s.DType(), a[3])); err != nil {
		return b.blame(a[0], err)
	}
	return nil
}

// sparseEval computes a product with an expression, or, where there is none, the sparse matrix as a dense one.
func (b *Bridge) sparseEval(a []uint32) error {
	s, err := b.sparse(a[1])
	if err != nil {
		return err
	}
	if len(a) == 2 {
		m, err := s.ToDense()
		return b.fill(a[0], m, err)
	}
	y, err := b.factor(a[2:])
	if err != nil {
		return err
	}
	m := new(anyDense)
	return b.fill(a[0], m, matrix.MulSparse(m, s, y))
}

func (b *Bridge) factor(expr []uint32) (*anyDense, error) {
	x, err := b.program.run(expr)
	if err != nil {
		return nil, err
	}
	return b.program.part(x)
}

// sparseAssign is sparseEval into a matrix or a part of one.
func (b *Bridge) sparseAssign(a []uint32) error {
	h, ok := firstLeaf(a[2:])
	if !ok {
		return invalid("an assignment to what is no matrix")
	}
	if _, err := b.matrix(h); err != nil {
		return err
	}
	return b.blame(h, b.assignSparse(a[0], a[1], a[2:]))
}

func (b *Bridge) assignSparse(to, of uint32, expr []uint32) error {
	s, err := b.sparse(of)
	if err != nil {
		return err
	}
	m, x, err := b.target(to, expr)
	if err != nil {
		return err
	}
	if int64(to) == int64(len(b.program.values))-1 {
		rows, cols := s.Dims()
		return sized(m, rows, cols, func() error { return s.AssignTo(m) })
	}
	y, err := b.program.part(x)
	if err != nil {
		return err
	}
	rows, _ := s.Dims()
	_, cols := y.Dims()
	return sized(m, rows, cols, func() error { return matrix.MulSparse(m, s, y) })
}

// sized calls assign if m has a size: what a page assigns to is never resized.
func sized(m *anyDense, rows, cols int, assign func() error) error {
	r, c := m.Dims()
	if r != rows || c != cols {
		return &gpu.OpError{Op: "bridge: Assign", Shapes: []gpu.Shape{{r, c}, {rows, cols}}, Err: matrix.ErrShape}
	}
	return assign()
}

// readSparse copies values and structure to the page.
func (b *Bridge) readSparse(a []uint32) error {
	object, indices, pointers := b.page.Object(a[2]), b.page.Object(a[4]), b.page.Object(a[6])
	s, err := b.sparse(a[1])
	if err != nil {
		return err
	}
	index, ptr, err := s.Structure()
	if err != nil {
		return err
	}
	v := s.Values()
	if err := v.Err(); err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // what is queued by then still reads it
	rows, cols := v.Dims()
	size := 4 * rows * cols
	if int64(a[3]) < int64(size) || uint64(a[5]) != uint64(len(index)) || uint64(a[7]) != uint64(len(ptr)) {
		return fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(a[5])), " places for ", itoa(len(index)), " entries")
	}
	b.store(indices, index)
	b.store(pointers, ptr)
	if size == 0 {
		b.settle(a[0], nil, nil)
		return nil
	}
	return b.readBuffer(a[0], v.Buffer(), 4*v.Offset(), size, object, a[3])
}

func (b *Bridge) store(object any, from []int32) {
	if len(from) > 0 {
		b.page.Store(object, 0, wordBytes(from))
	}
}
