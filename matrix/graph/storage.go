// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// storage is the memory of a block in every place that has had it: the host and the devices. Place 0 is the host, place
// i+1 device i of the graph. A bit for each place tells whether the newest bytes are there; none is set while nobody wrote
// the block, which reads as the template's initial value. What a device had is gone with that life of the device; the bit gone
// is all that is left if it was the only one.
type storage struct {
	t    *Template
	room int  // bytes of each place
	odd  bool // not for the pool

	mu      sync.Mutex
	n       int // bytes in use
	valid   atomic.Uint64
	kept    uint64 // places that still have what they had at the last mark
	host    []byte
	release func() // of host memory that is the caller's
	sides   []side
}

// side is a block's memory on a device.
type side struct {
	buf   *buffer.Buffer
	shell *matrix.Any   // points at buf while a task uses it
	used  bool          // it may hold something
	life  atomic.Uint32 // of the device, in which buf was made
}

const (
	hostPlace = 0
	gone      = 1 << 63 // see storage; not a place, as maxWorkers has it
)

func bit(place int) uint64 { return 1 << place }

// Access is what somebody wants with a block's memory.
type Access uint8

// The kinds of access. What Write finds is undefined; it replaces everything.
const (
	Read Access = iota
	Write
	ReadWrite
)

// State is where a block stands in one place.
type State uint8

// The states, as PTask has them.
const (
	NoEntry   State = iota // there is no memory
	Invalid                // there is, and it is out of date
	Shared                 // it is current, as it is elsewhere
	Exclusive              // it alone is current
)

// String returns PTask's name.
func (s State) String() string { return [...]string{"NO_ENTRY", "INVALID", "SHARED", "EXCLUSIVE"}[s&3] }

func (s *storage) state(place int) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.current()
	switch {
	case place == hostPlace && s.host == nil, place != hostPlace && !s.stands(place):
		return NoEntry
	case live&bit(place) == 0:
		return Invalid
	case live == bit(place):
		return Exclusive
	}
	return Shared
}

// current returns the places that are current and not lost.
func (s *storage) current() uint64 {
	g, live := s.t.g, s.valid.Load()&^gone
	for m := live &^ bit(hostPlace); m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m) - 1
		if s.sides[i].life.Load() != g.devices[i].Generation() || !g.alive(i) {
			live &^= bit(i + 1)
		}
	}
	return live
}

// stands reports whether there is memory on a device, which did not go with one of its earlier lives.
func (s *storage) stands(place int) bool {
	d := &s.sides[place-1]
	return d.buf != nil && d.life.Load() == s.t.g.devices[place-1].Generation()
}

// lost reports whether the newest bytes were on devices that are lost.
func (s *storage) lost() bool { return s.valid.Load() != 0 && s.current() == 0 }

// acquire makes a place ready for an access, and brings the newest bytes there if it needs them. Whoever writes has the
// block to himself.
func (s *storage) acquire(ctx context.Context, place int, a Access) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.exist(place); err != nil {
		return err
	}
	if a != Write && s.current()&bit(place) == 0 {
		if err := s.fetch(ctx, place); err != nil {
			return err
		}
	}
	if a != Read {
		s.valid.Store(bit(place))
		s.kept &^= bit(place)
		s.used(place)
	}
	return nil
}

// on returns the memory on a device.
func (s *storage) on(place int) *buffer.Buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sides[place-1].buf
}

func (s *storage) used(place int) {
	if place != hostPlace {
		s.sides[place-1].used = true
	}
}

// exist makes the memory of a place.
func (s *storage) exist(place int) error {
	if place == hostPlace {
		if s.host == nil {
			if uint64(s.room) > s.t.g.largest {
				return fail("block", gpu.ErrNoMemory, itoa(s.room), " bytes on the host")
			}
			words := make([]uint64, s.room/8+1)
			s.host = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), s.room)
		}
		return nil
	}
	d, dev := &s.sides[place-1], s.t.g.devices[place-1]
	if s.stands(place) {
		return dev.Usable()
	}
	s.bereave(place)
	life := dev.Generation() // before the memory is made, which may then be younger but not older
	b, err := buffer.New(dev, s.room)
	if err != nil {
		return err
	}
	d.buf = b
	d.life.Store(life)
	return nil
}

// bereave lets go of what a device had in an earlier life.
func (s *storage) bereave(place int) {
	d := &s.sides[place-1]
	_ = d.close() // there is nothing to close any more
	s.kept &^= bit(place)
	if v := s.valid.Load(); v&bit(place) != 0 {
		if v &^= bit(place); v == 0 {
			v = gone
		}
		s.valid.Store(v)
	}
}

func (d *side) close() error {
	err := errors.Join(d.shell.Close(), d.buf.Close())
	d.shell, d.buf, d.used = nil, nil, false
	return err
}

// fetch brings the newest bytes to a place, from one device to another by way of the host.
func (s *storage) fetch(ctx context.Context, place int) error {
	if s.lost() {
		return fail("block", gpu.ErrDeviceLost, "the only copy of a block of ", s.t.name, " was there")
	}
	switch {
	case s.valid.Load() == 0:
		return s.fill(place)
	case place == hostPlace:
		return s.download(ctx)
	case s.current()&bit(hostPlace) == 0:
		if err := s.exist(hostPlace); err != nil {
			return err
		}
		if err := s.download(ctx); err != nil {
			return err
		}
	}
	if s.n > 0 {
		if err := s.sides[place-1].buf.Write(0, gpu.HostBytes(s.host[:s.n])); err != nil {
			return err
		}
		s.t.g.moved.up.Add(uint64(s.n))
	}
	s.got(place)
	return nil
}

func (s *storage) got(place int) {
	s.valid.Or(bit(place))
	s.kept &^= bit(place)
	s.used(place)
}

// download waits for a device that is current. If that is lost meanwhile, it is another's turn.
func (s *storage) download(ctx context.Context) error {
	for {
		live := s.current() &^ bit(hostPlace)
		if live == 0 {
			return fail("block", gpu.ErrDeviceLost, "the only copy of a block of ", s.t.name, " was there")
		}
		from := bits.TrailingZeros64(live)
		life := s.sides[from-1].life.Load()
		var err error
		if s.n > 0 {
			whole := buffer.Region{Width: s.n, Pitch: s.n, Count: 1}
			err = s.sides[from-1].buf.Read(ctx, whole, gpu.HostBytes(s.host[:s.n]), 0)
		}
		if err == nil {
			s.t.g.moved.down.Add(uint64(s.n))
			s.got(hostPlace)
			return nil
		}
		if !s.t.g.ended(from-1, life) {
			return err
		}
	}
}

// fill writes the initial value to a place that has nothing.
func (s *storage) fill(place int) error {
	initial := s.t.initial
	if initial != nil && s.n != len(initial) {
		initial = append(append(make([]byte, 0, s.n), initial[:min(s.n, len(initial))]...), make([]byte, max(s.n-len(initial), 0))...)
	}
	if place == hostPlace {
		clear(s.host[:s.n])
		copy(s.host, initial)
		s.got(place)
		return nil
	}
	d := &s.sides[place-1]
	switch {
	case s.n == 0:
	case initial != nil:
		if err := d.buf.Write(0, gpu.HostBytes(initial)); err != nil {
			return err
		}
	case d.used:
		mem, err := d.buf.Writable(true)
		if err == nil {
			err = mem.Clear(0, mem.Size()/4*4)
		}
		if err != nil {
			return err
		}
		d.buf.Wrote(buffer.Region{Width: s.room, Pitch: s.room, Count: 1})
	}
	s.got(place)
	return nil
}

// mark is a block before a write, for taking it back.
type mark struct {
	s     *storage
	fresh bool
}

func (s *storage) mark() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = s.valid.Load()
	return mark{s, s.kept == 0}
}

// restore takes back what was written since, on a device that is lost. It reports whether another place still has what was
// there before.
func (m mark) restore() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.s.valid.Store(m.s.kept); m.s.kept == 0 && !m.fresh {
		m.s.valid.Store(gone)
	}
	return m.fresh || m.s.current() != 0
}

// copyFrom makes s a copy of o, where that is current: on a device that has it without crossing to the host.
func (s *storage) copyFrom(o *storage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.valid.Load() == 0 {
		return nil
	}
	for _, device := range []bool{true, false} {
		for live := o.current(); live != 0; live &= live - 1 {
			place := bits.TrailingZeros64(live)
			if device != (place != hostPlace) {
				continue
			}
			if err := s.copyAt(o, place); err == nil {
				s.valid.Store(bit(place))
				s.used(place)
				return nil
			} else if place == hostPlace || !s.t.g.ended(place-1, o.sides[place-1].life.Load()) {
				return err
			}
		}
	}
	return fail("Clone", gpu.ErrDeviceLost, "the only copy of a block of ", s.t.name, " was there")
}

func (s *storage) copyAt(o *storage, place int) error {
	if err := s.exist(place); err != nil || s.n == 0 {
		return err
	}
	if place == hostPlace {
		copy(s.host[:s.n], o.host[:o.n])
		return nil
	}
	from, err := o.sides[place-1].buf.Readable()
	if err != nil {
		return err
	}
	to, err := s.sides[place-1].buf.Writable(true)
	if err != nil {
		return err
	}
	if err := to.CopyFrom(0, from, 0, min(uint64(s.n+3)/4*4, from.Size(), to.Size())); err != nil {
		return err
	}
	s.sides[place-1].buf.Wrote(buffer.Region{Width: s.room, Pitch: s.room, Count: 1})
	return nil
}

// forget makes the storage one that nobody wrote.
func (s *storage) forget() {
	s.mu.Lock()
	s.valid.Store(0)
	s.mu.Unlock()
}

func (s *storage) close() {
	s.mu.Lock()
	sides, release := s.sides, s.release
	s.sides, s.host, s.release = nil, nil, nil
	s.mu.Unlock()
	for i := range sides {
		_ = sides[i].close() // that fails only where the device is gone, and the memory with it
	}
	if release != nil {
		guard(release)
	}
}
