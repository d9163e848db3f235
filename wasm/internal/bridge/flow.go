// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// flow is a file on its way between the page and a goroutine of this program. The page passes pieces of memory, one at a
// time, that the goroutine reads from or writes into; with the ticket of a piece it hears that it may pass the next. So
// whoever is slower holds up the other, and nothing of the file is kept here.
//
// For the goroutine it is the file: an [io.ReadSeeker] or an [io.Writer].
type flow struct {
	b      *Bridge
	ctx    *page.Call // ends when the handle is closed
	pieces chan piece

	mu     sync.Mutex
	full   bool             // there is a piece
	over   bool             // the goroutine is done
	arrays []*buffer.Buffer // what was loaded and nobody has taken yet

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
func (b *Bridge) begin(ticket, handle uint32, size int64, run func(f *flow) any) {
	f := &flow{b: b, ctx: page.NewCall(), size: size, pieces: make(chan piece, 1)}
	b.vacant(handle)
	b.entries[handle] = &entry{value: f}
	b.Count(1)
	b.Go(0, func(context.Context) (any, error) {
		var value any
		err := page.Guard(func() { value = run(f) })
		f.finish(ticket, value, err)
		return nil, nil
	})
}

// finish reports the end, first of the flow and then of a piece that was not used up.
func (f *flow) finish(ticket uint32, value any, err error) {
	f.mu.Lock()
	f.over = true
	full := f.full
	f.mu.Unlock()
	gone := f.gone()
	if gone != nil || err != nil {
		f.drop()
	}
	if gone != nil && err != nil {
		err = gone
	}
	if e, ok := errors.AsType[*file.Error](err); ok {
		err = page.AtOffset(err, e.Offset)
	}
	f.b.Count(-1)
	f.b.Settle(ticket, value, err)
	if full {
		if !f.have {
			f.now = <-f.pieces
		}
		f.b.Settle(f.now.ticket, 0.0, nil)
	}
}

// Close gives the flow up.
func (f *flow) Close() error {
	f.ctx.Cancel()
	f.drop()
	return nil
}

// drop closes what nobody has taken. Before the goroutine is done, it is finish that will.
func (f *flow) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		for _, b := range f.arrays {
			_ = b.Close()
		}
		f.arrays = nil
	}
}

// gone returns an error if the flow was given up.
func (f *flow) gone() error {
	if f.ctx.Err() == nil {
		return nil
	}
	return fault.Fail("bridge", fault.ErrClosed, "the load or save was given up")
}

// pass takes a piece from the page. Once the flow is over it is not used.
func (f *flow) pass(p piece) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.full:
		page.Invalid("a piece of a file before the last one was used up")
	case f.over:
		f.b.Settle(p.ticket, 0.0, nil)
	default:
		f.full = true
		f.pieces <- p
	}
}

// next waits for a piece.
func (f *flow) next() error {
	select {
	case f.now = <-f.pieces:
		f.have, f.n = true, 0
	case <-f.ctx.Done():
	}
	return f.gone()
}

// used gives the piece back with a number for the page.
func (f *flow) used(n int64) {
	f.mu.Lock()
	f.full, f.have = false, false
	f.mu.Unlock()
	f.b.Settle(f.now.ticket, float64(n), nil)
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
	if f.b.Load(object, at, b) < len(b) {
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
		return 0, fault.Fail("bridge", fault.ErrInvalid, "no such place in a file")
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
		f.b.Store(f.now.object, f.n, part)
		done += len(part)
		if f.n += len(part); f.n == f.now.size {
			f.used(int64(f.n))
		}
	}
	return len(b), nil
}
