// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// storage is what an array and its views see when they read and write. Several storages, made by Clone, may use one buffer
// until one of them is written.
//
// Locks are taken in this order: storages by id, then a group, then the buffer's own.
type storage struct {
	id    uint64
	group *group // changes under mu
	clone bool   // made by Clone: of memory that is read-only it takes a copy when it is written

	mu   sync.Mutex
	buf  *buffer.Buffer // nil: given back
	ours bool           // nobody else can write the memory
}

// group counts the storages that use one buffer. Each has a share of it.
type group struct {
	mu sync.Mutex
	n  int
}

var storages atomic.Uint64

// newStorage takes over the caller's share of the buffer.
func newStorage(buf *buffer.Buffer, ours bool) *storage {
	return &storage{id: storages.Add(1), buf: buf, ours: ours, group: &group{n: 1}}
}

func (s *storage) usable(op string) error {
	if s.buf == nil {
		return fail(op, gpu.ErrClosed, "the array")
	}
	return nil
}

// own makes s the only storage that uses its buffer, by a copy if need be, and returns the one that it gave up, for the
// caller to close once he has unlocked s. He holds s.mu.
func (s *storage) own(op string) (old *buffer.Buffer, err error) {
	if err := s.usable(op); err != nil {
		return nil, err
	}
	readOnly := s.buf.ReadOnly()
	if readOnly && !s.clone {
		return nil, fail(op, gpu.ErrReadOnly, "the wrapped memory")
	}
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == 1 && !readOnly {
		return nil, nil
	}
	buf, err := s.buf.Copy()
	if err != nil {
		return nil, err
	}
	g.n--
	old, s.buf = s.buf, buf
	s.group, s.ours, s.clone = &group{n: 1}, true, false
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
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	results := s.buf.Windowed() && s.buf.Location() == buffer.Device // which no later copy could wait for
	if s.buf.ReadOnly() || s.ours && s.buf.Shares() == g.n && !results {
		g.n++
		c := newStorage(s.buf.Share(), s.ours)
		c.group, c.clone = g, true
		return c, nil
	}
	buf, err := s.buf.Copy()
	if err != nil {
		return nil, err
	}
	return newStorage(buf, true), nil
}

// drop gives the share of the buffer back. Its release function may call this package.
func (s *storage) drop() error {
	s.mu.Lock()
	buf := s.buf
	s.buf = nil
	if buf != nil {
		s.group.mu.Lock()
		s.group.n--
		s.group.mu.Unlock()
	}
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
	return fn(s.buf)
}

// write calls fn with the buffer, which no clone uses.
func (s *storage) write(op string, fn func(*buffer.Buffer) error) error {
	s.mu.Lock()
	old, err := s.own(op)
	if err == nil {
		err = fn(s.buf)
	}
	s.mu.Unlock()
	return cmp.Or(err, old.Close())
}
