// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// faultSource has functions that have reference implementations.
const faultSource = `
fn inc(i: u32) { x[i] = x[i] + by; }
fn mix(i: u32) { y[i] = y[i] * 3u + x[(i * 7u) % 60u]; }
fn keep(i: u32) { z[i] = z[i] + x[i] + 1u; }
fn small(i: u32) { b[i] = b[i] + x[i]; }
fn swap(i: u32) { x[i] = y[i] ^ z[i]; }
fn sync(i: u32) { x[i] = x[i] * 5u; }
fn own(i: u32) { z[i] = z[i] + 2u; }`

const faultItems = 60

var faultReferences = map[string]reference{
	"inc":   func(i uint32, m memory) { m.set("x", i, m.at("x", i)+m.values["by"]) },
	"mix":   func(i uint32, m memory) { m.set("y", i, m.at("y", i)*3+m.at("x", i*7%faultItems)) },
	"keep":  func(i uint32, m memory) { m.set("z", i, m.at("z", i)+m.at("x", i)+1) },
	"small": func(i uint32, m memory) { m.set("b", i, m.at("b", i)+m.at("x", i)) },
	"swap":  func(i uint32, m memory) { m.set("x", i, m.at("y", i)^m.at("z", i)) },
	"sync":  func(i uint32, m memory) { m.set("x", i, m.at("x", i)*5) },
	"own":   func(i uint32, m memory) { m.set("z", i, m.at("z", i)+2) },
}

// stuff is the arrays of the faults' tests.
type stuff struct {
	cr      *cruncher.Cruncher
	x, y, z *cruncher.Array[uint32]
	b       *cruncher.Array[uint8]
}

func newStuff(t *testing.T, devices []*gpu.Device, opts ...cruncher.Option) *stuff {
	t.Helper()
	s := &stuff{
		cr: onDevices(t, devices, len(devices), faultSource, opts...),
		x:  wrap(t, "x", count(faultItems, uint32(1))), y: newArray[uint32](t, "y", faultItems),
		z: newArray[uint32](t, "z", faultItems), b: wrap(t, "b", count(faultItems, uint8(9))),
	}
	edit(s.y).PartialRead(true)
	edit(s.z).Read(false).Write(false)
	return s
}

// values are all elements that the host has.
func (s *stuff) values() []uint32 {
	v := slices.Concat(s.x.Data(), s.y.Data(), s.z.Data())
	for _, e := range s.b.Data() {
		v = append(v, uint32(e))
	}
	return v
}

// flagged names an array with flags of its own.
func flagged(a *cruncher.Any, read, partial, write bool) cruncher.Param {
	edit(a).Read(read).PartialRead(partial).Write(write)
	return cruncher.Params(a)
}

type computing func(ctx context.Context, id int, kernels string, r cruncher.Range, ps ...cruncher.Param) error

var faultRange = cruncher.Range{Global: faultItems, Local: 4}

// batched is calls that depend on each other in every way that a batch has to keep in mind.
func (s *stuff) batched(ctx context.Context, compute computing) error {
	by := func(n uint32) cruncher.Param { return cruncher.NewScalar("by", n) }
	x, y, b := flagged(s.x.Any, true, false, true), flagged(s.y.Any, false, true, true), flagged(s.b.Any, true, false, true)
	z, quiet := flagged(s.z.Any, false, false, false), flagged(s.x.Any, false, false, false)
	for k := range uint32(2) {
		if err := errors.Join(
			compute(ctx, 1, "inc", faultRange, x, by(k)),
			compute(ctx, 2, "mix keep", faultRange, x, y, z),
			compute(ctx, 3, "small", faultRange, x, b),
			compute(ctx, 4, "inc", cruncher.Range{Global: 30, Local: 4, Offset: 7}, quiet, by(100)), // x is brought before
			compute(ctx, 5, "keep", faultRange, quiet, z),
			compute(ctx, 6, "mix", faultRange, x, y), // the host's x
			compute(ctx, 7, "inc", cruncher.Range{Global: faultItems, Local: 4, Repeat: 2, SyncKernel: "sync"}, x, by(2)),
		); err != nil {
			return err
		}
	}
	return compute(ctx, 8, "swap", faultRange, x, y, z)
}

// TestBatchFaults loses a device at each operation of a batch. Either the others have everything, and the results are those without
// a loss, on the host and on the devices; or the batch is stale, nothing has changed on the host, and the same calls give the
// same results once more.
func TestBatchFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 90, 300)
	devices, _ := openFaulty(t, faultReferences, []failure{never})
	ref := newStuff(t, devices)
	check(t, ref.cr.Batch(t.Context(), func(b *cruncher.Batch) error { return ref.batched(t.Context(), b.Compute) }))
	check(t, ref.cr.Fetch(t.Context(), ref.x.Any, ref.y.Any, ref.z.Any, ref.b.Any))
	one := newStuff(t, devices)
	check(t, one.batched(t.Context(), one.cr.Compute))
	check(t, one.cr.Fetch(t.Context(), one.x.Any, one.y.Any, one.z.Any, one.b.Any))
	same(t, "a batch and its calls", ref.values(), one.values())
	for n, opt := range map[int]cruncher.Option{2: even(), 3: shifting()} {
		everyFault(t, n, false, func(t *testing.T, victim int, plans []failure) bool {
			devices, drivers := openFaulty(t, faultReferences, plans)
			s := newStuff(t, devices, opt)
			before := s.values()
			batch := func() (queued, err error) {
				err = s.cr.Batch(t.Context(), func(b *cruncher.Batch) error {
					queued = s.batched(t.Context(), b.Compute)
					return nil
				})
				return queued, err
			}
			queued, err := batch()
			switch {
			case err != nil:
				refused(t, "the batch", err, cruncher.ErrStale)
				same(t, "a stale batch", s.values(), before)
			case queued != nil: // the calls before came back
				refused(t, "a call", queued, cruncher.ErrStale)
			}
			if queued != nil || err != nil {
				check(t, s.cr.Evict())
				living := slices.DeleteFunc(slices.Clone(devices), func(d *gpu.Device) bool { return d.Usable() != nil })
				again := newStuff(t, living, opt)
				check(t, again.cr.Batch(t.Context(), func(b *cruncher.Batch) error { return again.batched(t.Context(), b.Compute) }))
				check(t, again.cr.Fetch(t.Context(), again.x.Any, again.y.Any, again.z.Any, again.b.Any))
				same(t, "once more", again.values(), ref.values())
				leftovers(t, s, devices[:0])
				leftovers(t, again, living)
				return drivers[victim].IsLost()
			}
			fired := drivers[victim].IsLost()
			err = s.cr.Fetch(t.Context(), s.x.Any, s.y.Any, s.z.Any, s.b.Any)
			if err != nil && !fired && drivers[victim].IsLost() { // lost with what only it had
				refused(t, "fetching", err, cruncher.ErrStale)
			} else {
				check(t, err)
				same(t, "after a loss", s.values(), ref.values())
			}
			fired = drivers[victim].IsLost()
			leftovers(t, s, devices)
			return fired
		})
	}
}

// TestBatchBeginnings has arrays that live on devices alone when a batch begins. What of them the batch has not written over is where it
// was; if it is not on a device that lives any more, the batch is stale and changes nothing. It is never wrong.
func TestBatchBeginnings(t *testing.T) {
	compute := func(s *stuff) (queued, err error) {
		z, x := flagged(s.z.Any, false, false, false), flagged(s.x.Any, true, false, true)
		err = s.cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			queued = errors.Join(
				b.Compute(t.Context(), 1, "inc", faultRange, x, cruncher.NewScalar("by", uint32(1))),
				b.Compute(t.Context(), 2, "keep", faultRange, z, x),
				b.Compute(t.Context(), 3, "keep", cruncher.Range{Global: 20, Local: 4, Offset: 11}, z, x),
				b.Compute(t.Context(), 4, "swap", faultRange, x, flagged(s.y.Any, false, true, false), flagged(s.z.Any, false, false, true)),
			)
			return nil
		})
		return queued, err
	}
	begin := func(s *stuff) {
		check(t, s.cr.Compute(t.Context(), 9, "own", faultRange, flagged(s.z.Any, false, false, false)))
	}
	devices, _ := openFaulty(t, faultReferences, []failure{never})
	ref := newStuff(t, devices)
	begin(ref)
	check(t, errors.Join(compute(ref)))
	for _, n := range []int{2, 3} {
		stale := 0
		everyFault(t, n, false, func(t *testing.T, victim int, plans []failure) bool {
			devices, drivers := openFaulty(t, faultReferences, plans)
			s := newStuff(t, devices, shifting())
			begin(s)
			before := s.values()
			switch queued, err := compute(s); {
			case err != nil:
				refused(t, "what is nowhere else", err, cruncher.ErrStale)
				same(t, "stale", s.values(), before)
				stale++
			case queued != nil:
				refused(t, "what is nowhere else", queued, cruncher.ErrStale)
				stale++
			default:
				same(t, "recovered", s.values(), ref.values())
			}
			fired := drivers[victim].IsLost()
			leftovers(t, s, devices)
			return fired
		})
		if stale == 0 {
			t.Error("what only the lost device had was there all the same")
		}
	}
}

// TestBatchElsewhere loses a device before the calls of a batch, which does not need what was there alone, and another batch after its
// calls.
func TestBatchElsewhere(t *testing.T) {
	devices, drivers := openFaulty(t, faultReferences, []failure{never, never})
	s := newStuff(t, devices, even())
	z, x := flagged(s.z.Any, false, false, false), flagged(s.x.Any, true, false, true)
	check(t, s.cr.Compute(t.Context(), 1, "own", faultRange, z))
	batch := func(before, after func()) error {
		return s.cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			before()
			for range 4 {
				check(t, b.Compute(t.Context(), 2, "inc", faultRange, x, cruncher.NewScalar("by", uint32(1))))
			}
			after()
			return nil
		})
	}
	check(t, batch(func() { drivers[1].Lose() }, func() {}))
	same(t, "x", s.x.Data(), count(faultItems, uint32(5)))
	refused(t, "the other half", s.cr.Fetch(t.Context(), s.z.Any), cruncher.ErrStale)
	drivers[1] = reopen(t, devices[1], faultReferences, never)
	refused(t, "the batch", batch(func() {}, func() { drivers[1].Lose() }), cruncher.ErrStale)
	same(t, "x", s.x.Data(), count(faultItems, uint32(5)))
}

// leftovers wants no memory to be left on devices that live.
func leftovers(t *testing.T, s *stuff, devices []*gpu.Device) {
	t.Helper()
	check(t, s.cr.Close())
	for i, d := range devices {
		if st := d.Stats(); d.Usable() == nil && (st.Buffers != 0 || st.LiveBytes != 0) {
			t.Errorf("device %d: %d buffers are left, with %d bytes", i, st.Buffers, st.LiveBytes)
		}
	}
}

// TestCallFaults loses a device at each operation of calls of every kind. What the others compute is what a single device does; only
// what a call found on the lost device and nowhere else is stale, and then nothing has changed.
func TestCallFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 170, 500)
	by := cruncher.NewScalar("by", uint32(3))
	for name, call := range map[string]func(s *stuff) (string, cruncher.Range, cruncher.Param){
		"parts": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "inc", faultRange, cruncher.Params(flagged(s.x.Any, false, true, true), by)
		},
		"blobs": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			r := cruncher.Range{Global: faultItems, Local: 4, Blobs: 3}
			return "inc small inc", r, cruncher.Params(flagged(s.x.Any, false, true, true), by, flagged(s.b.Any, false, true, true))
		},
		"blobs that stay": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			r := cruncher.Range{Global: faultItems, Local: 4, Blobs: 3}
			return "keep", r, cruncher.Params(flagged(s.x.Any, false, true, true), by, flagged(s.z.Any, false, false, false))
		},
		"others' elements": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "mix inc", faultRange, cruncher.Params(flagged(s.x.Any, true, false, true), by, s.y)
		},
		"up and not back": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "mix inc", faultRange, cruncher.Params(flagged(s.x.Any, true, false, false), by, s.y)
		},
		"tracked, up and not back": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			s.x.Track()
			return "mix inc", faultRange, cruncher.Params(flagged(s.x.Any, true, false, false), by, s.y)
		},
		"others' tracked elements": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			s.x.Track()
			return "mix inc", faultRange, cruncher.Params(flagged(s.x.Any, true, false, true), by, s.y)
		},
		"repeats": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			s.x.Track()
			r := cruncher.Range{Global: faultItems, Local: 4, Repeat: 3, SyncKernel: "sync"}
			return "inc", r, cruncher.Params(flagged(s.x.Any, true, false, true), by)
		},
		"repeats of the middle": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			r := cruncher.Range{Global: 40, Local: 4, Offset: 10, Repeat: 3, SyncKernel: "sync"}
			return "inc", r, cruncher.Params(flagged(s.x.Any, false, true, true), by)
		},
		"from one device": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			edit(s.x).WriteAll(true)
			return "mix inc", faultRange, cruncher.Params(flagged(s.x.Any, true, false, true), by, s.y)
		},
		"on the devices": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "own", faultRange, flagged(s.z.Any, false, false, false)
		},
		"only written": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			edit(s.z).WriteOnly(true)
			return "own", faultRange, flagged(s.z.Any, false, false, true)
		},
		"transfers": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "inc", cruncher.Range{Global: faultItems, TransferOnly: true}, cruncher.Params(flagged(s.x.Any, true, false, true), by)
		},
		"bytes": func(s *stuff) (string, cruncher.Range, cruncher.Param) {
			return "small", cruncher.Range{Global: 37, Local: 1, Offset: 5}, cruncher.Params(flagged(s.b.Any, false, true, true), s.x)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const calls = 2
			var want [calls + 1][]uint32
			devices, _ := openFaulty(t, faultReferences, []failure{never})
			ref := newStuff(t, devices)
			for k := range want {
				if k == calls {
					check(t, ref.cr.Fetch(t.Context(), ref.x.Any, ref.y.Any, ref.z.Any))
				} else {
					kernels, r, params := call(ref)
					check(t, ref.cr.Compute(t.Context(), 1, kernels, r, params))
				}
				want[k] = ref.values()
			}
			everyFault(t, 3, true, func(t *testing.T, victim int, plans []failure) bool {
				devices, drivers := openFaulty(t, faultReferences, plans)
				s := newStuff(t, devices, shifting())
				firedIn := calls + 1
				for k := range want {
					before, err := s.values(), error(nil)
					if k == calls {
						err = s.cr.Fetch(t.Context(), s.x.Any, s.y.Any, s.z.Any)
					} else {
						kernels, r, params := call(s)
						err = s.cr.Compute(t.Context(), 1, kernels, r, params)
					}
					if drivers[victim].IsLost() {
						firedIn = min(firedIn, k)
					}
					if err == nil {
						same(t, fmt.Sprint("call ", k), s.values(), want[k])
						continue
					}
					if firedIn == 0 {
						t.Errorf("call %d: everything could be computed again: %v", k, err)
					}
					refused(t, "what is nowhere else", err, cruncher.ErrStale)
					same(t, fmt.Sprint("stale call ", k), s.values(), before)
					break
				}
				fired := drivers[victim].IsLost()
				leftovers(t, s, devices)
				return fired
			})
		})
	}
}

// TestAllFaults loses all devices, one after the other.
func TestAllFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 220, 220)
	for _, batch := range []bool{false, true} {
		for at := range 40 {
			for _, apart := range []int{0, 3} {
				plans := []failure{{at: at, waits: !batch}, {at: at + apart, waits: !batch}}
				devices, drivers := openFaulty(t, faultReferences, plans)
				s := newStuff(t, devices, even())
				before := s.values()
				compute := func() error { return s.batched(t.Context(), s.cr.Compute) }
				if batch {
					compute = func() error {
						return s.cr.Batch(t.Context(), func(b *cruncher.Batch) error { return s.batched(t.Context(), b.Compute) })
					}
				}
				err := compute()
				all := drivers[0].IsLost() && drivers[1].IsLost()
				if any := drivers[0].IsLost() || drivers[1].IsLost(); all && err == nil || err != nil && !all && (!batch || !any) {
					t.Fatalf("lost at %d and %d: %v", at, at+apart, err)
				}
				if err != nil && !errors.Is(err, cruncher.ErrStale) { // that was noticed while another one lived
					refused(t, "all lost", err, gpu.ErrDeviceLost)
				}
				if err != nil && batch && all {
					same(t, "all lost", s.values(), before)
				}
				if all {
					refused(t, "the next call", s.cr.Compute(t.Context(), 1, "own", faultRange, s.z), gpu.ErrDeviceLost)
				}
				leftovers(t, s, devices)
			}
		}
	}
}

// TestWindowFaults loses a device while windows of large arrays move over the devices, and their elements with them.
func TestWindowFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 30, 100)
	const items, most = 120, 256 // bytes: 64 words
	by := cruncher.NewScalar("by", uint32(3))
	for name, c := range map[string]struct {
		kernel                string
		read, write, resident bool
	}{
		"there and back": {"inc", true, true, false},
		"not back":       {"inc", true, false, false},
		"resident":       {"inc", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			everyFault(t, 3, true, func(t *testing.T, victim int, plans []failure) bool {
				devices, drivers := openFaulty(t, faultReferences, plans, gpu.WithMaxBuffer(most))
				cr := onDevices(t, devices, 3, faultSource, cruncher.WithBalancer(&plan{split: func(call int, r balance.Request) []int {
					if slices.Contains(r.Alive, false) {
						return thirds(r, 0)
					}
					return [][]int{{40, 40, 40}, {20, 60, 40}, {60, 20, 40}}[call%3]
				}}))
				x := wrap(t, "x", count(items, uint32(1)))
				edit(x).Read(false).PartialRead(c.read).Write(c.write)
				want, begun := uint32(0), -1
				for call := range 4 {
					before := slices.Clone(x.Data())
					var err error
					if call == 3 {
						err = cr.Fetch(t.Context(), x.Any)
					} else if err = cr.Compute(t.Context(), 1, c.kernel, cruncher.Range{Global: items, Local: 1}, cruncher.Params(x, by)); c.write || c.resident || call == 0 {
						want += 3
					}
					if drivers[victim].IsLost() && begun < 0 {
						begun = call
					}
					if err != nil { // what was there only, or does not fit
						if !errors.Is(err, cruncher.ErrStale) {
							refused(t, fmt.Sprint("windows in call ", call), err, gpu.ErrLimit)
						}
						if c.write || begun < 0 {
							t.Errorf("call %d: %v", call, err)
						}
						same(t, "a failed call", x.Data(), before)
						break
					}
					if c.write || call == 3 {
						v := count(items, 1+want)
						if c.resident {
							v = slices.Repeat([]uint32{want}, items)
						}
						same(t, fmt.Sprint("call ", call), x.Data(), v)
					}
				}
				fired := drivers[victim].IsLost()
				check(t, cr.Close())
				unleaked(t, devices)
				return fired
			})
		})
	}
}
