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
	"github.com/sublet-gpu/sublet/internal/turn"
)

// storage is the memory of a block in every place that ever used it: a device, by its number in the graph, or the host. The set of current
// places can be read without the lock, since the scheduler must not wait for a transfer. Memory on a device is lost with the device's
// generation; a block that is current nowhere is lost.
type storage struct {
	t        *Template
	capacity int  // bytes in each place
	external bool // the host memory is the caller's

	turn     turn.Lock // of who brings bytes to a place, which may last as long as a device takes; before mu
	mu       sync.Mutex
	size     int           // bytes in use
	valid    atomic.Uint64 // a bit for each place that is current, and fresh
	previous uint64        // those that still have what they had at the last snapshot
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
	hostPlace = 62      // beyond all devices
	fresh     = 1 << 63 // nobody has written the block: everywhere it reads as the template's initial value
)

func bit(place int) uint64 { return 1 << place }

// state returns PTask's word for a place.
func (s *storage) state(place int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch current := s.current() &^ fresh; {
	case place == hostPlace && s.host == nil, place != hostPlace && !s.exists(place):
		return "NO_ENTRY"
	case current&bit(place) == 0:
		return "INVALID"
	case current == bit(place):
		return "EXCLUSIVE"
	}
	return "SHARED"
}

// current returns the set valid without lost places.
func (s *storage) current() uint64 {
	g, current := s.t.g, s.valid.Load()
	for m := current &^ (fresh | bit(hostPlace)); m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if s.replicas[i].generation.Load() != g.devices[i].Generation() || !g.alive(i) {
			current &^= bit(i)
		}
	}
	return current
}

// exists reports whether there is memory on a device, of the device's present generation.
func (s *storage) exists(place int) bool {
	r := &s.replicas[place]
	return r.buf != nil && r.generation.Load() == s.t.g.devices[place].Generation()
}

// acquire makes a place ready for an access, and copies the current bytes there if the access needs them. It returns the memory of
// a device; that of the host is s.host.
func (s *storage) acquire(ctx context.Context, place int, in buffer.Intent) (*buffer.Buffer, error) {
	if err := s.turn.Take(ctx); err != nil {
		return nil, fail("block", err)
	}
	defer s.turn.Give()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.allocate(place); err != nil {
		return nil, err
	}
	if in != buffer.Replaces && s.current()&bit(place) == 0 {
		if err := s.refresh(ctx, place); err != nil {
			return nil, err
		}
	}
	if in != buffer.Reads {
		s.valid.Store(bit(place))
		s.previous &^= bit(place)
	}
	if place == hostPlace {
		return nil, nil
	}
	return s.replicas[place].buf, nil
}

// wait calls a function that may wait for a device, without the lock that getters need.
func (s *storage) wait(fn func() error) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	return fn()
}

// use is [buffer.Buffer.Use] of the whole buffer.
func use(ctx context.Context, b *buffer.Buffer, in buffer.Intent) (*gpu.Buffer, error) {
	mem, _, err := b.Use(ctx, b.Device(), buffer.Range(0, b.Size()), in)
	return mem, err
}

// bytes returns the used part of the host's memory.
func (s *storage) bytes() []byte { return s.host[:s.size:s.size] }

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
	r, dev := &s.replicas[place], s.t.g.devices[place]
	if s.exists(place) {
		return dev.Usable()
	}
	r.close() // that of an earlier generation
	s.previous &^= bit(place)
	s.valid.And(^bit(place))
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

// refresh makes a place current, through the host if another device is current.
func (s *storage) refresh(ctx context.Context, place int) error {
	current := s.current()
	if place != hostPlace && current&fresh != 0 && s.t.Initial == nil {
		buf := s.replicas[place].buf
		err := s.wait(func() error {
			mem, err := use(ctx, buf, buffer.Replaces)
			if err != nil {
				return err
			}
			return mem.Clear(0, mem.Size()/4*4)
		})
		if err == nil {
			wrote(buf)
			s.refreshed(place)
		}
		return err
	}
	if current&bit(hostPlace) == 0 {
		if err := s.download(ctx); err != nil {
			return err
		}
	}
	if place == hostPlace {
		return nil
	}
	buf, bytes := s.replicas[place].buf, s.bytes()
	if err := s.wait(func() error { return buf.Patch(ctx, 0, bytes) }); err != nil {
		return err
	}
	s.t.g.moved.up.Add(uint64(s.size))
	s.refreshed(place)
	return nil
}

func (s *storage) refreshed(place int) {
	s.valid.Or(bit(place))
	s.previous &^= bit(place)
}

// wrote records that all of a device's memory was written.
func wrote(b *buffer.Buffer) { b.Wrote(b.Device(), buffer.Range(0, b.Size())) }

// download makes the host current, from a device or of a fresh block.
func (s *storage) download(ctx context.Context) error {
	if err := s.allocate(hostPlace); err != nil {
		return err
	}
	mem := s.bytes()
	if s.current()&fresh != 0 {
		clear(mem[copy(mem, s.t.Initial):])
		s.refreshed(hostPlace)
		return nil
	}
	return s.source(func(place int) error {
		buf, all := s.replicas[place].buf, buffer.Range(0, s.size)
		err := s.wait(func() error { return buf.Read(ctx, all, gpu.HostBytes(mem), 0) })
		if err == nil {
			s.t.g.moved.down.Add(uint64(s.size))
			s.refreshed(hostPlace)
		}
		return err
	})
}

// source calls a function with a current place, a device if there is one, and again with another place if that device is lost meanwhile.
func (s *storage) source(from func(place int) error) error {
	for current := s.current(); current != 0; current = s.current() {
		place := bits.TrailingZeros64(current)
		if place == hostPlace {
			return from(place)
		}
		generation := s.replicas[place].generation.Load()
		if err := from(place); err == nil || !s.t.g.lostSince(place, generation) {
			return err
		}
	}
	return fail("block", gpu.ErrDeviceLost, "the only copy of a block of ", s.t.name, " was there")
}

// snapshot records which places are current before a task writes the block, in case the task's device is lost.
func (s *storage) snapshot() {
	s.mu.Lock()
	s.previous = s.valid.Load()
	s.mu.Unlock()
}

// restore makes the copies current again that have not changed since the snapshot.
func (s *storage) restore() {
	s.mu.Lock()
	s.valid.Store(s.previous)
	s.mu.Unlock()
}

// copyFrom copies o to s, which is new and not shared, in a place where o is current: on a device if possible, so that nothing is copied
// through the host.
func (s *storage) copyFrom(ctx context.Context, o *storage) error {
	if err := o.turn.Take(ctx); err != nil {
		return fail("block", err)
	}
	defer o.turn.Give()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current()&fresh != 0 {
		return nil
	}
	return o.source(func(place int) error {
		err := s.copyAt(ctx, o, place)
		if err == nil {
			s.valid.Store(bit(place))
		}
		return err
	})
}

func (s *storage) copyAt(ctx context.Context, o *storage, place int) error {
	if err := s.allocate(place); err != nil {
		return err
	}
	if place == hostPlace {
		copy(s.bytes(), o.bytes())
		return nil
	}
	src, buf := o.replicas[place].buf, s.replicas[place].buf
	return o.wait(func() error {
		from, err := use(ctx, src, buffer.Reads)
		if err != nil {
			return err
		}
		to, err := use(ctx, buf, buffer.Replaces)
		if err != nil {
			return err
		}
		wrote(buf)
		return to.CopyFrom(0, from, 0, min(uint64(s.size+3)/4*4, from.Size(), to.Size()))
	})
}

// close releases memory without users.
func (s *storage) close() {
	for i := range s.replicas {
		s.replicas[i].close()
	}
	if s.host = nil; s.release != nil {
		guard(s.release)
	}
}
