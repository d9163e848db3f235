// SPDX-License-Identifier: Apache-2.0

// Package page is the protocol between a web page and a Go program in it. The programs of the npm package and that of the task
// graphs' page speak it; the other side is web/src/connection.mjs.
//
// # Messages
//
// A message is a sequence of commands. A command is a header word, its length in words << 8 | [Command], and the words named at
// the constants. JavaScript writes messages as numbers into memory of the program and calls one function, [Session.Post]. What
// is no number, a typed array or a text, stays on the page's side ([Page]): the program asks for it by its number, once.
//
// # Handles
//
// What a program keeps for the page has a handle: a small number that JavaScript chooses, so that it can go on with a result
// before it exists.
//
// # Answers
//
// The first word of a command that reports something is a ticket, under which it reports a value or an error, once. Each ticket
// has a context, which [CmdCancel] ends.
//
// # Order
//
// One goroutine executes the commands, in the order in which they came. It waits where it must, for a compiler mostly, and
// everything later waits behind it. What else has to wait does so in a goroutine of its own; see [Session.Go] and
// [Session.Queue].
//
// # Errors
//
// Commands with a ticket report their error under it. The error of another command stays with the handle that it was to fill:
// whoever uses the handle gets it. The first error that nobody was told is kept for [Session.Untold]. Messages are checked word
// by word: a wrong one is an error like any other.
package page

import (
	"math"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Page is the JavaScript side.
type Page interface {
	// Object returns what the page keeps under the number, once: memory, as in the Foreign field of a gpu.Host, or anything else
	// of JavaScript.
	Object(number uint32) any
	// Load and Store copy memory of the page's, from byte at on, to and from Go's. Load returns len(into), or 0 if there are fewer bytes.
	Load(object any, at int, into []byte) int
	Store(object any, at int, from []byte) int
	// Text is Object for a string.
	Text(number uint32) string
	// Settle reports the end of the command with the ticket. A value of bytes is copied. It may be called from any goroutine.
	Settle(ticket uint32, value any, err error)
}

// mostLent is how many bytes the page gives, in objects, until those are collected that nothing uses any more.
const mostLent = 128 << 20

// lent counts them.
var lent int

// Memory is memory of the page's that an object holds. The object, and with it the memory, is there until Go's collector has found that
// nothing refers to it. The collector takes it for some bytes and would leave gigabytes to a page that goes on and on, so it is called.
func Memory(object any, size int) gpu.Host {
	if lent += size; lent >= mostLent {
		lent = 0
		go runtime.GC()
	}
	return gpu.Host{Foreign: object, Size: size}
}

var (
	// ErrInternal is a mistake of Sublet's own.
	ErrInternal = fault.New("ErrInternal", "internal error")
	// ErrAborted is the error of what the page has given up.
	ErrAborted = fault.New("ErrAborted", "it was aborted")
)

// Failure is an error that the page is to be told once.
type Failure struct {
	err  error
	told atomic.Bool
}

func (f *Failure) Error() string { return f.err.Error() }

func (f *Failure) Unwrap() error { return f.err }

// Told reports whether the page knows.
func (f *Failure) Told() bool { return f.told.Load() }

// Check stops the command at hand with an error, unless that is nil. Only what [Guard] runs may call it.
func Check(err error) {
	if err != nil {
		panic(stop{err})
	}
}

// Must returns a value, or stops the command at hand.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Invalid stops the command at hand, which JavaScript would not send.
func Invalid(detail string) { Check(invalid(detail)) }

func invalid(detail string) error { return fault.Fail("page", fault.ErrInvalid, detail) }

// stop is what Check panics with.
type stop struct{ err error }

// Guard returns the error that stopped a function. Another panic becomes an error too: it would end the program and take
// everything that the page has of it along.
func Guard(run func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case stop:
			err = p.err
		default:
			err = fault.Fail("page", ErrInternal, fault.Panic(p))
		}
	}()
	run()
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// Reader reads the words of a command one after the other. What is wrong with them stops the command.
type Reader struct {
	page  Page
	words []uint32
}

// Read returns a reader of words.
func (s *Session) Read(words []uint32) Reader { return Reader{s.Page, words} }

// Word reads a word.
func (r *Reader) Word() (w uint32) {
	if !r.Left() {
		Invalid("a command that ends early")
	}
	w, r.words = r.words[0], r.words[1:]
	return w
}

// Int reads a number of 64 bits.
func (r *Reader) Int() int {
	low := r.Word()
	return int(int64(uint64(r.Word())<<32 | uint64(low)))
}

// Float reads a number of 32 bits.
func (r *Reader) Float() float32 { return math.Float32frombits(r.Word()) }

// Bool reads a word that is 0 or not.
func (r *Reader) Bool() bool { return r.Word() != 0 }

// Object reads the number of something on the page's side and returns that.
func (r *Reader) Object() any { return r.page.Object(r.Word()) }

// Text is Object for a string.
func (r *Reader) Text() string { return r.page.Text(r.Word()) }

// Left reports whether there are words yet.
func (r *Reader) Left() bool { return len(r.words) > 0 }

// Index reads a place in a list of that length.
func (r *Reader) Index(length int) int {
	i := r.Word()
	if uint64(i) >= uint64(length) {
		Invalid("choice " + itoa(int(i)) + " of " + itoa(length))
	}
	return int(i)
}

// Handle reads a handle and returns what it stands for.
func Handle[T any](r *Reader, what string, table map[uint32]T) T {
	v, ok := table[r.Word()]
	if !ok {
		Check(fault.Fail("page", fault.ErrClosed, what))
	}
	return v
}
