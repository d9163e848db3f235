// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The library looks at the structure of sparse matrices, their indices and pointers, so it is always copied from the page:
// of a wrapped matrix these copies stand in for the page's arrays, and are made again when the page touches it.

// maxStructure is the most indices or pointers, because running out of memory ends a program of Go's.
const maxStructure = 1 << 28

// sparseWrapped is the flag of a format that says the memory stays the page's.
const sparseWrapped = 1 << 16

func (b *Bridge) newSparse(a []uint32) {
	values, indices, pointers := b.Object(a[4]), b.Object(a[6]), b.Object(a[8])
	t, f := matrix.DType(a[1]), matrix.Format(a[1]>>8)
	if t > matrix.Float16 || f > matrix.BlockColumn || a[1]>>17 != 0 {
		page.Invalid("format " + itoa(int(a[1])))
	}
	if a[7] > maxStructure || a[9] > maxStructure {
		page.Check(fault.Fail("bridge", fault.ErrNoMemory, "a structure of more than "+itoa(maxStructure)+" numbers"))
	}
	index, ptr, mem := make([]int32, a[7]), make([]int32, a[9]), hostOf(values, a[5])
	b.Load(indices, 0, host.BytesOf(index))
	b.Load(pointers, 0, host.BytesOf(ptr))
	made := &entry{}
	var flags buffer.Flags
	if a[1]&sparseWrapped != 0 {
		made.indices, made.pointers, flags = index, ptr, buffer.DontOwnBuffer
	}
	rows, cols := int(a[2]), int(a[3])
	made.value = page.Must(matrix.SparseFrom[matrix.Any](b.dev, f, rows, cols, mem, index, ptr, flags, matrix.Options{Type: t}))
	b.put(a[0], made)
}

// touchSparse copies the structure of wrapped memory again. If the new one is broken everything stays as it was.
func (b *Bridge) touchSparse(a []uint32) {
	indices, pointers, e := b.Object(a[1]), b.Object(a[3]), b.entry(a[0])
	switch {
	case e.indices == nil:
		page.Invalid("a touch of what is no wrapped sparse matrix")
	case uint64(a[2]) != uint64(len(e.indices)) || uint64(a[4]) != uint64(len(e.pointers)):
		page.Invalid("a touch with " + itoa(int(a[2])) + " indices")
	}
	oldIndices, oldPointers := slices.Clone(e.indices), slices.Clone(e.pointers)
	b.Load(indices, 0, host.BytesOf(e.indices))
	b.Load(pointers, 0, host.BytesOf(e.pointers))
	b.write(a[0], func() {
		if err := as[*anySparse](e).Touch(); err != nil {
			copy(e.indices, oldIndices)
			copy(e.pointers, oldPointers)
			page.Check(err)
		}
	})
}

// sparse returns the sparse matrix of a handle to somebody who wants its elements.
func (b *Bridge) sparse(handle uint32) *anySparse { return as[*anySparse](b.current(handle)) }

func (b *Bridge) columns(a []uint32) {
	v := b.sparse(a[1]).ColumnSlice(int(a[2]), int(a[3]))
	page.Check(v.Err())
	of := b.entries[a[1]]
	b.put(a[0], &entry{value: v, indices: of.indices, pointers: of.pointers})
}

func (b *Bridge) values(a []uint32) {
	v := b.sparse(a[1]).Values()
	page.Check(v.Err())
	b.put(a[0], &entry{value: v})
}

func (b *Bridge) append(a []uint32) {
	s := as[*anySparse](b.entry(a[0]))
	if err := s.Append(int(a[1]), int(a[2]), decoded(s.DType(), a[3])); err != nil {
		b.write(a[0], func() { page.Check(err) })
	}
}

// sparseEval evaluates a sparse expression, or with the handle of a sparse matrix the product of the expression and that in whole
// columns, and reports the format and the number of indices.
func (b *Bridge) sparseEval(a []uint32) {
	b.vacant(a[1])
	x := b.program.run(a[4:])
	var s *anySparse
	if a[3] != 0 {
		s = page.Must(matrix.MulBlockColumn(x, b.sparse(a[3])))
	} else {
		s = page.Must(x.Sparse())
	}
	if format := matrix.Format(min(a[2], anyFormat)); format != anyFormat && format != s.Format() {
		other, err := s.ToFormat(format)
		page.Check(errors.Join(err, s.Close()))
		s = other
	}
	b.put(a[1], &entry{value: s})
	index, _, err := s.Structure()
	page.Check(err)
	b.Settle(a[0], itoa(int(s.Format()))+" "+itoa(len(index)), nil)
}

// anyFormat leaves the result in the format that it has.
const anyFormat = 255

// sized stops unless m has a size: what a page assigns to is never resized.
func sized(m *anyDense, rows, cols int) {
	if r, c := m.Dims(); r != rows || c != cols {
		page.Check(&gpu.OpError{Op: "bridge: Assign", Shapes: []fault.Shape{{r, c}, {rows, cols}}, Detail: "sizes have to be equal", Err: buffer.ErrShape})
	}
}

// readSparse copies values and structure to the page.
func (b *Bridge) readSparse(a []uint32) {
	object, indices, pointers := b.Object(a[2]), b.Object(a[4]), b.Object(a[6])
	s := b.sparse(a[1])
	index, ptr, err := s.Structure()
	page.Check(err)
	v := s.Values()
	page.Check(v.Err())
	defer func() { _ = v.Close() }() // what is queued by then still reads it
	rows, cols := v.Dims()
	size := 4 * rows * cols
	if a[3] == 0 { // the structure alone
		size = 0
	}
	if int64(a[3]) < int64(size) || uint64(a[5]) != uint64(len(index)) || uint64(a[7]) != uint64(len(ptr)) {
		page.Check(fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(a[5])), " places for ", itoa(len(index)), " entries"))
	}
	b.Store(indices, 0, host.BytesOf(index))
	b.Store(pointers, 0, host.BytesOf(ptr))
	b.read(a[0], v.Buffer(), 4*v.Offset(), size, object, a[3], nil)
}
