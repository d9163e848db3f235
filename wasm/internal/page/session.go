// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Spec says how a program P executes a command. One of the functions is set; it may stop with [Check].
type Spec[P any] struct {
	Run   func(program P, words []uint32)
	Now   func(program P, r *Reader) any  // reports a value at once
	Later func(program P, r *Reader) Work // reads its arguments and returns what [Session.Go] runs
	Words int                             // after the header, for Run
	Flags Flags
}

// Work is what may wait. Its value is what the page gets.
type Work func(ctx context.Context) (any, error)

// Flags are the peculiarities of a command that is Run.
type Flags uint8

const (
	// More says that more words may follow.
	More Flags = 1 << iota
	// Ticket says that word 0 is a ticket, which Run settles unless it stops.
	Ticket
	// Fills says that a handle, word 0 or the one after the ticket, gets something or, when Run stops, the error. A ticket is
	// settled either way, and an error counts as untold all the same.
	Fills
)

// Session executes the messages of a page.
type Session struct {
	Page
	// Keep is called for the error of a command that Fills, and After when any command is over.
	Keep  func(handle uint32, f *Failure)
	After func()
	// Idle reports whether the device is known to have done everything. It is set where the program computes on the CPU: no event of the page
	// then wakes its goroutines, so that the page must call the program until they are done.
	Idle func() bool
	// Sent reports whether all work was handed to the device, where that is not the CPU.
	Sent func() bool

	run     func(command Command, words []uint32, flags *Flags)
	wake    chan struct{}
	waiting sync.WaitGroup // goroutines that will settle a ticket
	ended   bool           // written by the goroutine that executes

	mu      sync.Mutex
	queue   [][]uint32
	working int // messages that are not finished, and goroutines at work of which no event of the page's may wake
	untold  *Failure
	varies  bool             // see Vary
	calls   map[uint32]*Call // by ticket
}

// New makes a session of a program whose commands are in a table. The session itself executes [CmdCancel].
func New[P any](page Page, program P, table []Spec[P]) *Session {
	s := &Session{
		Page: page, wake: make(chan struct{}, 1), calls: map[uint32]*Call{},
		Keep: func(uint32, *Failure) {}, After: func() {},
	}
	s.run = func(c Command, words []uint32, flags *Flags) {
		var spec Spec[P]
		if int(c) < len(table) {
			spec = table[c]
		}
		switch n := len(words); {
		case spec.Run != nil && (n == spec.Words || n > spec.Words && spec.Flags&More != 0):
			*flags = spec.Flags
			spec.Run(program, words)
		case spec.Now != nil && n > 0:
			*flags = Ticket
			r := s.Read(words[1:])
			s.Settle(words[0], spec.Now(program, &r), nil)
		case spec.Later != nil && n > 0:
			*flags = Ticket
			r := s.Read(words[1:])
			s.Go(words[0], spec.Later(program, &r))
		case c == CmdCancel && n == 1:
			s.cancel(words[0])
		default:
			Invalid("command " + itoa(int(c)) + " with " + itoa(n) + " words")
		}
	}
	return s
}

// patience is how often Post lets other goroutines run. One would do, did the garbage collector not run now and then.
const patience = 3

// Post queues a message, which is copied, and lets [Session.Run] execute it as far as possible without waiting. It returns how
// many messages are not finished and how many goroutines are at work that no event of the page's may wake. It never waits
// itself, so it may be called where JavaScript expects an answer at once: something else always can run, namely Post. A call that a
// message gives up may be what the command at hand waits for, so that is done at once.
func (s *Session) Post(message []uint32) (unfinished int) {
	if len(message) == 2 && Command(message[0]) == CmdCancel {
		s.cancel(message[1])
	}
	s.mu.Lock()
	s.queue = append(s.queue, slices.Clone(message))
	s.working++
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	for range patience {
		runtime.Gosched()
		if unfinished = s.Count(0); unfinished == 0 {
			break
		}
	}
	s.mu.Lock()
	if s.varies {
		unfinished |= Varies
		s.varies = false
	}
	s.mu.Unlock()
	return unfinished
}

// Varies is the bit of what [Session.Post] returns that says that the page cannot have the device do again what messages have had it do.
const Varies = 1 << 16

// Rest is the bit of what the export sublet_post answers that says that the program has nothing left to do, see [Session.Rests].
const Rest = 1 << 17

// Vary says that the command at hand may do something else the next time, or that others may from now on, as after an error.
func (s *Session) Vary() {
	s.mu.Lock()
	s.varies = true
	s.mu.Unlock()
}

// next takes a message from the queue, if there is one.
func (s *Session) next() (message []uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, false
	}
	message, s.queue = s.queue[0], s.queue[1:]
	return message, true
}

// Run executes messages until one of them ends the session, and waits for what is under way.
func (s *Session) Run() {
	for range s.wake {
		for message, ok := s.next(); ok; message, ok = s.next() {
			s.execute(message)
			s.Count(-1)
		}
		if s.ended {
			break
		}
	}
	s.waiting.Wait()
}

// End lets Run return when the message at hand is done, and cancels what is under way. A command calls it.
func (s *Session) End() {
	s.ended = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.Cancel()
	}
}

// execute runs the commands of a message.
func (s *Session) execute(message []uint32) {
	for len(message) > 0 {
		n, command := int(message[0]>>8), Command(message[0])
		if n < 1 || n > len(message) {
			_ = s.Note(invalid("a command of " + itoa(n) + " words in a message of " + itoa(len(message))))
			return
		}
		s.command(command, message[1:n])
		message = message[n:]
	}
}

// command runs one command and sends its error to where it belongs.
func (s *Session) command(command Command, words []uint32) {
	defer s.After()
	var flags Flags
	err := Guard(func() { s.run(command, words, &flags) })
	fills, ticket := flags&Fills != 0, flags&Ticket != 0
	switch {
	case fills:
		handle := words[0]
		if ticket {
			handle = words[1]
			s.Page.Settle(words[0], nil, err) // which counts as telling nobody
		}
		if err != nil {
			s.Keep(handle, s.Note(err))
		}
	case err != nil && ticket:
		s.Settle(words[0], nil, err)
	case err != nil:
		_ = s.Note(err)
	}
}

// Note remembers an error for [Session.Untold].
func (s *Session) Note(err error) *Failure {
	f, ok := err.(*Failure) //nolint:errorlint // one of another command's, passed on
	if !ok {
		f = &Failure{err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.varies = true
	if s.untold == nil && !f.Told() {
		s.untold = f
	}
	return f
}

// Untold returns the first error that the page was not told, once.
func (s *Session) Untold() *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.untold
	s.untold = nil
	return f
}

// Settle reports to the page. Ticket 0 is nobody.
func (s *Session) Settle(ticket uint32, value any, err error) {
	if ticket == 0 {
		if err != nil {
			_ = s.Note(err)
		}
		return
	}
	if f, ok := err.(*Failure); ok { //nolint:errorlint // see Note
		s.mu.Lock()
		f.told.Store(true)
		if s.untold == f {
			s.untold = nil
		}
		s.mu.Unlock()
	}
	s.Page.Settle(ticket, value, err)
}

// Queue is Go for what waits for a device. It returns when run has begun to wait: what run has queued is then ahead of everything
// that comes later.
func (s *Session) Queue(ticket uint32, run Work) {
	if gpu.RunsSIMD && s.Idle != nil && s.Idle() { // run does not wait
		var value any
		err := Guard(func() { value = Must(run(context.Background())) })
		s.Settle(ticket, value, err)
		return
	}
	<-s.Go(ticket, run).began
}

// Go runs what may wait in a goroutine of its own, which then settles the ticket. It returns the goroutine's context.
func (s *Session) Go(ticket uint32, run Work) *Call {
	c, busy := NewCall(), 0
	if gpu.RunsSIMD && s.Idle != nil {
		busy = 1
	}
	s.mu.Lock()
	s.calls[ticket] = c
	s.working += busy
	s.mu.Unlock()
	s.waiting.Go(func() {
		var value any
		err := Guard(func() { value = Must(run(c)) })
		c.begin()
		if c.Err() != nil && errors.Is(err, c.Err()) {
			err = fault.Fail("page", ErrAborted)
		}
		s.mu.Lock()
		delete(s.calls, ticket)
		s.working -= busy
		s.mu.Unlock()
		s.Settle(ticket, value, err)
	})
	return c
}

// Count counts goroutines at work that no event of the page's may wake. It returns how many they are, with the messages that are
// not finished.
func (s *Session) Count(n int) (unfinished int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working += n
	return s.working
}

// Rests reports whether everything was handed to the device, and is done if that is the CPU, and the page was told every error: a command
// that waits would wait for the device alone, and without an error of an earlier command.
func (s *Session) Rests() bool {
	s.mu.Lock()
	rests := s.working == 0 && s.untold == nil
	s.mu.Unlock()
	if gpu.RunsSIMD && s.Idle != nil {
		return rests && s.Idle()
	}
	return rests && s.Sent != nil && s.Sent()
}

func (s *Session) cancel(ticket uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[ticket]; c != nil {
		c.Cancel()
	}
}

// Call is the context of what runs on behalf of the page. Those of package context would make the program 16 KB larger, and one in a field
// has the linker keep how times are printed.
type Call struct {
	began, done       chan struct{}
	beginning, ending sync.Once
}

// NewCall makes a context.
func NewCall() *Call {
	return &Call{began: make(chan struct{}), done: make(chan struct{})}
}

// Cancel ends the context.
func (c *Call) Cancel() { c.ending.Do(func() { close(c.done) }) }

// begin notes that somebody waits or is done.
func (c *Call) begin() { c.beginning.Do(func() { close(c.began) }) }

// Deadline implements [context.Context]: there is none.
func (c *Call) Deadline() (deadline time.Time, ok bool) { return deadline, false }

// Value implements [context.Context]: there are none.
func (c *Call) Value(any) any { return nil }

// Done implements [context.Context]. Whoever asks for it begins to wait.
func (c *Call) Done() <-chan struct{} {
	c.begin()
	return c.done
}

// Err implements [context.Context].
func (c *Call) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}
