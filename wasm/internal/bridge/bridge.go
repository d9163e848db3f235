// SPDX-License-Identifier: Apache-2.0

// Package bridge lets the npm package in web/ use package matrix, over the protocol of package page.
//
// JavaScript builds expressions by itself and checks their shapes. To evaluate one it sends the whole of it: a sequence of
// instructions in which each makes one value, numbered from 0, out of earlier ones. An instruction is a header word,
// length << 16 | element type << 8 | [Op], and the words named there. The last value is the expression's.
//
// What gives a matrix another size or other memory makes a new handle of the old one. If it fails the new handle has the
// error, for whoever was quick to use it, and the old one has the matrix, as it was. The page hears of it and goes on with
// the right one.
//
// Parameter dictionaries are loaded and saved by goroutines of their own, to which the page passes memory piece by piece
// ([page.CmdPass]). A file is a handle as well: to close it is to give it up.
package bridge

import (
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// Bridge executes messages on a device.
type Bridge struct {
	*page.Session
	dev *gpu.Device

	// Of the goroutine that executes.
	entries map[uint32]*entry
	funcs   map[uint32]*matrix.Func
	program program
}

// New makes a bridge. The device becomes its own.
func New(dev *gpu.Device, p page.Page) *Bridge {
	b := &Bridge{dev: dev, entries: map[uint32]*entry{}, funcs: map[uint32]*matrix.Func{}}
	b.Session = page.New(p, b, commands)
	b.Keep, b.After, b.Alone = b.keep, b.program.release, dev.Handle() == nil
	b.program.bridge = b
	return b
}

// Matrices of a page have their element types at run time.
type (
	anyDense  = matrix.Dense[matrix.Any]
	anyExpr   = *matrix.Expr[matrix.Any]
	anySparse = matrix.Sparse[matrix.Any]
	anyArg    = matrix.Operand[matrix.Any]
)

// entry is what a handle stands for.
type entry struct {
	// value is a dense or a sparse matrix, an array, of which only JavaScript knows more than its memory, or a file on its way.
	value interface{ Close() error }
	err   *page.Failure // why there is no value, or why the last assignment failed, in force until somebody was told

	indices, pointers []int32 // copies of the structure of a wrapped sparse matrix
}

// as returns an entry's value, which has to be of that type.
func as[T any](e *entry) T {
	v, ok := e.value.(T)
	if !ok {
		page.Invalid("a handle of something else")
	}
	return v
}

// keep leaves an error with a handle that stands for nothing.
func (b *Bridge) keep(handle uint32, f *page.Failure) {
	if e := b.entries[handle]; e == nil || e.value == nil {
		b.entries[handle] = &entry{err: f}
	}
}

// write runs what writes to a matrix, and leaves the outcome with its handle.
func (b *Bridge) write(handle uint32, run func()) {
	err := page.Guard(run)
	e := b.entries[handle]
	e.err = nil
	if err != nil {
		e.err = b.Note(err)
		page.Check(e.err)
	}
}

// entry returns what a handle stands for, whatever became of the last assignment to it.
func (b *Bridge) entry(handle uint32) *entry {
	e := b.entries[handle]
	if e == nil {
		page.Invalid("no matrix " + itoa(int(handle)))
	}
	if e.value == nil {
		page.Check(e.err)
	}
	return e
}

// matrix returns the dense matrix of a handle, whatever became of the last assignment to it.
func (b *Bridge) matrix(handle uint32) *anyDense { return as[*anyDense](b.entry(handle)) }

// current returns what a handle stands for to somebody who wants the elements. If they are not what they should be because
// the last assignment failed, nobody may miss that.
func (b *Bridge) current(handle uint32) *entry {
	e := b.entry(handle)
	if e.err != nil && !e.err.Told() {
		page.Check(e.err)
	}
	e.err = nil
	return e
}

// vacant stops unless a handle stands for nothing yet.
func (b *Bridge) vacant(handle uint32) {
	if b.entries[handle] != nil {
		page.Invalid("matrix " + itoa(int(handle)) + " exists")
	}
}

// put gives a handle what it stands for.
func (b *Bridge) put(handle uint32, made *entry) {
	if b.entries[handle] != nil {
		_ = made.value.Close()
	}
	b.vacant(handle)
	b.entries[handle] = made
}

// decoded is the number with the bits: of a float32 for float16.
func decoded(t matrix.DType, bits uint32) matrix.Any { return matrix.Any(t.Compute().Load(bits)) }

func itoa(n int) string { return strconv.Itoa(n) }
