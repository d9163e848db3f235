// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Reader reads the words of a command one after the other. What is wrong with them stops the command.
type Reader struct {
	page  Page
	words []uint32
}

// Read returns a reader of words.
func (s *Session) Read(words []uint32) *Reader { return &Reader{s.Page, words} }

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
