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

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// Bridge executes messages on a device.
type Bridge struct {
	*page.Session
	dev *gpu.Device

	// Of the goroutine that executes.
	matrices []entry
	funcs    []*matrix.Func
	program  program
}

// New makes a bridge. The device becomes its own.
func New(dev *gpu.Device, p page.Page) *Bridge {
	b := &Bridge{dev: dev}
	b.Session = page.New(p, b, commands)
	b.Keep, b.After, b.Alone = b.keep, b.program.release, dev.Handle() == nil
	b.program.bridge = b
	return b
}

// entry is what a handle stands for: a dense or a sparse matrix, an array, or a file on its way. With err set it stands for
// nothing.
type entry struct {
	m    *anyDense
	s    *anySparse
	a    *buffer.Buffer // of an array, of which only JavaScript knows more
	flow *flow
	err  *page.Failure // why there is no matrix
	late *page.Failure // why the last assignment failed; in force until somebody was told

	indices, pointers []int32 // copies of the structure of a wrapped sparse matrix
}

func (e *entry) empty() bool { return e.m == nil && e.s == nil && e.a == nil && e.flow == nil }

// dense returns the dense matrix that the handle stands for.
func (e *entry) dense() *anyDense {
	if e.m == nil {
		page.Invalid("something else in place of a dense matrix")
	}
	return e.m
}

func (e *entry) close() error {
	switch {
	case e.s != nil:
		return e.s.Close()
	case e.m != nil:
		return e.m.Close()
	case e.flow != nil:
		e.flow.close()
	}
	return e.a.Close() // of none too
}

// keep leaves an error with a handle that stands for nothing.
func (b *Bridge) keep(handle uint32, f *page.Failure) {
	if handle < maxHandle && b.slot(handle).empty() {
		b.slot(handle).err = f
	}
}

// write runs what writes to a matrix, and leaves the outcome with its handle.
func (b *Bridge) write(handle uint32, run func()) {
	err := page.Guard(run)
	e := &b.matrices[handle]
	e.late = nil
	if err != nil {
		e.late = b.Note(err)
		page.Check(e.late)
	}
}

// Limits of what JavaScript may send.
const (
	maxHandle = 1 << 22 // matrices, and functions, at a time
	maxValues = 1 << 16 // of one expression
)

// slot returns the entry of a handle, making room for it.
func (b *Bridge) slot(handle uint32) *entry {
	if handle >= maxHandle {
		page.Check(fault.Fail("bridge", fault.ErrLimit, "more than "+itoa(maxHandle)+" matrices"))
	}
	for uint64(handle) >= uint64(len(b.matrices)) {
		b.matrices = append(b.matrices, make([]entry, max(64, len(b.matrices)))...)
	}
	return &b.matrices[handle]
}

// entry returns what a handle stands for, whatever became of the last assignment to it.
func (b *Bridge) entry(handle uint32) *entry {
	if uint64(handle) >= uint64(len(b.matrices)) || b.matrices[handle].err == nil && b.matrices[handle].empty() {
		page.Invalid("no matrix " + itoa(int(handle)))
	}
	e := &b.matrices[handle]
	if e.err != nil {
		page.Check(e.err)
	}
	return e
}

// matrix returns the dense matrix of a handle, whatever became of the last assignment to it.
func (b *Bridge) matrix(handle uint32) *anyDense { return b.entry(handle).dense() }

// current returns what a handle stands for to somebody who wants the elements. If they are not what they should be because
// the last assignment failed, nobody may miss that.
func (b *Bridge) current(handle uint32) *entry {
	e := b.entry(handle)
	if e.late != nil && !e.late.Told() {
		page.Check(e.late)
	}
	e.late = nil
	return e
}

// vacant returns the entry of a handle that stands for nothing yet.
func (b *Bridge) vacant(handle uint32) *entry {
	e := b.slot(handle)
	if !e.empty() || e.err != nil {
		page.Invalid("matrix " + itoa(int(handle)) + " exists")
	}
	return e
}

// put gives a handle what it stands for.
func (b *Bridge) put(handle uint32, made entry) {
	if err := page.Guard(func() { *b.vacant(handle) = made }); err != nil {
		_ = made.close()
		page.Check(err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
