// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// moody is a driver's device that refuses lists when it is told to, and counts the binding sets that it has.
type moody struct {
	driver.Device
	mood mood
	told error // what the next call reports
	sets map[driver.BindingsID]bool
}

type mood int

const (
	willing mood = iota
	refusing
	failing // executes the next list and reports an error
	late    // accepts the next list, and refuses it in the call after that
	picky   // refuses the next list before it says what became of those before
)

var errMood = errors.New("not now")

func (m *moody) Submit(l *driver.CommandList) error {
	mood := m.mood
	m.mood = willing
	if mood == picky {
		return errMood
	}
	if err := m.tell(); err != nil {
		return err
	}
	switch mood {
	case refusing:
		return errMood
	case late:
		m.told = driver.Refusal{List: l.Number, Err: errMood}
		return nil
	}
	if err := m.Device.Submit(l); err != nil {
		return err
	}
	for c := range l.All() {
		switch id := driver.BindingsID(c.Words[0]); c.Op {
		case driver.OpBind:
			m.sets[id] = true
		case driver.OpUnbind:
			delete(m.sets, id)
		}
	}
	if mood == failing {
		return errMood
	}
	return nil
}

func (m *moody) tell() error {
	err := m.told
	m.told = nil
	return err
}

func (m *moody) Read(ctx context.Context, t driver.Transfer) error {
	return cmp.Or(m.tell(), m.Device.Read(ctx, t))
}

func (m *moody) Wait(ctx context.Context) error { return cmp.Or(m.tell(), m.Device.Wait(ctx)) }

// sums adds the first bytes of its second buffer to those of its first.
var sums = KernelDesc{
	Source:    "-",
	Bindings:  []driver.Access{driver.AccessReadWrite, driver.AccessReadWrite},
	Reference: func(_ [3]uint32, _ []byte, s [][]byte) { s[0][0] += s[1][0] },
}

func openMoody(t *testing.T) (*Device, *moody, *Kernel) {
	t.Helper()
	adapters, err := cpu.New().Adapters(t.Context())
	must(t, err)
	drv, err := adapters[0].Open(t.Context())
	must(t, err)
	m := &moody{Device: drv, sets: map[driver.BindingsID]bool{}}
	dev, err := Open(t.Context(), WithDevice(m))
	must(t, err)
	dev.poolLimit = 0 // so that every buffer is a new one
	t.Cleanup(func() { must(t, errors.Join(dev.Close(), drv.Close())) })
	k, err := dev.Kernel(t.Context(), sums)
	must(t, err)
	return dev, m, k
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func filled(t *testing.T, dev *Device, b byte) *Buffer {
	t.Helper()
	buf, err := dev.NewBuffer(16)
	must(t, err)
	must(t, buf.Write(0, HostBytes([]byte{b, 0, 0, 0})))
	return buf
}

// TestSetsOfLastingBuffers uses one buffer with very many others. It must not keep what was bound with those.
func TestSetsOfLastingBuffers(t *testing.T) {
	dev, m, k := openMoody(t)
	lasting := filled(t, dev, 0)
	for range 1000 {
		b := filled(t, dev, 1)
		must(t, k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: lasting}, Arg{Buffer: b}))
		must(t, b.Close())
		must(t, dev.Flush())
	}
	if n := len(dev.sets); n != 0 || dev.setIDs.last > 2 || len(m.sets) != 0 {
		t.Errorf("%d sets, ids up to %d, %d in the driver", n, dev.setIDs.last, len(m.sets))
	}
	var sum [1]byte
	must(t, lasting.Read(t.Context(), Transfer{Host: HostBytes(sum[:]), Width: 1, Count: 1}))
	if sum[0] != 1000%256 {
		t.Errorf("the sum is %d", sum[0])
	}
}

// TestSetsOfRefusedLists has lists refused, before and after their execution. What they bound must not stay behind.
func TestSetsOfRefusedLists(t *testing.T) {
	for mood, name := range map[mood]string{refusing: "refused", failing: "failed"} {
		t.Run(name, func(t *testing.T) {
			dev, m, k := openMoody(t)
			a, b := filled(t, dev, 0), filled(t, dev, 1)
			want := byte(0)
			for i := range 1000 {
				must(t, k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: a}, Arg{Buffer: b}))
				must(t, dev.Flush())
				want++
				c := filled(t, dev, 1) // with a set of its own, or with one that comes and goes within the list
				must(t, k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: a}, Arg{Buffer: c}))
				if i%2 == 0 {
					must(t, c.Close())
				}
				m.mood = mood
				if err := dev.Flush(); !errors.Is(err, errMood) {
					t.Fatalf("got error %v", err)
				}
				if mood == failing {
					want++
				}
				if err := a.Sync(t.Context()); !errors.Is(err, errMood) {
					t.Fatalf("a buffer that was to be written: %v", err)
				}
				must(t, a.Renew())
				must(t, c.Close())
			}
			if n := len(dev.sets); n > 1 || dev.setIDs.last > 4 || len(m.sets) != n {
				t.Errorf("%d sets, ids up to %d, %d in the driver", n, dev.setIDs.last, len(m.sets))
			}
			var sum [1]byte
			must(t, a.Read(t.Context(), Transfer{Host: HostBytes(sum[:]), Width: 1, Count: 1}))
			if sum[0] != want {
				t.Errorf("the sum is %d, want %d", sum[0], want)
			}
		})
	}
}

// TestRefusedBatches has batches refused, at once and later: it concerns whoever uses what they were to write, and nobody else.
func TestRefusedBatches(t *testing.T) {
	for _, mood := range []mood{refusing, late} {
		dev, m, k := openMoody(t)
		if mood == late {
			dev.info.Limits.MaxLoopsPerInvoking = 1 // a driver that watches loops refuses later
		}
		one, theirs, mine, after := filled(t, dev, 1), filled(t, dev, 0), filled(t, dev, 0), filled(t, dev, 0)
		add := func(to, b *Buffer) error { return k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: to}, Arg{Buffer: b}) }
		value := func(b *Buffer) (byte, error) {
			var v [1]byte
			err := b.Read(t.Context(), Transfer{Host: HostBytes(v[:]), Width: 1, Count: 1})
			return v[0], err
		}
		must(t, add(theirs, one))
		must(t, dev.Sync(t.Context()))
		must(t, add(mine, one))
		m.mood = mood
		if err := dev.Flush(); mood == refusing && !errors.Is(err, errMood) || mood == late && err != nil {
			t.Errorf("flushed: %v", err)
		}
		if mood == late { // what has been made of it before anybody knew
			must(t, add(after, mine))
		}
		for range 2 {
			if v, err := value(theirs); v != 1 || err != nil {
				t.Errorf("mood %d: a bystander holds %d, %v", mood, v, err)
			}
			if _, err := value(mine); !errors.Is(err, errMood) {
				t.Errorf("mood %d: what was to be written is read: %v", mood, err)
			}
			if err := add(after, mine); !errors.Is(err, errMood) {
				t.Errorf("mood %d: what was to be written is used: %v", mood, err)
			}
		}
		if _, err := value(after); mood == late && !errors.Is(err, errMood) {
			t.Errorf("what was made of it is read: %v", err)
		}
		must(t, mine.Write(0, HostBytes([]byte{7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})))
		if v, err := value(mine); v != 7 || err != nil {
			t.Errorf("written anew: %d, %v", v, err)
		}
	}
}

// TestRefusalsTogether has a list refused at once while nobody was told yet that the one before was refused, too.
func TestRefusalsTogether(t *testing.T) {
	dev, m, k := openMoody(t)
	dev.info.Limits.MaxLoopsPerInvoking = 1
	theirs, mine, other := filled(t, dev, 3), filled(t, dev, 1), filled(t, dev, 0)
	must(t, errors.Join(k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: mine}, Arg{Buffer: theirs}), dev.Sync(t.Context())))
	m.mood = late
	must(t, errors.Join(k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: mine}, Arg{Buffer: theirs}), dev.Flush()))
	m.mood = picky
	if err := errors.Join(other.Clear(0, 4), dev.Flush()); !errors.Is(err, errMood) {
		t.Fatalf("flushed: %v", err)
	}
	var v [1]byte
	if err := mine.Read(t.Context(), Transfer{Host: HostBytes(v[:]), Width: 1, Count: 1}); !errors.Is(err, errMood) {
		t.Errorf("what the first was to write is read as %d: %v", v[0], err)
	}
}

// TestMissingMemory has a buffer made for which there was no memory, as a browser tells later: it concerns whoever uses that buffer, or
// what a list with it was to write.
func TestMissingMemory(t *testing.T) {
	dev, m, k := openMoody(t)
	dev.info.Limits.MaxLoopsPerInvoking = 1
	one, theirs, mine, bad := filled(t, dev, 1), filled(t, dev, 3), filled(t, dev, 0), filled(t, dev, 0)
	var v [1]byte
	read := func(b *Buffer) error {
		return b.Read(t.Context(), Transfer{Host: HostBytes(v[:]), Width: 1, Count: 1})
	}
	for range 2 { // in the first list what is bound
		must(t, k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: mine}, Arg{Buffer: bad}))
		must(t, dev.Flush())
	}
	m.told = driver.Refusal{Buffer: bad.mem.id, Err: ErrNoMemory}
	must(t, errors.Join(one.Clear(4, 4), dev.Flush()))
	m.told = driver.Refusal{List: dev.batch.epoch - 2, Err: ErrInvalid} // because of the buffer
	if err := read(mine); !errors.Is(err, ErrNoMemory) {
		t.Errorf("what was to be written is read: %v", err)
	}
	if must(t, read(theirs)); v[0] != 3 {
		t.Errorf("a bystander holds %d", v[0])
	}
	if err := read(bad); !errors.Is(err, ErrNoMemory) || !bad.Lost() {
		t.Errorf("the buffer is read: %v", err)
	}
	if err := k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: theirs}, Arg{Buffer: bad}); !errors.Is(err, ErrNoMemory) {
		t.Errorf("the buffer is used: %v", err)
	}
	live := dev.Stats().LiveBytes
	dev.poolLimit = 1 << 20
	must(t, bad.Close())
	if s := dev.Stats(); s.PooledBytes != 0 || s.LiveBytes != live-16 {
		t.Errorf("%d bytes in the pool, %d are live, %d before", s.PooledBytes, s.LiveBytes, live)
	}
	must(t, errors.Join(one.Close(), dev.Sync(t.Context())))
	again := filled(t, dev, 5)
	if must(t, read(again)); v[0] != 5 {
		t.Errorf("when there is memory again a buffer holds %d", v[0])
	}
}

// slow is a driver's device of which reads fail for want of memory, and tell when they are under way.
type slow struct {
	driver.Device
	reading, on chan struct{}
	failures    int
}

func (s *slow) Read(ctx context.Context, t driver.Transfer) error {
	s.reading <- struct{}{}
	<-s.on
	if s.failures--; s.failures >= 0 {
		return ErrNoMemory
	}
	return s.Device.Read(ctx, t)
}

// TestReadAgain has a read fail for want of memory: it is tried once more, without what the pool held, and finds what the buffer had
// although that was closed meanwhile and others make buffers.
func TestReadAgain(t *testing.T) {
	for failures, want := range []error{nil, nil, ErrNoMemory} {
		plain, err := Open(t.Context(), WithDriver("cpu"))
		must(t, err)
		drv := &slow{plain.drv, make(chan struct{}), make(chan struct{}), failures}
		dev, err := Open(t.Context(), WithDevice(drv))
		must(t, err)
		b, pooled := filled(t, dev, 7), filled(t, dev, 1)
		must(t, pooled.Close())
		var v [1]byte
		done := make(chan error)
		go func() { done <- b.Read(t.Context(), Transfer{Host: HostBytes(v[:]), Width: 1, Count: 1}) }()
		<-drv.reading
		must(t, b.Close())
		other := filled(t, dev, 9)
		drv.on <- struct{}{}
		if failures > 0 {
			<-drv.reading
			if n := dev.Stats().PooledBytes; n != 0 {
				t.Errorf("%d bytes in the pool when the read is tried again", n)
			}
			third := filled(t, dev, 10)
			drv.on <- struct{}{}
			defer func() { must(t, third.Close()) }()
		}
		if err := <-done; !errors.Is(err, want) || want == nil && (err != nil || v[0] != 7) {
			t.Errorf("%d failures: %d, %v", failures, v[0], err)
		}
		if s := dev.Stats(); s.PooledBytes != 16 { // what was read is there for others
			t.Errorf("%d failures: %d bytes in the pool", failures, s.PooledBytes)
		}
		must(t, errors.Join(other.Close(), dev.Close(), plain.Close()))
	}
}

// TestPoolOfManySizes has buffers of ever new sizes pass through the pool, which must not remember them all.
func TestPoolOfManySizes(t *testing.T) {
	dev, err := Open(t.Context(), WithDriver("cpu"))
	must(t, err)
	dev.poolLimit = 1 << 20
	for i := range 3000 {
		b, err := dev.NewBuffer(uint64(16 * (i + 1)))
		must(t, err)
		must(t, b.Close())
	}
	ids := int(dev.buffers.last) - len(dev.buffers.free)
	if n := dev.Stats().PooledBytes; n == 0 || n > dev.poolLimit || ids > 100 {
		t.Errorf("%d bytes are kept in %d buffers", n, ids)
	}
	must(t, dev.Close())
}

// slowRefusal holds a submission until it is told to, and refuses it then.
type slowRefusal struct {
	*moody
	came, proceed chan struct{}
	refused       bool
}

func (s *slowRefusal) Submit(l *driver.CommandList) error {
	if s.refused {
		return s.moody.Submit(l)
	}
	s.refused = true
	close(s.came)
	<-s.proceed
	return errMood
}

// TestCollectedWhileRefused collects a batch while the one before is being refused. It goes with that, because what it reads may be
// wrong, and so do its binding sets.
func TestCollectedWhileRefused(t *testing.T) {
	dev, m, k := openMoody(t)
	a, b, c, d := filled(t, dev, 0), filled(t, dev, 1), filled(t, dev, 5), filled(t, dev, 2)
	slow := &slowRefusal{moody: m, came: make(chan struct{}), proceed: make(chan struct{})}
	dev.drv, dev.queue.drv = slow, slow
	add := func(to, from *Buffer) error {
		return k.Dispatch([3]uint32{1, 1, 1}, nil, Arg{Buffer: to}, Arg{Buffer: from})
	}
	must(t, add(a, b))
	flushed := make(chan error)
	go func() { flushed <- dev.Flush() }()
	<-slow.came
	must(t, add(c, a))
	close(slow.proceed)
	if err := <-flushed; !errors.Is(err, errMood) {
		t.Errorf("Flush: got error %v", err)
	}
	for _, failed := range []*Buffer{a, c} {
		if err := failed.Sync(t.Context()); !errors.Is(err, errMood) {
			t.Errorf("Sync of what was not written: got error %v", err)
		}
	}
	must(t, errors.Join(c.Renew(), c.Clear(0, 16), add(c, d)))
	var sum [1]byte
	must(t, c.Read(t.Context(), Transfer{Host: HostBytes(sum[:]), Width: 1, Count: 1}))
	if sum[0] != 2 || len(dev.sets) != 1 || len(m.sets) != 1 {
		t.Errorf("the sum is %d, %d sets, %d in the driver", sum[0], len(dev.sets), len(m.sets))
	}
}
