// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Template says what blocks are like: planes of matrices of one element type, or bytes. The two ends of a channel must agree: in
// everything, or in everything but the rows if one of them is a stream of records. It keeps the memory of released blocks, on all
// devices, for new ones. Make one with [Graph.Template] or [Graph.Bytes].
type Template struct {
	Format
	g          *Graph
	name       string
	rows, cols int
	dtype      matrix.DType
	raw, whole bool

	mu     sync.Mutex
	closed bool
	free   []*storage
}

// Format is what else a template may say. The zero value is one contiguous matrix of zeros.
type Format struct {
	Planes  int    // matrices, one after the other: a matrix of Planes*rows rows for [Matrix]; 0 stands for 1
	Pitch   int    // elements between the beginnings of two rows; 0 stands for as many as there are columns
	Records bool   // a stream of records: each block may have another number of rows
	Initial []byte // what new blocks hold instead of zeros: as many bytes as a block has
	Pool    int    // of how many released blocks the memory is kept; 0 stands for 8, less for none

	// The functions for what a program keeps with blocks, [Block.Context]; each may be nil. Create is called when the context of a
	// block is first asked for, Clone when the block is cloned, Destroy when it is released.
	Create  func(*Block) any
	Clone   func(any) any
	Destroy func(any)
}

const defaultPool = 8

// maxBlock keeps products of sizes from overflowing.
const maxBlock = math.MaxInt >> 16

// Template makes a template of rows x cols matrices, stored by rows. Mistakes are faults of the graph.
func (g *Graph) Template(name string, rows, cols int, t matrix.DType, format ...Format) *Template {
	return g.template(&Template{name: name, rows: rows, cols: cols, dtype: t}, format)
}

// Bytes makes a template of blocks of bytes, which have no matrix. With [Format.Records] each block has a number of its own.
func (g *Graph) Bytes(name string, size int, format ...Format) *Template {
	return g.template(&Template{name: name, rows: size, cols: 1, raw: true}, format)
}

func (g *Graph) template(t *Template, format []Format) *Template {
	t.g = g
	if len(format) > 0 {
		t.Format = format[0]
		t.Initial = slices.Clone(t.Initial)
	}
	if t.Planes == 0 {
		t.Planes = 1
	}
	if t.Pitch == 0 {
		t.Pitch = t.cols
	}
	if t.Pool == 0 {
		t.Pool = defaultPool
	}
	const op = "Template"
	ok := fits(t.Planes, max(t.rows, 1), t.Pitch, t.elem())
	switch {
	case g == nil:
	case t.dtype > matrix.Float16 || len(format) > 1:
		g.fault(fail(op, gpu.ErrInvalid, t.name, ": unknown element type, or two formats"))
	case !ok || t.rows < 0 || t.Pitch < t.cols:
		g.fault(fail(op, gpu.ErrInvalid, t.name, ": ", itoa(t.rows), "x", itoa(t.cols)))
	case t.Initial != nil && len(t.Initial) != t.size():
		g.fault(fail(op, ErrTemplate, t.name, ": ", itoa(len(t.Initial)), " bytes to begin with, blocks have ", itoa(t.size())))
	default:
		t.whole = true
		g.mu.Lock()
		g.templates = append(g.templates, t)
		g.mu.Unlock()
	}
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

func (t *Template) elem() int {
	if t == nil || t.raw {
		return 1
	}
	return t.dtype.Size()
}

func (t *Template) sizeOf(rows int) int { return t.Planes * rows * t.Pitch * t.elem() }

// size returns the bytes of a block with the template's rows.
func (t *Template) size() int { return t.sizeOf(t.rows) }

// rowsOf returns how many rows so many bytes are.
func (t *Template) rowsOf(size int) (int, error) {
	row := t.sizeOf(1)
	switch {
	case size == t.size():
		return t.rows, nil
	case t.Records && row > 0 && size >= 0 && size%row == 0:
		return size / row, nil
	}
	return 0, fail("Template", ErrTemplate, itoa(size), " bytes in a block of ", t.name)
}

// agrees reports whether blocks of u may go where those of t do.
func (t *Template) agrees(u *Template) bool {
	return t == u || t.g == u.g && t.cols == u.cols && t.Planes == u.Planes && t.Pitch == u.Pitch && t.dtype == u.dtype &&
		t.raw == u.raw && (t.rows == u.rows || t.Records || u.Records)
}

// usable refuses templates that a graph did not make, or only with a fault.
func (t *Template) usable(op string) error {
	if t == nil || !t.whole {
		return fail(op, ErrTemplate, "not a template of a graph")
	}
	return nil
}

// newStorage returns memory of so many bytes, which may have served before.
func (t *Template) newStorage(size int) *storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 && size <= t.size() {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		s.size = size
		return s
	}
	return &storage{t: t, capacity: max(size, t.size()), size: size, replicas: make([]replica, len(t.g.devices))}
}

// recycle keeps memory that is not used any more, or releases it.
func (t *Template) recycle(s *storage) {
	t.mu.Lock()
	keep := s.capacity == t.size() && !s.external && !t.closed && len(t.free) < t.Pool
	if keep {
		s.valid.Store(0)
		t.free = append(t.free, s)
	}
	t.mu.Unlock()
	if !keep {
		s.close()
	}
}

// closePool returns the memory that was kept. From then on none is.
func (t *Template) closePool() []*storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := t.free
	t.free, t.closed = nil, true
	return free
}

func (t *Template) openPool() {
	t.mu.Lock()
	t.closed = false
	t.mu.Unlock()
}

func (t *Template) pooled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.free)
}
