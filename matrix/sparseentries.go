// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/pattern"
)

// node is the matrix in an expression. Block columns stand there as the entries that they are.
func (s *sparseCore) node(op string) *node {
	if err := s.ready(op); err != nil {
		return expr.Failed(err)
	}
	size := s.shape()
	return expr.NewSparse(s.dev, size[0], size[1], entries{s, false}, s.valuesNode())
}

// valuesNode are the stored values as a row.
func (s *sparseCore) valuesNode() *node {
	v := sparseValues{s}
	d := v.row()
	return &node{Kind: expr.Leaf, Type: s.t, Rows: 1, Cols: d.Cols, Dev: s.dev, Source: v}
}

// sparseValues is the Source of a row of stored values.
type sparseValues struct{ of *sparseCore }

func (v sparseValues) row() exec.Dense {
	lo, hi := v.of.span()
	d := words(v.of.values, lo, hi)
	d.Type = v.of.t
	return d
}

// Current implements [exec.Source].
func (v sparseValues) Current() (exec.Dense, error) {
	const op = "Assign"
	if err := firstError(v.of.ready(op), v.of.current(op)); err != nil {
		return exec.Dense{}, err
	}
	return v.row(), nil
}

// entries implements [expr.Entries].
type entries struct {
	of     *sparseCore
	turned bool // of the transpose
}

// pattern is where the entries are, those of a slice counted from its first one.
func (s *sparseCore) pattern(op string) (p pattern.Pattern, err error) {
	if err := firstError(s.ready(op), s.current(op), s.recheck(op)); err != nil {
		return p, err
	}
	size := s.shape()
	if s.format == BlockColumn {
		return pattern.Blocks(op, size[0], size[1], s.index)
	}
	p = pattern.Pattern{Rows: size[0], Cols: size[1], ByRows: s.format == CSR, Index: s.index, Ptr: s.ptr}
	if s.view {
		_, _, p.Index, p.Ptr, err = s.structure(op)
	}
	return p, err
}

// Pattern implements [expr.Entries].
func (e entries) Pattern() (pattern.Pattern, error) {
	p, err := e.of.pattern("Assign")
	if e.turned {
		p = p.T()
	}
	return p, err
}

// T implements [expr.Entries].
func (e entries) T() expr.Entries { return entries{e.of, !e.turned} }

// Derive implements [expr.Entries]. The matrix has no values, and nobody closes it.
func (e entries) Derive(p pattern.Pattern, others ...expr.Entries) expr.Entries {
	s := newSparse(e.of.dev, e.of.t, formatOf(&p), p.Rows, p.Cols)
	s.index, s.ptr, s.sent = p.Index, p.Ptr, len(p.Index)
	for _, o := range append(others, e) {
		for _, m := range o.(entries).of.origins() {
			if !slices.Contains(s.made, m) {
				s.made = append(s.made, m)
			}
		}
	}
	return entries{of: s}
}

// origins are the matrices that an expression has made a matrix of, or the matrix itself if it is none of an expression's.
func (s *sparseCore) origins() []madeOf {
	if s.made != nil {
		return s.made
	}
	return []madeOf{{s, s.changes.Load()}}
}

// madeOf is a stored operand of the expression that made a matrix, and how often its structure had changed by then.
type madeOf struct {
	of      *sparseCore
	changes uint32
}

// current refuses a matrix that an expression made, if the structure of an operand has changed since.
func (s *sparseCore) current(op string) error {
	for _, m := range s.made {
		if err := m.of.usable(op); err != nil {
			return err
		}
		if m.of.changes.Load() != m.changes {
			return fail(op, ErrSparse, "the structure changed after the expression was built")
		}
	}
	return nil
}

// Derived implements [expr.Entries].
func (e entries) Derived(list []int32) *node {
	return &node{Kind: expr.Leaf, Type: fuse.I32, Rows: 1, Cols: len(list), Dev: e.of.dev, Source: &numbers{e.of, list}}
}

// numbers is the Source of a list that the device has during evaluations alone.
type numbers struct {
	of   *sparseCore
	list []int32
}

// Current implements [exec.Source].
func (l *numbers) Current() (exec.Dense, error) { return integers(nil, 0), l.of.current("Assign") }

// List implements [exec.Lister].
func (l *numbers) List() []int32 { return l.list }

// integers are the first words of a buffer as a row of int32.
func integers(b *buffer.Buffer, count int) exec.Dense {
	d := words(b, 0, count)
	d.Type = fuse.I32
	return d
}

// The tables of a structure.
const (
	tableEntries = iota // the minor and the major of each entry, as expr.Entries.Places has them
	tableRows           // as expr.Entries.Rows has them
	tableCols           // the same of the transpose
	tableCount
)

// table is numbers of a structure on the device.
type table struct {
	changes, uploads, generation uint32 // of the structure, of what is sent again, and of the device, when it was made

	lists [4][]int32    // of a matrix that an expression makes: they are on the device during evaluations only
	parts [4]exec.Dense // of any other matrix
	own   []*buffer.Buffer
}

func (t *table) close() error {
	if t == nil {
		return nil
	}
	var err error
	for _, b := range t.own {
		err = firstError(err, b.Close())
	}
	return err
}

// tables are those of a matrix that were needed.
type tables struct{ all [tableCount]*table }

func (t *tables) close() error {
	var err error
	for _, one := range t.all {
		err = firstError(err, one.close())
	}
	return err
}

// table returns one of the tables, made anew if the structure changed.
func (s *sparseCore) table(kind int) (*table, error) {
	const op = "Assign"
	if err := firstError(s.ready(op), s.current(op)); err != nil {
		return nil, err
	}
	t := &table{changes: s.changes.Load(), uploads: s.uploads.Load(), generation: s.dev.Generation()}
	if old := s.tables.all[kind]; old != nil && old.changes == t.changes && old.uploads == t.uploads && old.generation == t.generation {
		return old, nil
	}
	p, err := s.pattern(op)
	if err != nil {
		return nil, err
	}
	if kind == tableEntries {
		err = s.listEntries(t, &p)
	} else {
		err = s.listRows(t, p, kind == tableCols)
	}
	if err != nil {
		return nil, named(op, firstError(err, t.close()))
	}
	old := s.tables.all[kind]
	s.tables.all[kind] = t
	return t, old.close()
}

// send makes part k of a table of a list.
func (s *sparseCore) send(t *table, k int, list []int32) error {
	if s.made != nil {
		t.lists[k] = list
		return nil
	}
	b, err := buffer.FromHost(s.dev, hostOf(list))
	if err != nil {
		return err
	}
	t.own, t.parts[k] = append(t.own, b), integers(b, len(list))
	return nil
}

// onDevice reports whether the structure is on the device as p has it.
func (s *sparseCore) onDevice() bool { return s.indices != nil && !s.view && s.format != BlockColumn }

// sendIndex makes part k of a table of the pattern's own indices.
func (s *sparseCore) sendIndex(t *table, k int, p *pattern.Pattern) error {
	if s.onDevice() {
		t.parts[k] = integers(s.indices, len(s.index))
		return nil
	}
	return s.send(t, k, p.Index)
}

func (s *sparseCore) listEntries(t *table, p *pattern.Pattern) error {
	return firstError(s.sendIndex(t, 0, p), s.send(t, 1, p.Majors()))
}

// listRows lists the rows of a pattern, or its columns.
func (s *sparseCore) listRows(t *table, p pattern.Pattern, cols bool) error {
	rows, own := p, true
	if p.ByRows == cols {
		q, places, err := p.Across("Assign")
		if err != nil {
			return err
		}
		if err := firstError(s.send(t, 0, q.Index), s.send(t, 2, places)); err != nil {
			return err
		}
		rows, own = q, false
	} else if err := s.sendIndex(t, 0, &p); err != nil {
		return err
	}
	ptr := rows.Ptr
	if chunk := kernels.Chunk(ptr); chunk > 0 {
		parts, sums := kernels.Cut(ptr, chunk)
		return firstError(s.send(t, 1, parts), s.send(t, 3, sums))
	}
	if own && s.onDevice() {
		t.parts[1] = integers(s.pointers, len(ptr))
		return nil
	}
	return s.send(t, 1, ptr)
}

// tablePart is the Source of a node of kind Words.
type tablePart struct {
	of       *sparseCore
	kind, at int
}

// Current implements [exec.Source]. What a table does not have is empty.
func (p tablePart) Current() (exec.Dense, error) {
	t, err := p.of.table(p.kind)
	if err != nil {
		return exec.Dense{}, err
	}
	d := t.parts[p.at]
	if d.Buf == nil {
		d = integers(nil, 0)
	}
	return d, nil
}

// List implements [exec.Lister].
func (p tablePart) List() []int32 {
	if p.of.made == nil {
		return nil
	}
	return p.of.tables.all[p.kind].lists[p.at]
}

// Refused implements [exec.Refusable].
func (p tablePart) Refused() { p.of.tear() }

func (s *sparseCore) words(kind, at int) *node {
	return &node{Kind: expr.Words, Type: fuse.I32, Rows: 1, Dev: s.dev, Source: tablePart{s, kind, at}}
}

// Places implements [expr.Entries].
func (e entries) Places() (rows, cols *node) {
	minors, majors := e.of.words(tableEntries, 0), e.of.words(tableEntries, 1)
	if (e.of.format == CSR) != e.turned {
		return majors, minors
	}
	return minors, majors
}

// Rows implements [expr.Entries].
func (e entries) Rows() []*node {
	kind := tableRows
	if e.turned {
		kind = tableCols
	}
	list := make([]*node, 4)
	for at := range list {
		list[at] = e.of.words(kind, at)
	}
	return list
}
