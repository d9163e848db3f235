// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// store is memory as it should be: the cells that matrices lie in. Several wraps of one slice share it, on several devices.
type store[T matrix.Elem] struct {
	cells []int64
	host  []T // the caller's, if the memory is wrapped
}

// root is what matrices share that were derived from one another.
type root struct {
	shares   int
	releases int32 // how often the memory is to be released
	released atomic.Int32
	free     func() // after the last share is closed
	made     string
}

// handle is a matrix and where its elements are.
type handle[T matrix.Elem] struct {
	m          *matrix.Dense[T]
	s          *store[T]
	root       *root
	dev        *device
	rows, cols int
	off        int
	dr, dc     int // the distances of rows and columns
	view       bool
	fixed      bool // of memory that is not the library's, or mapped: assignments keep the size
	wrapped    bool
	gaps       bool // between its rows
}

func (h *handle[T]) cell(i, j int) *int64 { return &h.s.cells[h.off+i*h.dr+j*h.dc] }

// values returns the elements row by row.
func (h *handle[T]) values() []int64 {
	v := make([]int64, 0, h.rows*h.cols)
	for i := range h.rows {
		for j := range h.cols {
			v = append(v, *h.cell(i, j))
		}
	}
	return v
}

func (h *handle[T]) set(v []int64) {
	for i := range h.rows {
		for j := range h.cols {
			*h.cell(i, j) = v[i*h.cols+j]
		}
	}
}

// sole reports whether the matrix may get another size.
func (h *handle[T]) sole() bool { return !h.view && !h.wrapped && h.root.shares == 1 }

func (h *handle[T]) String() string {
	return fmt.Sprintf("%dx%d at %d by %d,%d on %s (view %v, wrapped %v)", h.rows, h.cols, h.off, h.dr, h.dc, h.dev.name, h.view, h.wrapped)
}

// kind is the matrices of one element type that a player has.
type kind[T matrix.Elem] struct {
	*player
	n       *number[T]
	handles []*handle[T]
	gone    map[*root]bool
	un      func(s int64) []oneOf[T]
	bi      []twoOf[T]
	fold    []fold[T]
	others  []func() string // what not all types have
	re      []real[T]
}

const mostHandles = 24

func newKind[T matrix.Elem](p *player, n *number[T]) *kind[T] {
	return &kind[T]{
		player: p, n: n, bi: binaries[T](), fold: folds[T](), re: reals[T](), gone: map[*root]bool{},
		un: func(s int64) []oneOf[T] { return unaries(n, s) },
	}
}

// fresh returns small numbers.
func (k *kind[T]) fresh(n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(k.intn(9))
		if !k.n.unsigned {
			v[i] -= 4
		}
		if k.n.limit == 0 && k.chance(20) {
			v[i] = k.n.norm(int64(k.rng.Uint32()))
		}
	}
	return v
}

func (k *kind[T]) size() int {
	if k.chance(25) {
		return 60 + k.intn(80)
	}
	return 1 + k.intn(20)
}

// act makes a step.
func (k *kind[T]) act() string {
	what := k.step()
	return k.n.name + ": " + what
}

func (k *kind[T]) step() string {
	if len(k.handles) < 4 || len(k.handles) < mostHandles && k.chance(6) {
		return k.create()
	}
	if len(k.handles) >= mostHandles {
		return k.closeOne()
	}
	h := pick(k.player, k.handles)
	switch k.intn(16) {
	case 0, 1, 2:
		return k.assign(h)
	case 3, 4:
		return k.derive(h)
	case 5:
		return k.write(h)
	case 6:
		return k.read(h)
	case 7:
		return k.sync(h)
	case 8:
		return k.resize(h)
	case 9:
		return k.move(h)
	case 10:
		return k.refuse(h)
	case 11:
		return k.compute(h)
	case 12:
		return k.closeOne()
	case 13:
		return k.array(h)
	case 14:
		return k.setValue(h)
	default:
		return pick(k.player, k.others)()
	}
}

func (k *kind[T]) adopt(h *handle[T]) {
	k.handles = append(k.handles, h)
	if h.root.shares++; h.root.made == "" {
		h.root.made = fmt.Sprintf("made in step %d: %v", k.steps, h)
	}
}

// own makes the handle of a matrix in memory of its own, whose model has no gaps.
func (k *kind[T]) own(m *matrix.Dense[T], dev *device, rows, cols int, v []int64) *handle[T] {
	h := &handle[T]{m: m, dev: dev, rows: rows, cols: cols, s: &store[T]{cells: make([]int64, rows*cols)}, root: new(root)}
	h.compact()
	if v != nil {
		h.set(v)
	}
	return h
}

// compact says that the elements lie one after the other, from the first cell on.
func (h *handle[T]) compact() {
	h.off, h.dr, h.dc, h.gaps = 0, h.cols, 1, false
	if h.m.ColMajor() {
		h.dr, h.dc = 1, h.rows
	}
}

// closeOne closes any of the matrices. Before the last wrap of memory goes its results have to come back.
func (k *kind[T]) closeOne() string {
	i := k.intn(len(k.handles))
	h := k.handles[i]
	k.note("close %v", h)
	k.drop(i, true)
	return fmt.Sprintf("closed %v", h)
}

// drop closes a matrix.
func (k *kind[T]) drop(i int, sync bool) {
	h := k.handles[i]
	if h.wrapped && sync {
		k.must(h.m.Sync(k.ctx))
		k.onHost(h)
	}
	k.must(errors.Join(h.m.Close(), h.m.Close()))
	k.handles = slices.Delete(k.handles, i, i+1)
	k.unshare(h.root)
	k.refused("a closed matrix", h.m.Fill(k.n.to(1)), gpu.ErrClosed)
}

func (k *kind[T]) unshare(r *root) {
	if r.shares--; r.shares == 0 {
		k.roots = append(k.roots, r) // views in expressions keep the memory until they are collected
		if r.free != nil {
			r.free()
		}
	}
}

// onHost fails unless wrapped memory has the elements.
func (k *kind[T]) onHost(h *handle[T]) {
	if h.s.host == nil {
		return
	}
	for i := range h.rows {
		for j := range h.cols {
			at := h.off + i*h.dr + j*h.dc
			if got := k.n.from(h.s.host[at]); got != h.s.cells[at] {
				k.fail("%v: cell %d on the host is %d, want %d", h, at, got, h.s.cells[at])
			}
		}
	}
}

// same fails unless a matrix has its elements. A limited device may refuse to tell.
func (k *kind[T]) same(h *handle[T]) {
	got, err := h.m.Read(k.ctx)
	if !k.ok(h.dev, err) {
		return
	}
	k.equal(h.String(), got, h.values())
}

func (k *kind[T]) equal(what string, got []T, want []int64) {
	if len(got) != len(want) {
		k.fail("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if g := k.n.from(got[i]); g != w {
			k.fail("%s: element %d of %d is %v, want %d", what, i, len(want), got[i], w)
		}
	}
}

func (k *kind[T]) check() {
	for _, h := range k.handles {
		if r, c := h.m.Dims(); r != h.rows || c != h.cols || h.m.Err() != nil {
			k.fail("%v: %dx%d, %v", h, r, c, h.m.Err())
		}
		k.same(h)
	}
}

func (k *kind[T]) close() {
	for len(k.handles) > 0 {
		k.drop(k.intn(len(k.handles)), true)
	}
}

// survive checks what is left when a lost device is back: what the host has is there, the rest says so until it is replaced. Many
// results of matrices with gaps are noted as one of everything between them, so that memory beside those that there are may stay
// lost: then it is not used any more.
func (k *kind[T]) survive(dev *device) {
	for i := 0; i < len(k.handles); i++ {
		h := k.handles[i]
		if h.dev != dev && h.s.host == nil {
			continue
		}
		got, err := h.m.Read(k.ctx)
		lost := errors.Is(err, gpu.ErrDeviceLost)
		if err == nil {
			k.equal(fmt.Sprintf("after the loss: %v", h), got, h.values())
			if h.s.host == nil || k.covered(h.s) || !errors.Is(h.m.Assign(matrix.AddScalar(h.m, k.n.to(0))), gpu.ErrDeviceLost) {
				continue
			}
		} else if !lost {
			k.ok(h.dev, err)
			continue
		}
		switch {
		case h.s.host != nil && k.covered(h.s):
			k.touch(h.s)
		case h.sole() && k.chance(2) && k.renew(h):
		default:
			k.discard(h.s)
		}
		i = -1
	}
}

// renew replaces what was lost.
func (k *kind[T]) renew(h *handle[T]) bool {
	h.set(k.fresh(h.rows * h.cols))
	k.note("replace %v, %d of %d bytes", h, h.rows*h.cols, h.m.Buffer().Size())
	if !k.ok(h.dev, h.m.SetSlice(k.n.slice(h.values()))) {
		return false
	}
	k.same(h)
	return true
}

// covered reports whether matrices have all of some memory.
func (k *kind[T]) covered(s *store[T]) bool {
	covered := make([]bool, len(s.cells))
	for _, h := range k.handles {
		for i := 0; h.s == s && i < h.rows; i++ {
			for j := range h.cols {
				covered[h.off+i*h.dr+j*h.dc] = true
			}
		}
	}
	return !slices.Contains(covered, false)
}

// touch says that the host has what counts.
func (k *kind[T]) touch(s *store[T]) {
	for _, h := range k.handles {
		if h.s == s {
			k.note("touch %v", h)
			k.must(h.m.Touch())
		}
	}
	s.cells = k.n.model(s.host)
	for _, h := range k.handles {
		if h.s == s {
			k.same(h)
		}
	}
}

// discard closes all matrices of some memory.
func (k *kind[T]) discard(s *store[T]) {
	for i, h := range slices.Backward(k.handles) {
		if h.s == s {
			k.drop(i, false)
		}
	}
}
