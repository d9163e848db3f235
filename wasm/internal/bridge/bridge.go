// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"runtime"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Page is the JavaScript side.
type Page interface {
	// Object returns what the page keeps under the number, once: memory, as in the Foreign field of a [gpu.Host], or a
	// GPUBuffer.
	Object(number uint32) any
	// Load and Store copy memory of the page's, from byte at on, to and from Go's. Load returns how many bytes there were.
	Load(object any, at int, into []byte) int
	Store(object any, at int, from []byte)
	// Text is Object for a string.
	Text(number uint32) string
	// Settle reports the end of the command with the ticket. A value of bytes is copied. It may be called from any goroutine.
	Settle(ticket uint32, value any, err error)
}

// Bridge executes messages on a device.
type Bridge struct {
	dev     *gpu.Device
	page    Page
	wake    chan struct{}
	waiting sync.WaitGroup // goroutines that will call Settle

	mu      sync.Mutex
	queue   [][]uint32
	spare   [][]uint32 // memory of finished messages, for reuse
	open    int        // messages that are not finished
	asked   int        // goroutines of this program that are at work on something for the page
	copied  uint64     // bytes of mirrors
	failure *failure   // the first error that nobody was told

	// Of the goroutine that executes.
	ended    bool
	matrices []entry
	funcs    []*matrix.Func
	program  program
}

// entry is what a handle stands for: a dense or a sparse matrix, an array, or a file on its way. With err set it stands for
// nothing.
type entry struct {
	m      *anyDense
	s      *anySparse
	a      *buffer.Buffer // of an array, of which only JavaScript knows more
	flow   *flow
	mirror *mirror  // of wrapped memory that the device does not reach
	err    *failure // why there is no matrix
	late   *failure // why the last assignment failed; in force until somebody was told

	indices, pointers *mirror // of a wrapped sparse matrix
}

func (e *entry) empty() bool { return e.m == nil && e.s == nil && e.a == nil && e.flow == nil }

// dense returns the dense matrix that the handle stands for.
func (e *entry) dense() (*anyDense, error) {
	if e.m == nil {
		return nil, invalid("something else in place of a dense matrix")
	}
	return e.m, nil
}

func (e *entry) sync(ctx context.Context) error {
	if e.s != nil {
		return e.s.Sync(ctx)
	}
	m, err := e.dense()
	if err != nil {
		return err
	}
	return m.Sync(ctx)
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

// failure is an error of a command without ticket.
type failure struct {
	err  error
	told bool // guarded by Bridge.mu
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// New makes a bridge. The device becomes its own.
func New(dev *gpu.Device, page Page) *Bridge {
	b := &Bridge{dev: dev, page: page, wake: make(chan struct{}, 1)}
	b.program.bridge = b
	return b
}

// patience is how often Post lets other goroutines run. One would do, did the garbage collector not run now and then.
const patience = 3

// Post queues a message, which is copied, and lets [Bridge.Run] execute it as far as possible without waiting. It returns
// how many messages are not finished, and how many goroutines are at work of whom no event of the page's may wake: the oracle's,
// and those of files that are loaded and saved. It never waits itself, so it may be called where JavaScript expects an answer at
// once: something else always can run, namely Post.
func (b *Bridge) Post(message []uint32) (unfinished int) {
	b.push(message)
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
	for range patience {
		runtime.Gosched()
		if unfinished = b.unfinished(); unfinished == 0 {
			break
		}
	}
	return unfinished
}

func (b *Bridge) push(message []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var memory []uint32
	if n := len(b.spare); n > 0 {
		memory, b.spare = b.spare[n-1], b.spare[:n-1]
	}
	b.queue = append(b.queue, append(memory[:0], message...))
	b.open++
}

func (b *Bridge) unfinished() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open + b.asked
}

func (b *Bridge) pop() (message []uint32, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil, false
	}
	message = b.queue[0]
	b.queue = append(b.queue[:0], b.queue[1:]...)
	return message, true
}

// Memory for finished messages: enough for a burst of small ones, and not the largest ever seen.
const (
	maxSpare      = 8
	maxSpareWords = 1 << 16
)

func (b *Bridge) finish(message []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if len(b.spare) < maxSpare && cap(message) <= maxSpareWords {
		b.spare = append(b.spare, message)
	}
}

// Run executes messages until one of them closes the device.
func (b *Bridge) Run() {
	for range b.wake {
		for message, ok := b.pop(); ok; message, ok = b.pop() {
			b.execute(message)
			b.finish(message)
		}
		if b.ended {
			break
		}
	}
	b.waiting.Wait()
}

// execute runs the commands of a message.
func (b *Bridge) execute(message []uint32) {
	for len(message) > 0 {
		n, command := int(message[0]>>8), Command(message[0])
		if n < 1 || n > len(message) {
			_ = b.note(invalid("a command of " + itoa(n) + " words in a message of " + itoa(len(message))))
			return
		}
		b.command(command, message[1:n])
		message = message[n:]
	}
}

// command runs one command and sends its error to where it belongs.
func (b *Bridge) command(command Command, args []uint32) {
	var spec *commandSpec
	if int(command) < len(commands) {
		spec = &commands[command]
	}
	if spec == nil || spec.run == nil || len(args) < spec.words || len(args) > spec.words && !spec.expr {
		_ = b.note(invalid("command " + itoa(int(command)) + " with " + itoa(len(args)) + " words"))
		return
	}
	err := b.guarded(spec, args)
	switch {
	case err == nil:
		if spec.heard {
			b.settle(args[0], nil, nil)
		}
	case spec.ticket:
		b.settle(args[spec.at], nil, err)
	default:
		f := b.note(err)
		b.keep(spec, args, f)
		if spec.heard {
			b.page.Settle(args[0], nil, err) // which tells nobody yet
		}
	}
}

// guarded runs a command. A panic would end the program and take every matrix of the page with it.
func (b *Bridge) guarded(spec *commandSpec, args []uint32) (err error) {
	defer b.program.release()
	defer func() {
		if p := recover(); p != nil {
			err = internal(p)
		}
	}()
	return spec.run(b, args)
}

// keep leaves an error with the handle of a command.
func (b *Bridge) keep(spec *commandSpec, args []uint32, f *failure) {
	if spec.fills {
		if e, err := b.slot(args[spec.at]); err == nil && e.empty() {
			e.err = f
		}
	}
}

// note remembers an error for the next CmdWait.
func (b *Bridge) note(err error) *failure {
	f, ok := err.(*failure) //nolint:errorlint // one of another command's, passed on
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ok {
		f = &failure{err: err}
	}
	if b.failure == nil && !f.told {
		b.failure = f
	}
	return f
}

// blame leaves the outcome of writing to a matrix with its handle.
func (b *Bridge) blame(handle uint32, err error) error {
	e := &b.matrices[handle]
	if err == nil {
		e.late = nil
		return nil
	}
	e.late = b.note(err)
	return e.late
}

// settle reports to the page. Ticket 0 is nobody.
func (b *Bridge) settle(ticket uint32, value any, err error) {
	if ticket == 0 {
		if err != nil {
			_ = b.note(err)
		}
		return
	}
	if f, ok := err.(*failure); ok { //nolint:errorlint // see note
		b.mu.Lock()
		f.told = true
		if b.failure == f {
			b.failure = nil
		}
		b.mu.Unlock()
	}
	b.page.Settle(ticket, value, err)
}

// slot returns the entry of a handle, making room for it.
func (b *Bridge) slot(handle uint32) (*entry, error) {
	if handle >= maxHandle {
		return nil, fault.Fail("bridge", fault.ErrLimit, "more than "+itoa(maxHandle)+" matrices")
	}
	for uint64(handle) >= uint64(len(b.matrices)) {
		b.matrices = append(b.matrices, make([]entry, max(64, len(b.matrices)))...)
	}
	return &b.matrices[handle], nil
}

// entry returns what a handle stands for, whatever became of the last assignment to it.
func (b *Bridge) entry(handle uint32) (*entry, error) {
	if uint64(handle) >= uint64(len(b.matrices)) {
		return nil, invalid("no matrix " + itoa(int(handle)))
	}
	e := &b.matrices[handle]
	switch {
	case e.err != nil:
		return nil, e.err
	case e.empty():
		return nil, invalid("no matrix " + itoa(int(handle)))
	}
	return e, nil
}

// matrix returns the dense matrix of a handle, whatever became of the last assignment to it.
func (b *Bridge) matrix(handle uint32) (*anyDense, error) {
	e, err := b.entry(handle)
	if err != nil {
		return nil, err
	}
	return e.dense()
}

// current returns what a handle stands for to somebody who wants the elements. If they are not what they should be because
// the last assignment failed, nobody may miss that.
func (b *Bridge) current(handle uint32) (*entry, error) {
	e, err := b.entry(handle)
	if err != nil || e.late == nil {
		return e, err
	}
	b.mu.Lock()
	told := e.late.told
	b.mu.Unlock()
	if !told {
		return nil, e.late
	}
	e.late = nil
	return e, nil
}

// vacant returns the entry of a handle that stands for nothing yet.
func (b *Bridge) vacant(handle uint32) (*entry, error) {
	e, err := b.slot(handle)
	if err == nil && (!e.empty() || e.err != nil) {
		err = invalid("matrix " + itoa(int(handle)) + " exists")
	}
	return e, err
}

// fill gives a handle its matrix.
func (b *Bridge) fill(handle uint32, m *anyDense, err error) error {
	if err != nil {
		return err
	}
	return b.put(handle, entry{m: m})
}

// put gives a handle what it stands for.
func (b *Bridge) put(handle uint32, made entry) error {
	e, err := b.vacant(handle)
	if err != nil {
		_ = made.close()
		b.drop(made.mirror, made.indices, made.pointers)
		return err
	}
	*e = made
	return nil
}
