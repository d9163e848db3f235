// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// storage is the memory of a block in every place that ever used it. Place 0 is the host, place i+1 device i of the graph. valid
// has a bit for each place that is current. None is set before the first write: the block then reads as the template's initial
// value. A device's memory is lost with the device's generation. If it was the only current one, the bit lost is all that is left.
type storage struct {
	t        *Template
	capacity int  // bytes in each place
	external bool // the host memory is the caller's

	mu       sync.Mutex
	size     int // bytes in use
	valid    atomic.Uint64
	previous uint64 // places that still have what they had at the last snapshot
	host     []byte
	release  func() // of external memory
	replicas []replica
}

// replica is a block's memory on a device.
type replica struct {
	buf        *buffer.Buffer
	matrix     io.Closer     // a matrix that points at buf while a task uses it
	generation atomic.Uint32 // of the device when buf was made
}

const (
	hostPlace = 0
	lost      = 1 << 63 // see storage; no place, since maxWorkers is lower
)

func bit(place int) uint64 { return 1 << place }

// access is what a caller wants with a block's memory.
type access uint8

const (
	read   access = iota
	write         // what the caller finds is undefined
	update        // read and write
)

func (s *storage) state(place int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch current := s.current(); {
	case place == hostPlace && s.host == nil, place != hostPlace && !s.exists(place):
		return "NO_ENTRY"
	case current&bit(place) == 0:
		return "INVALID"
	case current == bit(place):
		return "EXCLUSIVE"
	}
	return "SHARED"
}

// current returns the places that are current and not lost.
func (s *storage) current() uint64 {
	g, current := s.t.g, s.valid.Load()&^lost
	for m := current &^ bit(hostPlace); m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m) - 1
		if s.replicas[i].generation.Load() != g.devices[i].Generation() || !g.alive(i) {
			current &^= bit(i + 1)
		}
	}
	return current
}

// exists reports whether there is memory on a device, of the device's present generation.
func (s *storage) exists(place int) bool {
	r := &s.replicas[place-1]
	return r.buf != nil && r.generation.Load() == s.t.g.devices[place-1].Generation()
}

// isLost reports whether all current copies were on devices that are lost.
func (s *storage) isLost() bool { return s.valid.Load() != 0 && s.current() == 0 }

// acquire makes a place ready for an access, and copies the current bytes there if the access needs them.
func (s *storage) acquire(ctx context.Context, place int, a access) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(ctx, place, a)
}

// buffer is acquire for a device. It returns the memory there.
func (s *storage) buffer(ctx context.Context, place int, a access) (*buffer.Buffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.locked(ctx, place, a)
	return s.replicas[place-1].buf, err
}

func (s *storage) locked(ctx context.Context, place int, a access) error {
	if err := s.allocate(place); err != nil {
		return err
	}
	if a != write && s.current()&bit(place) == 0 {
		if err := s.refresh(ctx, place); err != nil {
			return err
		}
	}
	if a != read {
		s.valid.Store(bit(place))
		s.previous &^= bit(place)
	}
	return nil
}

// allocate makes the memory of a place.
func (s *storage) allocate(place int) error {
	if place == hostPlace {
		if s.host == nil {
			if uint64(s.capacity) > s.t.g.largest {
				return fail("block", gpu.ErrNoMemory, itoa(s.capacity), " bytes on the host")
			}
			words := make([]uint64, s.capacity/8+1)
			s.host = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), s.capacity)
		}
		return nil
	}
	r, dev := &s.replicas[place-1], s.t.g.devices[place-1]
	if s.exists(place) {
		return dev.Usable()
	}
	r.close() // that of an earlier generation
	s.previous &^= bit(place)
	if v := s.valid.Load(); v == bit(place) {
		s.valid.Store(lost)
	} else {
		s.valid.Store(v &^ bit(place))
	}
	generation := dev.Generation() // before the memory is made, which may then be of a later one but not of an earlier one
	b, err := buffer.New(dev, s.capacity)
	if err != nil {
		return err
	}
	r.buf = b
	r.generation.Store(generation)
	return nil
}

// close releases the memory. That fails only where the device is lost, and the memory with it.
func (r *replica) close() {
	if r.matrix != nil {
		_ = r.matrix.Close()
	}
	_ = r.buf.Close()
	r.matrix, r.buf = nil, nil
}

// refresh copies the current bytes to a place, from one device to another by way of the host.
func (s *storage) refresh(ctx context.Context, place int) error {
	if s.isLost() {
		return s.lostError()
	}
	if s.valid.Load() == 0 {
		return s.fill(place)
	}
	if s.current()&bit(hostPlace) == 0 {
		if err := s.download(ctx); err != nil {
			return err
		}
	}
	if place != hostPlace && s.size > 0 {
		if err := s.replicas[place-1].buf.Write(0, gpu.HostBytes(s.host[:s.size])); err != nil {
			return err
		}
		s.t.g.moved.up.Add(uint64(s.size))
	}
	s.refreshed(place)
	return nil
}

func (s *storage) lostError() error {
	return fail("block", gpu.ErrDeviceLost, "the only copy of a block of ", s.t.name, " was there")
}

func (s *storage) refreshed(place int) {
	s.valid.Or(bit(place))
	s.previous &^= bit(place)
}

// download copies the bytes of a device that is current to the host. If the device is lost meanwhile, it tries another one.
func (s *storage) download(ctx context.Context) error {
	if err := s.allocate(hostPlace); err != nil {
		return err
	}
	for {
		current := s.current() &^ bit(hostPlace)
		if current == 0 {
			return s.lostError()
		}
		i := bits.TrailingZeros64(current) - 1
		r := &s.replicas[i]
		generation := r.generation.Load()
		var err error
		if s.size > 0 {
			err = r.buf.Read(ctx, region(s.size), gpu.HostBytes(s.host[:s.size]), 0)
		}
		if err == nil {
			s.t.g.moved.down.Add(uint64(s.size))
			s.refreshed(hostPlace)
			return nil
		}
		if !s.t.g.lostSince(i, generation) {
			return err
		}
	}
}

func region(size int) buffer.Region { return buffer.Range(0, size) }

// fill writes the initial value to a place of a block that nobody wrote.
func (s *storage) fill(place int) error {
	initial := s.t.Initial
	if initial != nil && s.size != len(initial) { // a stream of records
		initial = make([]byte, s.size)
		copy(initial, s.t.Initial)
	}
	if place == hostPlace {
		clear(s.host[copy(s.host[:s.size], initial):s.size])
		s.refreshed(place)
		return nil
	}
	buf := s.replicas[place-1].buf
	switch {
	case s.size == 0:
	case initial != nil:
		if err := buf.Write(0, gpu.HostBytes(initial)); err != nil {
			return err
		}
	default:
		mem, err := buf.Memory(buffer.Replaces)
		if err == nil {
			err = mem.Clear(0, mem.Size()/4*4)
		}
		if err != nil {
			return err
		}
		buf.Wrote(buf.Device(), region(s.capacity))
	}
	s.refreshed(place)
	return nil
}

// snapshot is the state of a block before a task writes it, for the case that the task's device is lost.
type snapshot struct {
	s   *storage
	new bool // nobody had written the block
}

func (s *storage) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.previous = s.valid.Load()
	return snapshot{s, s.previous == 0}
}

// restore makes the copies current again that were when the snapshot was taken. It reports whether any is left.
func (m snapshot) restore() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.s.valid.Store(m.s.previous); m.s.previous == 0 && !m.new {
		m.s.valid.Store(lost)
	}
	return m.new || m.s.current() != 0
}

// copyFrom makes s a copy of o in a place where o is current: on a device if possible, so that nothing moves to the host.
func (s *storage) copyFrom(o *storage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.valid.Load() == 0 {
		return nil
	}
	for current := o.current(); current != 0; {
		place := bits.Len64(current) - 1 // the host's is the lowest
		err := s.copyAt(o, place)
		if err == nil {
			s.valid.Store(bit(place))
			return nil
		}
		if place == hostPlace || !s.t.g.lostSince(place-1, o.replicas[place-1].generation.Load()) {
			return err
		}
		current &^= bit(place)
	}
	return s.lostError()
}

func (s *storage) copyAt(o *storage, place int) error {
	if err := s.allocate(place); err != nil || s.size == 0 {
		return err
	}
	if place == hostPlace {
		copy(s.host[:s.size], o.host[:o.size])
		return nil
	}
	from, err := o.replicas[place-1].buf.Memory(buffer.Reads)
	if err != nil {
		return err
	}
	to, err := s.replicas[place-1].buf.Memory(buffer.Replaces)
	if err != nil {
		return err
	}
	if err := to.CopyFrom(0, from, 0, min(uint64(s.size+3)/4*4, from.Size(), to.Size())); err != nil {
		return err
	}
	s.replicas[place-1].buf.Wrote(s.replicas[place-1].buf.Device(), region(s.capacity))
	return nil
}

// matrixOf points the matrix of a replica at its memory. There is one for each block and device.
func matrixOf[T matrix.Elem](s *storage, place, rows int) (*matrix.Dense[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, r := s.t, &s.replicas[place-1]
	m, ok := r.matrix.(*matrix.Dense[T])
	if !ok {
		var err error
		if m, err = matrix.New[T](t.g.devices[place-1], 0, 0); err != nil {
			return nil, err
		}
		r.matrix = m
	}
	return m, m.SetValueFrom(t.Planes*rows, t.cols, r.buf, buffer.DontOwnBuffer, matrix.Options{Stride: t.Pitch})
}

func (s *storage) close() {
	s.mu.Lock()
	replicas, release := s.replicas, s.release
	s.replicas, s.host, s.release = nil, nil, nil
	s.mu.Unlock()
	for i := range replicas {
		replicas[i].close()
	}
	if release != nil {
		guard(release)
	}
}
