// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"io"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// flow is a file on its way between the page and a goroutine of this program. The page passes pieces of memory, one at a
// time, that the goroutine reads from or writes into; with the ticket of a piece it hears that it may pass the next. So
// whoever is slower holds up the other, and nothing of the file is kept here.
//
// It is also the goroutine's context, which ends when the handle is closed, and the file: an [io.ReadSeeker] or an
// [io.Writer].
type flow struct {
	context.Context
	b      *Bridge
	closed chan struct{}
	wake   chan struct{} // of the goroutine that waits

	mu      sync.Mutex
	waiting bool // the goroutine, for the page
	full    bool // there is a piece
	piece   piece
	gone    bool             // the handle was closed
	over    bool             // the goroutine is done
	arrays  []*buffer.Buffer // what was loaded and nobody has taken yet

	// Of the goroutine.
	size int64 // of a file that is read; -1 where it is not known, and pieces come one after the other
	pos  int64 // in it
	have bool
	now  piece // in use, if there is one
	at   int64 // where the piece begins in the file
	n    int   // bytes that are written into it
}

// piece is memory of the page's for a part of a file.
type piece struct {
	ticket uint32
	object any
	size   int
}

// begin gives a handle a flow and runs a function that reads or writes it. The ticket hears of the function's end.
func (b *Bridge) begin(ticket, handle uint32, f *flow, run func() (any, error)) error {
	e, err := b.vacant(handle)
	if err != nil {
		return err
	}
	f.Context, f.b, f.closed, f.wake = context.Background(), b, make(chan struct{}), make(chan struct{}, 1)
	e.flow = f
	b.count(1)
	b.waiting.Go(func() {
		var value any
		err := guard(f, func(context.Context) (err error) {
			value, err = run()
			return err
		})
		f.finish(ticket, value, err)
	})
	return nil
}

// finish reports the end, first of the flow and then of a piece that was not used up.
func (f *flow) finish(ticket uint32, value any, err error) {
	f.mu.Lock()
	f.over = true
	if f.gone {
		f.drop()
	}
	p, full := f.piece, f.full
	f.piece, f.full = piece{}, false
	f.mu.Unlock()
	f.b.count(-1)
	f.b.settle(ticket, value, err)
	if full {
		f.b.settle(p.ticket, 0.0, nil)
	}
}

// drop closes what nobody has taken.
func (f *flow) drop() {
	for _, b := range f.arrays {
		_ = b.Close()
	}
	f.arrays = nil
}

// Done implements [context.Context].
func (f *flow) Done() <-chan struct{} { return f.closed }

// Err implements [context.Context].
func (f *flow) Err() error {
	select {
	case <-f.closed:
		return fault.Fail("bridge", fault.ErrClosed, "the load or save was given up")
	default:
		return nil
	}
}

// close gives the flow up.
func (f *flow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone {
		f.gone = true
		close(f.closed)
		f.stir()
	}
	if f.over {
		f.drop()
	}
}

// stir wakes the goroutine if it waits. The caller has locked the flow.
func (f *flow) stir() {
	if f.waiting {
		f.waiting = false
		f.b.count(1)
		f.wake <- struct{}{}
	}
}

// pass takes a piece from the page. Once the flow is over it is not used.
func (f *flow) pass(p piece) error {
	f.mu.Lock()
	if f.full {
		f.mu.Unlock()
		return invalid("a piece of a file before the last one was used up")
	}
	over := f.over
	if !over {
		f.piece, f.full = p, true
		f.stir()
	}
	f.mu.Unlock()
	if over {
		f.b.settle(p.ticket, 0.0, nil)
	}
	return nil
}

// next waits for a piece.
func (f *flow) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.full && !f.gone {
		f.waiting = true
		f.mu.Unlock()
		f.b.count(-1)
		<-f.wake
		f.mu.Lock()
	}
	f.now, f.have, f.n = f.piece, true, 0
	return f.Err()
}

// used gives the piece back with a number for the page.
func (f *flow) used(n int64) {
	f.mu.Lock()
	f.piece, f.full, f.have = piece{}, false, false
	f.mu.Unlock()
	f.b.settle(f.now.ticket, float64(n), nil)
}

// Read reads the file. The number for the page is where the next piece is to begin; an empty one is the end. The first
// piece is the beginning.
func (f *flow) Read(b []byte) (int, error) {
	for {
		off := f.pos - f.at
		switch {
		case f.have && off >= 0 && off < int64(f.now.size):
			b = b[:min(int64(len(b)), int64(f.now.size)-off)]
			f.pos += int64(len(b))
			return len(b), f.load(f.now.object, int(off), b)
		case f.have && off >= 0 && f.now.size == 0:
			return 0, io.EOF
		case f.have:
			f.at = f.pos
			f.used(f.pos)
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
}

// load fills b from memory of the page's.
func (f *flow) load(object any, at int, b []byte) error {
	if f.b.page.Load(object, at, b) < len(b) {
		return fault.Fail("bridge", buffer.ErrShort, "memory that was detached meanwhile")
	}
	return nil
}

// Seek passes over parts of a file of known size.
func (f *flow) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += f.size
	}
	if f.size < 0 || offset < 0 {
		return 0, invalid("no such place in a file")
	}
	f.pos = offset
	return offset, nil
}

// Write writes the file. The number for the page is how many bytes of the piece are written; none mean the end.
func (f *flow) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		if !f.have {
			if err := f.next(); err != nil {
				return done, err
			}
		}
		part := b[done:][:min(len(b)-done, f.now.size-f.n)]
		f.b.page.Store(f.now.object, f.n, part)
		done += len(part)
		if f.n += len(part); f.n == f.now.size {
			f.used(int64(f.n))
		}
	}
	return len(b), nil
}
