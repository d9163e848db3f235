// SPDX-License-Identifier: Apache-2.0

// Package memory keeps bytes that are on the host and on devices, and knows where the newest ones are: the buffers of package buffer
// and the arrays of package cruncher.
package memory

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// Memory knows where the newest bytes are of one buffer, or of several that wrap overlapping host memory. Their positions
// are addresses, or offsets in an ArrayBuffer, so that all of them count alike; those of other buffers begin with 0.
//
// A write is noted for each place that lacks it: in the log for the host, and in behind for a replica. Places take writes
// over in their order, from the replica that made them. That replica may have newer bytes by then, but never older ones:
// a replica takes what it lacks of a region before the region is written.
//
// Who uses it has its turn, which may last as long as a device takes, and the lock while no device is waited for. The turn is taken
// before other locks. What has to be done and cannot be called off, such as to note a write, waits for nobody: whoever has the turn does
// it before giving the turn back.
type Memory struct {
	turn     turn.Lock
	mu       sync.Mutex
	into     *Memory // the memory that this one became a part of
	wrap     bool    // it is still to be put into wraps
	indexed  bool    // it is there
	space    uint64  // of the positions, 0 for Go memory
	lo, hi   int     // all backings
	backings []*Backing
	log      []write                // what the host lacks; where there is no host, all writes
	joined   bool                   // there are writes that stand for several
	late     []func(*Memory) func() // what is to be done before the turn is given back, and what after that
	first    Backing                // of the buffer that it was made for
}

// Backing is a buffer as its memory knows it. It does not refer to the buffer, which may be collected.
type Backing struct {
	m        *Memory // or what that became a part of
	dev      *gpu.Device
	At, End  int
	host     gpu.Host
	Hosted   bool
	windowed bool // the device cannot hold all of it
	trial    bool // what is written is on trial, see [Try]
	shown    bool // some of that was copied elsewhere
	replicas []*Replica
	one      [1]*Replica // is enough for most
	Whole    Replica     // the first
	// keeps reports whether a replica has some of a region of Values; nil for a buffer's, of which replicas have everything.
	keeps func(*Replica, Region) bool
}

// New makes the backing of a buffer of a device. Wraps of the caller's memory are in one memory with those that overlap it.
func New(dev *gpu.Device, size int, host gpu.Host, wrap, windowed bool) *Backing {
	m := &Memory{turn: turn.New()}
	k := &m.first
	*k = Backing{m: m, dev: dev, End: size, host: host, Hosted: host.Bytes != nil || host.Foreign != nil, windowed: windowed}
	k.replicas = k.one[:0]
	m.backings = append(m.backings, k)
	if wrap && k.Hosted && size > 0 {
		if space, at, ok := host.Place(); ok {
			k.At, k.End, m.wrap, m.space = at, at+size, true, space
		}
	}
	return k
}

// All is the region of everything.
func (k *Backing) All() Region { return Between(k.At, k.End) }

// Lock returns the memory, which the caller unlocks. Until the context ends it waits for those who have it.
func (k *Backing) Lock(ctx context.Context) (*Memory, error) {
	m := k.m
	for {
		err := m.turn.Take(ctx)
		if err == nil && m.wrap {
			if err = wraps.join(ctx, k); err != nil {
				m.leave()
			}
		}
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		if m.into == nil {
			m.split()
			return m, nil
		}
		next := m.into
		m.Unlock()
		m = next
	}
}

// Enter is Lock that waits for nobody. If others have the turn it reports false; then the caller calls [Memory.Later] and not Unlock.
func (k *Backing) Enter() (m *Memory, turn bool) {
	m = k.locked()
	return m, m.turn.Try()
}

// locked returns the memory with its lock, but not its turn.
func (k *Backing) locked() *Memory {
	m := k.m
	m.mu.Lock()
	for m.into != nil {
		next := m.into
		m.mu.Unlock()
		m = next
		m.mu.Lock()
	}
	return m
}

// Later has those who have the turn do something before they give it back, and what that returns, if anything, afterwards.
func (m *Memory) Later(do func(*Memory) func()) {
	m.late = append(m.late, do)
	m.mu.Unlock()
}

// Unlock ends what Lock or Enter began.
func (m *Memory) Unlock() {
	var then []func()
	for len(m.late) > 0 {
		do := m.late[0]
		m.late = m.late[1:]
		if f := do(m); f != nil {
			then = append(then, f)
		}
	}
	m.turn.Give()
	m.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// leave gives back the turn of a memory that is not locked.
func (m *Memory) leave() {
	m.mu.Lock()
	m.Unlock()
}

// Wait calls what waits for a device. Meanwhile the memory stays as it is, and can be looked at.
func (m *Memory) Wait(fn func() error) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	return fn()
}

// Look tells what there is of a buffer, without waiting for those who have the memory: whether anything is written, whether the host
// lacks something, and whether the device does not.
func (k *Backing) Look() (written, lacks, current bool) {
	m := k.locked()
	unused := m.wrap
	noted := len(m.late) > 0 // most likely that a kernel wrote
	written, lacks, current = noted || m.Written(), noted || m.Lacks(k.All()), k.Whole.Current()
	if m.mu.Unlock(); unused {
		lacks = wraps.lack(m.space, k.All())
	}
	return written, lacks, current
}

// Written reports whether the host lacks something, or where there is none, whether anything was written.
func (m *Memory) Written() bool { return len(m.log) > 0 }

// Lacks reports whether the host lacks bytes of a region.
func (m *Memory) Lacks(r Region) bool { return touches(m.log, r) }

// touches reports whether one of the writes overlaps a region.
func touches(list []write, r Region) bool {
	return slices.ContainsFunc(list, func(w write) bool { return w.overlaps(r) })
}

// each calls fn for every replica that is valid.
func (m *Memory) each(fn func(*Replica)) {
	for _, k := range m.backings {
		for _, r := range k.replicas {
			if r.valid {
				fn(r)
			}
		}
	}
}

// Wrote notes that a replica was written.
func (m *Memory) Wrote(r *Replica, w Region) {
	if r.replaced || !r.valid {
		r.valid, r.replaced, r.behind = true, false, r.behind[:0]
	}
	if w.Span() > 0 {
		m.spread(write{Region: w, from: r})
	}
	switch k := r.k; {
	case !k.Hosted && len(r.behind) == 0 && r.All(): // all that there is, zeros too
		m.log = append(m.log[:0], write{Region: k.All(), from: r})
	case w.Span() > 0:
		m.log = m.note(m.log, write{Region: w, from: r})
	}
}

// spread notes a write for the other replicas.
func (m *Memory) spread(w write) {
	m.each(func(r *Replica) {
		if r != w.from && r.Lo < w.End() && w.Offset < r.Hi {
			r.behind = m.note(r.behind, w)
		}
	})
}

// HostWrote notes that the host was written: replicas lack that, and what the host lacked there is no longer wanted.
func (m *Memory) HostWrote(w Region) error {
	if w.Span() == 0 {
		return nil
	}
	m.spread(write{Region: w})
	if w.Count == 1 {
		_, m.log = divide(m.log, w.Offset, w.End())
		return nil
	}
	m.log = slices.DeleteFunc(m.log, func(o write) bool { return w.Contains(o.Region) })
	if slices.ContainsFunc(m.log, func(o write) bool { return o.from.Mem.Lost() && o.overlaps(w) }) {
		for i := range w.Count { // as none of it can come to the host
			_, m.log = divide(m.log, w.Offset+i*w.Pitch, w.Offset+i*w.Pitch+w.Width)
		}
	}
	for _, o := range m.log {
		if o.overlaps(w) { // comes to the host later, and then with what the host has now
			if err := m.Update(context.Background(), o.from, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// Download brings to the host what it lacks of a region of a buffer, from its first byte to its last, and of the words that they are in, so that these can come
// from there if the bytes are written.
func (m *Memory) Download(ctx context.Context, k *Backing, r Region) error {
	if len(m.log) == 0 {
		return nil
	}
	lo := r.Offset - (r.Offset-k.At)%4
	hi := min(r.End()+(4-(r.End()-k.At)%4)%4, k.End)
	in, rest := m.log, m.log[:0]
	if len(m.backings) > 1 || lo > k.At || hi < k.End {
		in, rest = divide(m.log, lo, hi)
	}
	host := k.host
	host.ReadOnly = false // only another wrap of the same memory can have been written
	var err error
	for len(in) > 0 && err == nil {
		w := in[0]
		if waits && w.from.trial {
			w.from.k.shown = true
		}
		err = m.Wait(func() error { return w.download(ctx, k, host) })
		if err == nil {
			in = in[1:]
		}
	}
	rest = append(rest, in...)
	m.log = rest
	return err
}

// source returns another replica that has all of a region and lacks nothing of it. One on trial is none for the others.
func (m *Memory) source(w Region, but *Replica) (found *Replica) {
	m.each(func(r *Replica) {
		if r != but && (!waits || but.trial || !r.trial) && !r.Mem.Lost() && r.Lo <= w.Offset && w.End() <= r.Hi && !touches(r.behind, w) {
			found = r
		}
	})
	return found
}

// handOver makes others the source of what a replica was the source of, and reports whether nothing is left.
func (m *Memory) handOver(r *Replica) bool {
	all := true
	m.lists(func(list []write) []write {
		for i := range list {
			w := &list[i]
			if w.from != r {
				continue
			}
			if r.k.Hosted && !m.Lacks(w.Region) {
				w.from, w.of = nil, nil
			} else if s := m.source(w.Region, r); s != nil {
				w.from = s
			} else {
				all = false
			}
		}
		return list
	})
	return all
}

// lists changes what the host lacks and what each replica lacks.
func (m *Memory) lists(change func([]write) []write) {
	m.log = change(m.log)
	m.each(func(r *Replica) { r.behind = change(r.behind) })
}

// giveUp forgets what only a replica has.
func (m *Memory) giveUp(r *Replica) {
	m.lists(func(list []write) []write {
		return slices.DeleteFunc(list, func(w write) bool { return w.from == r })
	})
}

// Renew has a replica that was lost get other memory. What only it had is lost until it is written over.
func (m *Memory) Renew(r *Replica) {
	was := &Replica{k: r.k, dev: r.dev, slot: r.slot, Lo: r.Lo, Hi: r.Hi, Mem: r.Mem, mappable: r.mappable}
	m.lists(func(list []write) []write {
		for i := range list {
			if list[i].from == r {
				list[i].from = was
			}
		}
		return list
	})
	if !errors.Is(r.lost(), gpu.ErrDeviceLost) { // it has to be given back
		_ = r.Mem.Close()
	}
	r.Mem, r.valid, r.behind = nil, false, nil
}

// Close gives the device's memory of a buffer back. What only that has is lost.
func (m *Memory) Close(k *Backing) error {
	m.backings = without(m.backings, k)
	var errs []error
	for _, r := range k.replicas {
		if len(m.backings) > 0 {
			m.handOver(r)
			m.giveUp(r)
		}
		errs = append(errs, r.close())
	}
	k.replicas, k.host = nil, gpu.Host{}
	if m.indexed {
		_ = m.Wait(func() error { wraps.left(m); return nil }) // which locks the index before memories
	}
	return errors.Join(errs...)
}

// wraps finds the memories that overlap a range of host memory. Its lock is taken before theirs. A backing is there from its first use until it is closed. Memories
// that overlap become one, so that those of an address space are disjoint; they are sorted.
var wraps = index{spaces: map[uint64][]*Memory{}}

type index struct {
	mu     sync.Mutex // guards the ranges of memories, too
	spaces map[uint64][]*Memory
}

// within finds the memories that overlap a range: from one up to before another.
func within(list []*Memory, lo, hi int) (from, to int) {
	from = sort.Search(len(list), func(i int) bool { return list[i].hi > lo })
	for to = from; to < len(list) && list[to].lo < hi; to++ {
	}
	return from, to
}

// lack reports whether the host lacks something of a range.
func (x *index) lack(space uint64, r Region) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.spaces[space]
	from, to := within(list, r.Offset, r.End())
	lacks := false
	for _, m := range list[from:to] {
		m.mu.Lock()
		lacks = lacks || m.Lacks(r)
		m.mu.Unlock()
	}
	return lacks
}

// join adds a backing, whose memory is its own yet and the caller's, to the memory that it overlaps. It makes several such one. Until the
// context ends it waits for those who have them, without keeping others from the index.
func (x *index) join(ctx context.Context, k *Backing) error {
	for {
		x.mu.Lock()
		list := x.spaces[k.m.space]
		from, to := within(list, k.At, k.End)
		others, n := append([]*Memory(nil), list[from:to]...), 0
		for n < len(others) && others[n].turn.Try() {
			n++
		}
		if n == len(others) {
			x.merge(list, from, to, k)
		}
		x.mu.Unlock()
		for _, m := range others[:n] {
			m.leave()
		}
		if n == len(others) {
			return nil
		}
		if err := others[n].turn.Take(ctx); err != nil {
			return err
		}
		others[n].leave()
	}
}

// merge makes memories one with a backing's own. The caller has the turns of all.
func (x *index) merge(list []*Memory, from, to int, k *Backing) {
	k.m.mu.Lock()
	k.m.wrap, k.m.indexed, k.m.lo, k.m.hi = false, true, k.At, k.End
	k.m.mu.Unlock()
	if from == to {
		list = append(list, nil)
		copy(list[from+1:], list[from:])
		list[from] = k.m
		x.spaces[k.m.space] = list
		return
	}
	for _, o := range append(list[from+1:to:to], k.m) {
		list[from].absorb(o)
	}
	x.spaces[k.m.space] = slices.Delete(list, from+1, to)
}

// absorb makes o a part of m.
func (m *Memory) absorb(o *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	m.lo, m.hi = min(m.lo, o.lo), max(m.hi, o.hi)
	m.backings = append(m.backings, o.backings...)
	m.log, m.joined = append(m.log, o.log...), m.joined || o.joined
	m.late = append(m.late, o.late...)
	o.into, o.backings, o.log, o.late = m, nil, nil, nil
}

// left notes that a backing has left a memory.
func (x *index) left(m *Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(m.backings) > 0 {
		m.lo, m.hi = m.backings[0].At, m.backings[0].End
		for _, k := range m.backings[1:] {
			m.lo, m.hi = min(m.lo, k.At), max(m.hi, k.End)
		}
		return
	}
	list := x.spaces[m.space]
	i := sort.Search(len(list), func(i int) bool { return list[i].hi >= m.hi })
	rest := slices.Delete(list, i, i+1)
	if x.spaces[m.space] = rest; len(rest) == 0 {
		delete(x.spaces, m.space)
	}
}
