// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// storage is what an array and its views see when they read and write. Several storages, made by Clone, may use one buffer
// until one of them is written.
type storage struct {
	mu   sync.Mutex
	buf  *buffer.Buffer // nil: given back
	ours bool           // nobody else can write the memory
	// lazy says that a write first takes a copy, unless the buffer has no other share left. All shares are those of clones,
	// or the memory is read-only and only clones are lazy.
	lazy bool
}

func (s *storage) usable(op string) error {
	if s.buf == nil {
		return fail(op, gpu.ErrClosed, "the array")
	}
	return nil
}

// own makes s the only storage that uses its buffer, by a copy if need be, and returns the one that it gave up, for the
// caller to close after s.mu, which is locked here: its release function may call this package.
func (s *storage) own(op string) (old *buffer.Buffer, err error) {
	if err := s.usable(op); err != nil {
		return nil, err
	}
	readOnly := s.buf.ReadOnly()
	if readOnly && !s.lazy {
		return nil, fail(op, gpu.ErrReadOnly, "the wrapped memory")
	}
	if s.lazy && (readOnly || s.buf.Shares() > 1) {
		buf, err := s.buf.Copy()
		if err != nil {
			return nil, err
		}
		old, s.buf, s.ours = s.buf, buf, true
	}
	s.lazy = false
	return old, nil
}

// share returns another storage with the same bits. They are copied at once if the memory can be written by others than
// this package's arrays.
func (s *storage) share(op string) (*storage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(op); err != nil {
		return nil, err
	}
	readOnly := s.buf.ReadOnly()
	results := s.buf.Windowed() && s.buf.Location() == buffer.Device // which no later copy could wait for
	if readOnly || s.ours && (s.lazy || s.buf.Shares() == 1) && !results {
		s.lazy = s.lazy || !readOnly
		return &storage{buf: s.buf.Share(), ours: s.ours, lazy: true}, nil
	}
	buf, err := s.buf.Copy()
	return &storage{buf: buf, ours: true}, named(op, err)
}

// drop gives the share of the buffer back. Its release function may call this package.
func (s *storage) drop() error {
	s.mu.Lock()
	buf := s.buf
	s.buf = nil
	s.mu.Unlock()
	return buf.Close()
}

// read calls fn with the buffer, which nobody writes through an array meanwhile.
func (s *storage) read(op string, fn func(*buffer.Buffer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(op); err != nil {
		return err
	}
	return named(op, fn(s.buf))
}

// write calls fn with the buffer, which no clone uses.
func (s *storage) write(op string, fn func(*buffer.Buffer) error) error {
	s.mu.Lock()
	old, err := s.own(op)
	if err == nil {
		err = named(op, fn(s.buf))
	}
	s.mu.Unlock()
	return cmp.Or(err, old.Close())
}
