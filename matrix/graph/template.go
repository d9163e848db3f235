// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/turn"
	"github.com/sublet-gpu/sublet/matrix"
)

// Template describes blocks: planes of matrices of one element type, or bytes. The templates of a channel's two ends must agree in
// everything, or in everything but the rows if one of them is a stream of records. A template keeps the memory of released blocks, on
// all devices, for new ones. Make one with [Graph.Template].
type Template struct {
	Format
	g          *Graph
	name       string
	rows, cols int
	dtype      dtype.Type
	fault      error

	mu   sync.Mutex
	free []*storage
}

// Format has further settings of a template. The zero value is one contiguous matrix of zeros.
type Format struct {
	Planes  int    // matrices, one after the other: a matrix of Planes*rows rows for [Matrix]; 0 stands for 1
	Pitch   int    // elements between the beginnings of two rows; 0 stands for as many as there are columns
	Records bool   // a stream of records: each block may have another number of rows
	Initial []byte // what new blocks hold instead of zeros: as many bytes as a block has
	Pool    int    // of how many released blocks the memory is kept; 0 stands for 8, less for none

	// Functions for the program's own value of a block, [Block.Context]; each may be nil. Create is called when a block is made, Clone when
	// one is cloned, and Destroy when it is released, unless the value is nil.
	Create  func(*Block) any
	Clone   func(any) any
	Destroy func(any)
}

// elements are the types that elements may have, with the zero of each.
var elements = map[dtype.Type]any{
	dtype.Float32: float32(0), dtype.Float16: matrix.Half{}, dtype.Int32: int32(0), dtype.Uint32: uint32(0), dtype.Uint8: nil,
}

const defaultPool = 8

// maxBlock keeps products of sizes from overflowing.
const maxBlock = math.MaxInt >> 16

// Template makes a template of rows x cols matrices, stored by rows: of dtype.Float32, Float16, Int32 or Uint32, or of bytes,
// dtype.Uint8, which are no matrix. The name is for messages; others may have the same. Mistakes are faults of the graph.
func (g *Graph) Template(name string, rows, cols int, elem dtype.Type, format ...Format) *Template {
	t := &Template{Format: last(format), g: g, name: name, rows: rows, cols: cols, dtype: elem}
	t.Initial = slices.Clone(t.Initial)
	t.Planes, t.Pitch, t.Pool = cmp.Or(t.Planes, 1), cmp.Or(t.Pitch, cols), cmp.Or(t.Pool, defaultPool)
	if g == nil {
		return t
	}
	_, known := elements[elem]
	switch {
	case !known, rows < 0, t.Pitch < cols, !fits(t.Planes, max(rows, 1), t.Pitch, elem.Size()):
		t.fault = fail("Template", gpu.ErrInvalid, name, ": ", itoa(rows), "x", itoa(cols), " of ", elem.String())
	case t.Initial != nil && len(t.Initial) != t.size():
		t.fault = fail("Template", ErrTemplate, name, ": ", itoa(len(t.Initial)), " bytes to begin with, blocks have ", itoa(t.size()))
	}
	g.lock()
	g.templates = append(g.templates, t)
	if t.fault != nil {
		g.faults = append(g.faults, t.fault)
	}
	g.unlock()
	return t
}

// fits reports whether blocks may have a size, the product of the factors.
func fits(factors ...int) bool {
	n := 1
	for _, f := range factors {
		if f < 0 || f > 0 && n > maxBlock/f {
			return false
		}
		n *= f
	}
	return true
}

func (t *Template) sizeOf(rows int) int { return t.Planes * rows * t.Pitch * t.dtype.Size() }

// size returns the bytes of a block with the template's rows.
func (t *Template) size() int { return t.sizeOf(t.rows) }

// rowsOf returns how many rows so many bytes are.
func (t *Template) rowsOf(op string, size int) (int, error) {
	if err := t.usable(op); err != nil {
		return 0, err
	}
	switch row := t.sizeOf(1); {
	case size == t.size():
		return t.rows, nil
	case t.Records && row > 0 && size >= 0 && size%row == 0:
		return size / row, nil
	}
	return 0, fail(op, ErrTemplate, itoa(size), " bytes for a block of ", t.name, ", which has ", itoa(t.size()))
}

// agrees reports whether blocks of u may go where those of t do.
func (t *Template) agrees(u *Template) bool {
	return t == u || t.g == u.g && t.cols == u.cols && t.Planes == u.Planes && t.Pitch == u.Pitch && t.dtype == u.dtype &&
		(t.rows == u.rows || t.Records || u.Records)
}

// usable refuses templates that were not made by a graph, or with a fault.
func (t *Template) usable(op string) error {
	if t == nil || t.g == nil || t.fault != nil {
		return fail(op, ErrTemplate, "not a usable template of a graph")
	}
	return nil
}

// has refuses templates whose elements are not of type T.
func has[T matrix.Elem](t *Template, op string) error {
	if err := t.usable(op); err != nil {
		return err
	}
	if elements[t.dtype] != any(*new(T)) {
		return fail(op, ErrTemplate, t.name, " has elements of ", t.dtype.String())
	}
	return nil
}

// newStorage returns memory of so many bytes, which may be that of a released block.
func (t *Template) newStorage(size int) *storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 && size <= t.size() {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		s.size = size
		return s
	}
	s := &storage{t: t, capacity: max(size, t.size()), size: size, replicas: make([]replica, len(t.g.devices)), turn: turn.New()}
	s.valid.Store(fresh)
	return s
}

// recycle keeps unused memory for new blocks, or releases it.
func (t *Template) recycle(s *storage) {
	t.mu.Lock()
	keep := s.capacity == t.size() && !s.external && t.g.pooling.Load() && len(t.free) < t.Pool
	if keep {
		s.valid.Store(fresh)
		t.free = append(t.free, s)
	}
	t.mu.Unlock()
	if !keep {
		s.close()
	}
}
