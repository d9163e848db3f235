// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
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
	pieces chan *piece

	mu     sync.Mutex
	over   bool             // the goroutine is done
	arrays []*buffer.Buffer // what was loaded and nobody has taken yet; the goroutine's until it is done

	// Of the goroutine.
	size int64  // of a file that is read; -1 where it is not known, and pieces come one after the other
	pos  int64  // in it
	now  *piece // in use, if there is one
	at   int64  // where the piece begins in the file
}

// piece is memory of the page's for a part of a file.
type piece struct {
	ticket uint32
	object any
	size   int
	n      int // bytes that are written into it
}

// begin gives a handle a flow and runs a function that reads or writes it. The ticket hears of the function's end, and then whoever
// has passed a piece that was not used up.
func (b *Bridge) begin(ticket, handle uint32, size int64, run func(f *flow) any) {
	f := &flow{b: b, ctx: page.NewCall(), size: size, pieces: make(chan *piece, 1)}
	b.put(handle, &entry{value: f})
	b.Count(1)
	b.Go(0, func(context.Context) (any, error) {
		var value any
		err := page.Guard(func() { value = run(f) })
		f.mu.Lock()
		f.over = true
		close(f.pieces) // pass lets no more in
		f.mu.Unlock()
		if gone := f.gone(); gone != nil || err != nil {
			f.drop()
			if err != nil {
				err = cmp.Or(gone, err)
			}
		}
		b.Count(-1)
		b.Settle(ticket, value, err)
		if f.now != nil {
			f.used(0)
		}
		for p := range f.pieces {
			b.Settle(p.ticket, 0.0, nil)
		}
		return nil, nil
	})
}

// Close gives the flow up.
func (f *flow) Close() error {
	f.ctx.Cancel()
	f.drop()
	return nil
}

// drop closes what nobody has taken. Before the goroutine is done, that is left to it.
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
func (f *flow) pass(p *piece) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		f.b.Settle(p.ticket, 0.0, nil)
		return
	}
	select {
	case f.pieces <- p:
	default:
		page.Invalid("a piece of a file before the last one was used up")
	}
}

// next waits for a piece.
func (f *flow) next() error {
	select {
	case f.now = <-f.pieces:
	case <-f.ctx.Done():
	}
	return f.gone()
}

// used gives the piece back with a number for the page.
func (f *flow) used(n int64) {
	f.b.Settle(f.now.ticket, float64(n), nil)
	f.now = nil
}

// Read reads the file. The number for the page is where the next piece is to begin; an empty one is the end. The first
// piece is the beginning.
func (f *flow) Read(b []byte) (int, error) {
	for {
		if f.now != nil {
			off := f.pos - f.at
			switch {
			case off >= 0 && off < int64(f.now.size):
				b = b[:min(int64(len(b)), int64(f.now.size)-off)]
				f.pos += int64(len(b))
				return len(b), f.load(f.now.object, int(off), b)
			case off >= 0 && f.now.size == 0:
				return 0, io.EOF
			}
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
		if f.now == nil {
			if err := f.next(); err != nil {
				return done, err
			}
		}
		part := b[done:][:min(len(b)-done, f.now.size-f.now.n)]
		f.b.Store(f.now.object, f.now.n, part)
		done += len(part)
		if f.now.n += len(part); f.now.n == f.now.size {
			f.used(int64(f.now.n))
		}
	}
	return len(b), nil
}
