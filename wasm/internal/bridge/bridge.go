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
// Tensors and the layers of package nn are instructions as well ([OpTensor], [OpLayer]). What of package nn has state, optimisers and the
// training of batch normalisation, is a command of its own ([page.CmdLayer]).
//
// Parameter dictionaries are loaded and saved by goroutines of their own, to which the page passes memory piece by piece
// ([page.CmdPass]). A file is a handle as well: to close it is to give it up.
package bridge

import (
	"context"
	"slices"
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
	b.Keep, b.After = b.keep, b.program.release
	if gpu.RunsSIMD && dev.Handle() == nil {
		b.Idle = dev.Idle
	}
	b.Sent = dev.Sent
	b.program.bridge = b
	return b
}

// Serve makes a session of a bridge. The program's main package calls this and not New, so that it knows no type of package matrix: the
// compiler would have all methods of generic types once more in it.
func Serve(dev *gpu.Device, p page.Page) *page.Session { return New(dev, p).Session }

// Matrices of a page have their element types at run time.
type (
	anyDense  = matrix.Dense[matrix.Any]
	anyExpr   = *matrix.Expr[matrix.Any]
	anySparse = matrix.Sparse[matrix.Any]
	anyArg    = matrix.Operand[matrix.Any]
)

// entry is what a handle stands for.
type entry struct {
	// value is a dense or a sparse matrix, an array, of which only JavaScript knows more than its memory, a file on its way, an optimiser or
	// a recording.
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
	e.check()
	return e
}

// check stops if the last assignment failed and nobody was told.
func (e *entry) check() {
	if e.err != nil && !e.err.Told() {
		page.Check(e.err)
	}
	e.err = nil
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

// commands says what executes each command. Where an expression or a list follows there are More words.
var commands = []page.Spec[*Bridge]{
	page.CmdNew:    {Run: (*Bridge).newMatrix, Words: 6, Flags: page.More | page.Fills},
	page.CmdData:   {Run: (*Bridge).data, Words: 3},
	page.CmdFrom:   {Run: (*Bridge).from, Words: 1 + sourceWords, Flags: page.Fills},
	page.CmdAlias:  {Run: (*Bridge).alias, Words: 2, Flags: page.Fills},
	page.CmdEval:   {Run: (*Bridge).eval, Words: 1, Flags: page.More | page.Fills},
	page.CmdAssign: {Run: (*Bridge).assign, Words: 1, Flags: page.More},
	page.CmdRead:   {Run: (*Bridge).readValue, Words: 3, Flags: page.More | page.Ticket},
	page.CmdSync:   {Run: (*Bridge).sync, Words: 2, Flags: page.Ticket},
	page.CmdTouch:  {Run: func(b *Bridge, a []uint32) { page.Check(b.matrix(a[0]).Touch()) }, Words: 1},
	page.CmdClose:  {Run: (*Bridge).closeMatrix, Words: 2, Flags: page.Ticket},
	page.CmdFunc: { // whose error comes when it is used
		Run: func(b *Bridge, a []uint32) { b.funcs[a[0]] = matrix.NewFunc(b.Text(a[1])) }, Words: 2,
	},
	page.CmdForget: {Run: func(b *Bridge, a []uint32) { delete(b.funcs, a[0]) }, Words: 1},
	page.CmdFlush:  {Run: func(b *Bridge, _ []uint32) { page.Check(b.dev.Flush()) }},
	page.CmdWait:   {Run: (*Bridge).wait, Words: 1, Flags: page.Ticket},
	page.CmdBuffer: {Run: (*Bridge).buffer, Words: 2, Flags: page.Ticket},
	page.CmdEnd:    {Run: (*Bridge).end},

	page.CmdSetValue: {Run: (*Bridge).setValue, Words: 3, Flags: page.More | page.Ticket | page.Fills},
	page.CmdSetFrom:  {Run: (*Bridge).setFrom, Words: 3 + sourceWords, Flags: page.Ticket | page.Fills},
	page.CmdResize:   {Run: (*Bridge).resize, Words: 5, Flags: page.Ticket | page.Fills},
	page.CmdSetShape: {Run: (*Bridge).setShape, Words: 5, Flags: page.Ticket | page.Fills},
	page.CmdLocation: {Run: (*Bridge).location, Words: 2, Flags: page.Ticket},

	page.CmdSparse:      {Run: (*Bridge).newSparse, Words: 10, Flags: page.Fills},
	page.CmdColumns:     {Run: (*Bridge).columns, Words: 4, Flags: page.Fills},
	page.CmdValues:      {Run: (*Bridge).values, Words: 2, Flags: page.Fills},
	page.CmdAppend:      {Run: (*Bridge).append, Words: 4},
	page.CmdSparseEval:  {Run: (*Bridge).sparseEval, Words: 4, Flags: page.More | page.Ticket},
	page.CmdSparseRead:  {Run: (*Bridge).readSparse, Words: 8, Flags: page.Ticket},
	page.CmdSparseTouch: {Run: (*Bridge).touchSparse, Words: 5},

	page.CmdLoad:        {Run: (*Bridge).load, Words: 7, Flags: page.Ticket},
	page.CmdSave:        {Run: (*Bridge).save, Words: 5, Flags: page.More | page.Ticket},
	page.CmdPass:        {Run: (*Bridge).pass, Words: 4, Flags: page.Ticket},
	page.CmdTake:        {Run: (*Bridge).take, Words: 2, Flags: page.More | page.Ticket},
	page.CmdArrayRead:   {Run: (*Bridge).readArray, Words: 4, Flags: page.Ticket},
	page.CmdArrayMatrix: {Run: (*Bridge).arrayMatrix, Words: 5, Flags: page.Fills},

	page.CmdReopen: {Run: (*Bridge).reopen, Words: 2, Flags: page.Ticket},

	page.CmdLayer: {Run: (*Bridge).layer, Words: 16, Flags: page.More},

	page.CmdRecord: {Run: (*Bridge).record, Words: 2, Flags: page.More | page.Ticket},
	page.CmdReplay: {Run: (*Bridge).replay, Words: 1},

	page.CmdExplain: {Run: (*Bridge).explain, Words: 1, Flags: page.More | page.Ticket},

	page.CmdTuning: {Run: (*Bridge).tuning, Words: 1, Flags: page.Ticket},
	page.CmdTime:   {Later: (*Bridge).time},
	page.CmdTuned:  {Run: (*Bridge).tuned, Words: 2, Flags: page.Ticket},
}

// explain reports the plan of an expression: its text, the number of temporaries and their bytes, and for each launch a list of the
// kernel, three numbers of workgroups, rows, columns, element type, bytes read and written, and WGSL.
func (b *Bridge) explain(a []uint32) {
	p := page.Must(b.program.run(a[1:]).On(b.dev).Explain(context.Background())) // which waits for nothing that takes long
	launches := make([]any, len(p.Launches))
	for i, l := range p.Launches {
		launches[i] = []any{
			l.Kernel, l.Groups[0], l.Groups[1], l.Groups[2], l.Rows, l.Cols, l.DType.String(), l.BytesRead, l.BytesWritten, l.WGSL,
		}
	}
	b.Settle(a[0], []any{p.String(), p.Temporaries, p.TemporaryBytes, launches}, nil)
}

// fill gives a handle a matrix with elements. If the handle has one, which the page has closed, run gets it, and may return it with these
// elements: it has their size and form. Else it is closed.
func (b *Bridge) fill(handle uint32, run func(spare *anyDense) *anyDense) {
	e := b.entries[handle]
	delete(b.entries, handle)
	var spare, made *anyDense
	if e != nil && e.value != nil {
		defer func() {
			if spare == nil || made != spare {
				_ = e.value.Close()
			}
		}()
		spare = as[*anyDense](e)
	}
	made = run(spare)
	b.put(handle, &entry{value: made})
}

// eval makes a matrix of an expression.
func (b *Bridge) eval(a []uint32) {
	b.fill(a[0], func(spare *anyDense) *anyDense {
		x := b.program.run(a[1:])
		if spare != nil && spare.Assign(x) == nil {
			return spare
		}
		return b.evaluated(x)
	})
}

// evaluated is the value of an expression, on the page's device where it has no matrices.
func (b *Bridge) evaluated(x anyExpr) *anyDense { return page.Must(x.On(b.dev).Eval()) }

// assign evaluates into the matrix or view that is the value number a[0], the first leaf of the expression.
func (b *Bridge) assign(a []uint32) {
	b.write(b.firstLeaf(a[1:]), func() {
		m, x := b.target(a[0], a[1:])
		rows, cols := x.Dims()
		sized(m, rows, cols)
		page.Check(m.Assign(x))
	})
}

// firstLeaf returns the handle of the matrix that an expression begins with.
func (b *Bridge) firstLeaf(expr []uint32) (handle uint32) {
	if len(expr) < 2 || Op(expr[0]) != OpLeaf || expr[0]>>16 != 2 {
		page.Invalid("an assignment to what is no matrix")
	}
	b.program.push(b.matrix(expr[1]).Expr()) // which may be what it was before an assignment that failed
	return expr[1]
}

// target decodes what follows the first leaf of an expression. That, or a part of it that is the value number `to`, is to be written.
func (b *Bridge) target(to uint32, expr []uint32) (*anyDense, anyExpr) {
	x := b.program.run(expr[2:])
	m := b.program.value(to).Matrix()
	if m == nil {
		page.Invalid("an assignment to what is no matrix")
	}
	return m, x
}

func (b *Bridge) sync(a []uint32) {
	m := as[interface{ Sync(context.Context) error }](b.current(a[1])) // dense or sparse
	b.Queue(a[0], func(ctx context.Context) (any, error) { return nil, m.Sync(ctx) })
}

func (b *Bridge) closeMatrix(a []uint32) {
	e := b.entries[a[1]]
	delete(b.entries, a[1])
	if e != nil && e.value != nil {
		page.Check(e.value.Close())
	}
	b.Settle(a[0], nil, nil)
}

func (b *Bridge) wait(a []uint32) {
	f := b.Untold()
	b.Queue(a[0], func(ctx context.Context) (any, error) {
		if err := b.dev.Sync(ctx); f == nil {
			return nil, err
		}
		return nil, f
	})
}

// buffer reports a matrix's GPUBuffer. What was queued goes ahead, so that the caller finds its results in there.
func (b *Bridge) buffer(a []uint32) {
	handle, _, err := as[*anyDense](b.current(a[1])).Handle(context.Background())
	page.Check(err)
	b.Settle(a[0], handle, nil)
}

// reopen brings a lost device back and reports its handle. Others need not wait for it: what they do meanwhile fails as before.
func (b *Bridge) reopen(a []uint32) {
	var opts []gpu.Option
	if a[1] != 0 {
		opts = append(opts, gpu.WithDevice(b.Object(a[1])))
	}
	b.Queue(a[0], func(ctx context.Context) (any, error) {
		err := b.dev.Reopen(ctx, opts...)
		return b.dev.Handle(), err
	})
}

func (b *Bridge) end([]uint32) {
	defer b.End()
	for _, e := range b.entries {
		if f, ok := e.value.(*flow); ok {
			_ = f.Close()
		}
	}
	page.Check(b.dev.Close())
}

// readValue copies the value of an expression to the page. A matrix is read where it lies, unless its elements are not
// one after the other.
func (b *Bridge) readValue(a []uint32) {
	object := b.Object(a[1])
	m := b.program.rows(b.program.run(a[3:]))
	rows, cols := m.Dims()
	element := m.DType().Size()
	b.read(a[0], m.Buffer(), m.Offset()*element, rows*cols*element, object, a[2], slices.Clone(b.program.systems))
}
