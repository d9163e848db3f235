// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Template says what blocks are like: planes of matrices of one element type, or bytes. The two ends of a channel must agree:
// in everything but the rows if either is a stream of records. Make one with [Graph.Template] or [Graph.Bytes].
type Template struct {
	g                   *Graph
	name                string
	rows, cols          int
	planes, pitch       int
	dtype               matrix.DType
	raw, records, whole bool
	initial             []byte
	contexts            Contexts
	pool                pool
}

// Contexts are what a program keeps with blocks of a template: [Block.Context]. Each function may be nil. Create is called
// when the context of a block is first asked for, Clone when the block is cloned, Destroy when it is released.
type Contexts struct {
	Create  func(*Block) any
	Clone   func(any) any
	Destroy func(any)
}

// TemplateOption is an option of [Graph.Template].
type TemplateOption func(*Template)

// Planes makes blocks of n matrices, one after the other: a matrix of n*rows rows for [Dispatch.Matrix].
func Planes(n int) TemplateOption { return func(t *Template) { t.planes = n } }

// Pitch sets the distance in elements between two rows, at least cols.
func Pitch(n int) TemplateOption { return func(t *Template) { t.pitch = n } }

// Records makes blocks streams of records: each block may have another number of rows. That of the template is what outputs
// get unless something sizes them.
func Records() TemplateOption { return func(t *Template) { t.records = true } }

// Initial sets what new blocks hold instead of zeros: as many bytes as the template has.
func Initial(data []byte) TemplateOption {
	return func(t *Template) { t.initial = append([]byte{}, data...) }
}

// WithContexts sets the functions for what a program keeps with blocks.
func WithContexts(c Contexts) TemplateOption { return func(t *Template) { t.contexts = c } }

// PoolSize sets how many released blocks' memory is kept for new ones. It is 8 without the option.
func PoolSize(n int) TemplateOption { return func(t *Template) { t.pool.limit = n } }

const defaultPool = 8

// maxBlock keeps products of sizes from overflowing.
const maxBlock = math.MaxInt >> 16

// Template makes a template of rows x cols matrices, stored by rows. Mistakes are faults of the graph's.
func (g *Graph) Template(name string, rows, cols int, t matrix.DType, opts ...TemplateOption) *Template {
	return g.template(&Template{name: name, rows: rows, cols: cols, dtype: t}, opts)
}

// Bytes makes a template of blocks of bytes, which have no matrix. With [Records] their number is each block's own.
func (g *Graph) Bytes(name string, size int, opts ...TemplateOption) *Template {
	return g.template(&Template{name: name, rows: size, cols: 1, raw: true}, opts)
}

func (g *Graph) template(t *Template, opts []TemplateOption) *Template {
	t.g, t.planes, t.pitch, t.pool.limit = g, 1, t.cols, defaultPool
	for _, o := range opts {
		if o != nil {
			o(t)
		}
	}
	const op = "Template"
	size := t.Size()
	ok := fits(t.planes, max(t.rows, 1), t.pitch, t.elem())
	switch {
	case g == nil:
	case t.dtype > matrix.Float16:
		g.fault(fail(op, gpu.ErrInvalid, t.name, ": unknown element type"))
	case !ok || t.rows < 0 || t.pitch < t.cols || t.pool.limit < 0:
		g.fault(fail(op, gpu.ErrInvalid, t.name, ": ", itoa(t.rows), "x", itoa(t.cols)))
	case t.initial != nil && len(t.initial) != size:
		g.fault(fail(op, ErrTemplate, t.name, ": ", itoa(len(t.initial)), " bytes to begin with, blocks have ", itoa(size)))
	default:
		t.whole = true
		g.mu.Lock()
		g.templates = append(g.templates, t)
		g.mu.Unlock()
	}
	return t
}

// fits reports whether a size is one that blocks may have.
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

// Name returns the name.
func (t *Template) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// Dims returns the rows and columns of each plane.
func (t *Template) Dims() (rows, cols int) {
	if t == nil {
		return 0, 0
	}
	return t.rows, t.cols
}

// DType returns the element type.
func (t *Template) DType() matrix.DType {
	if t == nil {
		return matrix.Float32
	}
	return t.dtype
}

// Size returns the bytes of a block with the template's rows.
func (t *Template) Size() int {
	if t == nil {
		return 0
	}
	return t.sizeOf(t.rows)
}

func (t *Template) elem() int {
	if t == nil || t.raw {
		return 1
	}
	return t.dtype.Size()
}

func (t *Template) sizeOf(rows int) int { return t.planes * rows * t.pitch * t.elem() }

// rowsOf returns how many rows so many bytes are.
func (t *Template) rowsOf(size int) (int, error) {
	row := t.sizeOf(1)
	switch {
	case size == t.sizeOf(t.rows):
		return t.rows, nil
	case t.records && row > 0 && size >= 0 && size%row == 0:
		return size / row, nil
	}
	return 0, fail("Template", ErrTemplate, itoa(size), " bytes in a block of ", t.name)
}

// agrees reports whether blocks of u may go where those of t do.
func (t *Template) agrees(u *Template) bool {
	return t == u || t.g == u.g && t.cols == u.cols && t.planes == u.planes && t.pitch == u.pitch && t.dtype == u.dtype &&
		t.raw == u.raw && (t.rows == u.rows || t.records || u.records)
}

// usable refuses templates that were not made whole.
func (t *Template) usable(op string) error {
	if t == nil || !t.whole {
		return fail(op, ErrTemplate, "not a template of a graph")
	}
	return nil
}
