// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// commandSpec describes a command.
type commandSpec struct {
	run    func(b *Bridge, args []uint32) error
	words  int  // after the header
	expr   bool // an expression follows, or a list
	ticket bool // word `at` is a ticket; run settles it unless it returns an error
	fills  bool // word `at` is a handle that gets a matrix or, when run fails, an error
	heard  bool // word 0 is a ticket that hears of the end, of an error too, which stays with the handle all the same
	at     int
}

var commands [cmdEnd]commandSpec

func init() { // here, because the functions refer to the table
	commands = [cmdEnd]commandSpec{
		CmdNew:    {run: (*Bridge).newMatrix, words: 6, fills: true},
		CmdData:   {run: (*Bridge).data, words: 3},
		CmdFrom:   {run: (*Bridge).from, words: 1 + sourceWords, fills: true},
		CmdAlias:  {run: (*Bridge).alias, words: 2, fills: true},
		CmdEval:   {run: (*Bridge).eval, words: 1, expr: true, fills: true},
		CmdAssign: {run: (*Bridge).assign, words: 1, expr: true},
		CmdRead:   {run: (*Bridge).readValue, words: 3, expr: true, ticket: true},
		CmdSync:   {run: (*Bridge).sync, words: 2, ticket: true},
		CmdTouch:  {run: (*Bridge).touch, words: 1},
		CmdClose:  {run: (*Bridge).closeMatrix, words: 2, ticket: true, at: 1},
		CmdFunc:   {run: (*Bridge).newFunc, words: 2},
		CmdForget: {run: (*Bridge).forgetFunc, words: 1},
		CmdFlush:  {run: (*Bridge).flush},
		CmdWait:   {run: (*Bridge).wait, words: 1, ticket: true},
		CmdBuffer: {run: (*Bridge).buffer, words: 2, ticket: true},
		CmdEnd:    {run: (*Bridge).end},

		CmdSetValue: {run: (*Bridge).setValue, words: 3, expr: true, fills: true, heard: true, at: 1},
		CmdSetFrom:  {run: (*Bridge).setFrom, words: 3 + sourceWords, fills: true, heard: true, at: 1},
		CmdResize:   {run: (*Bridge).resize, words: 5, fills: true, heard: true, at: 1},
		CmdSetShape: {run: (*Bridge).setShape, words: 5, fills: true, heard: true, at: 1},
		CmdLocation: {run: (*Bridge).location, words: 2, ticket: true},

		CmdSparse:       {run: (*Bridge).newSparse, words: 10, fills: true},
		CmdColumns:      {run: (*Bridge).columns, words: 4, fills: true},
		CmdValues:       {run: (*Bridge).values, words: 2, fills: true},
		CmdAppend:       {run: (*Bridge).append, words: 4},
		CmdSparseEval:   {run: (*Bridge).sparseEval, words: 2, expr: true, fills: true},
		CmdSparseAssign: {run: (*Bridge).sparseAssign, words: 2, expr: true},
		CmdSparseRead:   {run: (*Bridge).readSparse, words: 8, ticket: true},
		CmdSparseTouch:  {run: (*Bridge).touchSparse, words: 5},

		CmdLoad:        {run: (*Bridge).load, words: 7, ticket: true},
		CmdSave:        {run: (*Bridge).save, words: 5, expr: true, ticket: true},
		CmdPass:        {run: (*Bridge).pass, words: 4, ticket: true},
		CmdTake:        {run: (*Bridge).take, words: 2, expr: true, ticket: true},
		CmdArrayRead:   {run: (*Bridge).readArray, words: 4, ticket: true},
		CmdArrayMatrix: {run: (*Bridge).arrayMatrix, words: 5, fills: true},

		CmdReopen: {run: (*Bridge).reopen, words: 2, ticket: true},
	}
}

func (b *Bridge) eval(a []uint32) error {
	x, err := b.program.run(a[1:])
	if err != nil {
		return err
	}
	m, err := x.Eval()
	return b.fill(a[0], m, err)
}

// assign evaluates into the matrix or view that is the value number a[0], the first leaf of the expression.
func (b *Bridge) assign(a []uint32) error {
	h, ok := firstLeaf(a[1:])
	if !ok {
		return invalid("an assignment to what is no matrix")
	}
	if _, err := b.matrix(h); err != nil {
		return err
	}
	return b.blame(h, b.assignValue(a[0], a[1:]))
}

func (b *Bridge) assignValue(to uint32, expr []uint32) error {
	m, x, err := b.target(to, expr)
	if err != nil {
		return err
	}
	return m.Assign(x)
}

// target decodes an expression of which the first leaf, or a part of it that is the value number `to`, is to be written.
func (b *Bridge) target(to uint32, expr []uint32) (*anyDense, anyExpr, error) {
	b.program.target = 1 // the first value
	x, err := b.program.run(expr)
	if err != nil {
		return nil, x, err
	}
	dst, err := b.program.value(to)
	if err != nil {
		return nil, x, err
	}
	m := dst.Matrix()
	if m == nil {
		return nil, x, invalid("an assignment to what is no matrix")
	}
	return m, x, nil
}

func (b *Bridge) sync(a []uint32) error {
	e, err := b.current(a[1])
	if err != nil {
		return err
	}
	held := *e
	b.background(a[0], func(ctx context.Context) error {
		err := held.sync(ctx)
		if err == nil && held.mirror != nil {
			b.page.Store(held.mirror.object, 0, held.mirror.bytes)
		}
		return err
	})
	return nil
}

func (b *Bridge) closeMatrix(a []uint32) error {
	var err error
	if uint64(a[0]) < uint64(len(b.matrices)) {
		e := &b.matrices[a[0]]
		err = e.close()
		b.drop(e.mirror, e.indices, e.pointers)
		*e = entry{}
	}
	if err == nil {
		b.settle(a[1], nil, nil)
	}
	return err
}

func (b *Bridge) newFunc(a []uint32) error {
	text := b.page.Text(a[1])
	if a[0] >= maxHandle {
		return fault.Fail("bridge", fault.ErrLimit, "more than "+itoa(maxHandle)+" functions")
	}
	for uint64(a[0]) >= uint64(len(b.funcs)) {
		b.funcs = append(b.funcs, make([]*matrix.Func, max(16, len(b.funcs)))...)
	}
	b.funcs[a[0]] = matrix.NewFunc(text) // its error comes when it is used
	return nil
}

func (b *Bridge) forgetFunc(a []uint32) error {
	if uint64(a[0]) < uint64(len(b.funcs)) {
		b.funcs[a[0]] = nil
	}
	return nil
}

func (b *Bridge) flush([]uint32) error { return b.dev.Flush() }

func (b *Bridge) wait(a []uint32) error {
	b.mu.Lock()
	f := b.failure
	b.failure = nil
	b.mu.Unlock()
	b.background(a[0], func(ctx context.Context) error {
		if err := b.dev.Sync(ctx); f == nil {
			return err
		}
		return f
	})
	return nil
}

// buffer reports a matrix's GPUBuffer. What was queued goes ahead, so that the caller finds its results in there.
func (b *Bridge) buffer(a []uint32) error {
	e, err := b.current(a[1])
	if err != nil {
		return err
	}
	m, err := e.dense()
	if err != nil {
		return err
	}
	mem, err := m.Buffer().Readable()
	if err != nil {
		return err
	}
	if err := b.dev.Flush(); err != nil {
		return err
	}
	handle := mem.Handle()
	if handle == nil || !b.reaches() {
		return fault.Fail("bridge", fault.ErrUnsupported, "this device has no GPUBuffers")
	}
	b.settle(a[0], handle, nil)
	return nil
}

// reopen brings a lost device back and reports its handle. Others need not wait for it: what they do meanwhile fails as before.
func (b *Bridge) reopen(a []uint32) error {
	var opts []gpu.Option
	if a[1] != 0 {
		opts = append(opts, gpu.WithDevice(b.page.Object(a[1])))
	}
	b.answer(a[0], func(ctx context.Context) (any, error) {
		err := b.dev.Reopen(ctx, opts...)
		return b.dev.Handle(), err
	})
	return nil
}

func (b *Bridge) end([]uint32) error {
	b.ended = true
	for _, e := range b.matrices {
		if e.flow != nil {
			e.flow.close()
		}
	}
	return b.dev.Close()
}

// readValue copies the value of an expression to the page. A matrix is read where it lies, unless its elements are not
// one after the other.
func (b *Bridge) readValue(a []uint32) error {
	object := b.page.Object(a[1])
	x, err := b.program.run(a[3:])
	if err != nil {
		return err
	}
	rows, cols := x.Dims()
	element := x.DType().Size()
	size := rows * cols * element
	if int64(a[2]) < int64(size) {
		return fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(a[2])), " bytes for ", gpu.Shape{rows, cols}.String())
	}
	if size == 0 {
		b.settle(a[0], nil, nil)
		return nil
	}
	m, err := b.program.rows(x)
	if err != nil {
		return err
	}
	return b.readBuffer(a[0], m.Buffer(), m.Offset()*element, size, object, a[2])
}

// readBuffer copies bytes of a buffer to the page. The memory is read without the buffer, which would keep everybody else
// from it meanwhile. What is queued here comes before whatever happens to the buffer later.
func (b *Bridge) readBuffer(ticket uint32, buf *buffer.Buffer, offset, size int, object any, room uint32) error {
	mem, err := buf.Readable()
	if err != nil {
		return err
	}
	wait, err := b.read(mem, uint64(offset), object, room, size)
	if err != nil {
		return err
	}
	b.background(ticket, wait)
	return nil
}
