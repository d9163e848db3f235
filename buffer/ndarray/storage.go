// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// storage is what an array and its views see when they read and write. Several storages, made by Clone, may use one buffer
// until one of them is written.
type storage struct {
	turn turn.Lock // of who reads or writes, which may last as long as a device takes; before mu
	ours bool      // nobody else can write the memory
	// lazy says that a write first takes a copy, unless the buffer has no other share left. All shares are those of clones,
	// or the memory is read-only and only clones are lazy.
	lazy bool

	mu  sync.Mutex
	buf *buffer.Buffer // nil: given back
}

func newStorage(buf *buffer.Buffer, ours, lazy bool) *storage {
	return &storage{turn: turn.New(), buf: buf, ours: ours, lazy: lazy}
}

// begin takes the turn, which the caller gives back.
func (s *storage) begin(ctx context.Context, op string) (*buffer.Buffer, error) {
	err := fault.Ended(ctx, "ndarray: "+op)
	if err != nil {
		return nil, err
	}
	if err := s.turn.Take(ctx); err != nil {
		return nil, fail(op, err)
	}
	buf, err := s.use(op, func(b *buffer.Buffer) *buffer.Buffer { return b })
	if err != nil {
		s.turn.Give()
	}
	return buf, err
}

// use calls fn with the buffer, which is not given back meanwhile.
func (s *storage) use(op string, fn func(*buffer.Buffer) *buffer.Buffer) (*buffer.Buffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf == nil {
		return nil, fail(op, gpu.ErrClosed, "the array")
	}
	return fn(s.buf), nil
}

// own makes s the only storage that uses its buffer, by a copy if need be, and returns that and the one that it gave up, for the
// caller to close after giving back the turn, which it has: its release function may call this package.
func (s *storage) own(ctx context.Context, op string, buf *buffer.Buffer) (mine, old *buffer.Buffer, err error) {
	readOnly := buf.ReadOnly()
	if readOnly && !s.lazy {
		return nil, nil, fail(op, gpu.ErrReadOnly, "the wrapped memory")
	}
	if s.lazy && (readOnly || buf.Shares() > 1) {
		mine, err := buf.Copy(ctx)
		if err != nil {
			return nil, nil, err
		}
		if old, err = s.use(op, func(b *buffer.Buffer) *buffer.Buffer { s.buf = mine; return b }); err != nil {
			_ = mine.Close() // the array was closed meanwhile
			return nil, nil, err
		}
		s.ours, buf = true, mine
	}
	s.lazy = false
	return buf, old, nil
}

// share returns another storage with the same bits. They are copied at once if the memory can be written by others than
// this package's arrays.
func (s *storage) share(ctx context.Context, op string) (*storage, error) {
	buf, err := s.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer s.turn.Give()
	readOnly := buf.ReadOnly()
	results := buf.Windowed() && buf.Location() == buffer.Device // which no later copy could wait for
	if readOnly || s.ours && (s.lazy || buf.Shares() == 1) && !results {
		if buf, err = s.use(op, (*buffer.Buffer).Share); err != nil {
			return nil, err
		}
		s.lazy = s.lazy || !readOnly
		return newStorage(buf, s.ours, true), nil
	}
	if buf, err = buf.Copy(ctx); err != nil {
		return nil, named(op, err)
	}
	return newStorage(buf, true, false), nil
}

// drop gives the share of the buffer back, also while others use it. Its release function may call this package.
func (s *storage) drop() error {
	s.mu.Lock()
	buf := s.buf
	s.buf = nil
	s.mu.Unlock()
	return buf.Close()
}

// read calls fn with the buffer, which nobody writes through an array meanwhile.
func (s *storage) read(ctx context.Context, op string, fn func(*buffer.Buffer) error) error {
	buf, err := s.begin(ctx, op)
	if err != nil {
		return err
	}
	defer s.turn.Give()
	return named(op, fn(buf))
}

// write calls fn with the buffer, which no clone uses.
func (s *storage) write(ctx context.Context, op string, fn func(*buffer.Buffer) error) error {
	buf, err := s.begin(ctx, op)
	if err != nil {
		return err
	}
	buf, old, err := s.own(ctx, op, buf)
	if err == nil {
		err = named(op, fn(buf))
	}
	s.turn.Give()
	return cmp.Or(err, old.Close())
}
