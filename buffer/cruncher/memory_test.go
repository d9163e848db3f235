// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

const (
	roomSource = `
fn inc(i: u32) { a[i] = a[i] * 3u + 1u; }
fn mix(i: u32) { a[i] = a[i] ^ (b[i] + 1u); }
fn peek(i: u32) { b[i] = b[i] + a[i]; }
`
	roomItems = 256
	roomBytes = 4 * roomItems
)

var roomReferences = map[string]reference{
	"inc":  func(i uint32, m memory) { m.set("a", i, m.at("a", i)*3+1) },
	"mix":  func(i uint32, m memory) { m.set("a", i, m.at("a", i)^(m.at("b", i)+1)) },
	"peek": func(i uint32, m memory) { m.set("b", i, m.at("b", i)+m.at("a", i)) },
}

var (
	roomRange  = cruncher.Range{Global: roomItems, Local: 8}
	neverFault = []failure{never, never, never}
)

// inRoom runs a test with devices that have memory for so many arrays, and with a cruncher that takes no more.
func inRoom(t *testing.T, devices, arrays int, run func(t *testing.T, cr *cruncher.Cruncher, devices []*gpu.Device), opts ...cruncher.Option) {
	t.Helper()
	limit := uint64(arrays * roomBytes)
	t.Run("device", func(t *testing.T) {
		list, _ := openFaulty(t, roomReferences, neverFault[:devices], gpu.WithMemory(limit))
		run(t, onDevices(t, list, devices, roomSource, opts...), list)
	})
	t.Run("cruncher", func(t *testing.T) {
		list, _ := openFaulty(t, roomReferences, neverFault[:devices])
		run(t, onDevices(t, list, devices, roomSource, append(opts, cruncher.WithMemory(limit))...), list)
	})
}

// TestLeave uses more arrays than devices have memory for: those used longest ago leave.
func TestLeave(t *testing.T) {
	inRoom(t, 2, 2, func(t *testing.T, cr *cruncher.Cruncher, devices []*gpu.Device) {
		x, y, z := newArray[uint32](t, "a", roomItems), newArray[uint32](t, "a", roomItems), newArray[uint32](t, "a", roomItems)
		compute := func(a *cruncher.Array[uint32], up int64) {
			t.Helper()
			got := moved(cr, func() { check(t, a.Compute(t.Context(), cr, 1, "inc", roomRange)) })
			if want := (cruncher.Traffic{Up: up, Down: roomBytes}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			for _, d := range devices {
				if n := d.Stats().LiveBytes; n > 2*roomBytes {
					t.Errorf("%d bytes are in use", n)
				}
			}
		}
		compute(x, 2*roomBytes) // to each device
		compute(y, 2*roomBytes)
		compute(x, roomBytes)   // each lacks what the other wrote
		compute(z, 2*roomBytes) // y leaves
		compute(x, roomBytes)
		compute(y, 2*roomBytes) // z leaves
		compute(x, roomBytes)
		same(t, "x", x.Data(), slices.Repeat([]uint32{40}, roomItems))
		same(t, "y", y.Data(), slices.Repeat([]uint32{4}, roomItems))
		same(t, "z", z.Data(), slices.Repeat([]uint32{1}, roomItems))
	}, even())
}

// TestStays fills devices with what nobody else has: it stays.
func TestStays(t *testing.T) {
	inRoom(t, 1, 2, func(t *testing.T, cr *cruncher.Cruncher, _ []*gpu.Device) {
		ctx := t.Context()
		x, y, z := newArray[uint32](t, "a", roomItems), newArray[uint32](t, "a", roomItems), newArray[uint32](t, "b", roomItems)
		for _, a := range []*cruncher.Array[uint32]{x, y} {
			edit(a).Read(false).Write(false)
			check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
		}
		peek := func() error { return cr.Compute(ctx, 2, "peek", roomRange, x, z) }
		refused(t, "no room", peek(), gpu.ErrNoMemory)
		check(t, x.Compute(ctx, cr, 1, "inc", roomRange))
		check(t, cr.Fetch(ctx, y.Any))
		check(t, peek())
		same(t, "z", z.Data(), slices.Repeat([]uint32{4}, roomItems))
		check(t, y.Compute(ctx, cr, 1, "inc", roomRange)) // z leaves
		check(t, cr.Fetch(ctx, x.Any, y.Any))
		same(t, "x", x.Data(), slices.Repeat([]uint32{4}, roomItems))
		same(t, "y", y.Data(), slices.Repeat([]uint32{4}, roomItems))

		err := cr.Batch(ctx, func(b *cruncher.Batch) error {
			check(t, b.Compute(ctx, 2, "peek", roomRange, x, z)) // y leaves
			refused(t, "in a batch", b.Compute(ctx, 1, "inc", roomRange, y), gpu.ErrNoMemory)
			return b.Compute(ctx, 2, "peek", roomRange, x, z)
		})
		check(t, err)
		same(t, "z", z.Data(), slices.Repeat([]uint32{12}, roomItems))
	})
	inRoom(t, 1, 1, func(t *testing.T, cr *cruncher.Cruncher, _ []*gpu.Device) {
		x, z := newArray[uint32](t, "a", roomItems), newArray[uint32](t, "b", roomItems)
		refused(t, "more than there is", cr.Compute(t.Context(), 1, "peek", roomRange, x, z), gpu.ErrNoMemory)
		check(t, x.Compute(t.Context(), cr, 1, "inc", roomRange))
		same(t, "x", x.Data(), slices.Repeat([]uint32{1}, roomItems))
	})
}

// TestUntold has the caller write to an array on the host that does not go up: what its device had counts all the same.
func TestUntold(t *testing.T) {
	inRoom(t, 1, 1, func(t *testing.T, cr *cruncher.Cruncher, _ []*gpu.Device) {
		ctx := t.Context()
		told, other := newArray[uint32](t, "a", roomItems), newArray[uint32](t, "a", roomItems)
		untold := wrap(t, "a", make([]uint32, roomItems))
		for _, a := range []*cruncher.Array[uint32]{told, untold} {
			edit(a).Read(false)
			check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
			a.Data()[5] = 100
			a.MarkDirty()
			refused(t, "another", other.Compute(ctx, cr, 1, "inc", roomRange), gpu.ErrNoMemory)
			check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
			same(t, "it", a.Data(), slices.Repeat([]uint32{4}, roomItems))
			check(t, cr.Evict(a.Any))
		}
	})
}

// TestElsewhere has an array leave a device because another device has it.
func TestElsewhere(t *testing.T) {
	shares := [][]int{{roomItems, 0}, {0, roomItems}, {roomItems, 0}, {0, roomItems}}
	inRoom(t, 2, 2, func(t *testing.T, cr *cruncher.Cruncher, _ []*gpu.Device) {
		ctx := t.Context()
		x, z := newArray[uint32](t, "a", roomItems), newArray[uint32](t, "b", roomItems)
		big := newArray[uint32](t, "a", 2*roomItems)
		edit(x).Read(false).Write(false)
		check(t, x.Compute(ctx, cr, 1, "inc", roomRange))                                  // on the first
		check(t, cr.Compute(ctx, 1, "peek", roomRange, x, z))                              // on the second, which gets a copy
		check(t, big.Compute(ctx, cr, 1, "inc", roomRange))                                // on the first, without room for x
		refused(t, "the last", big.Compute(ctx, cr, 1, "inc", roomRange), gpu.ErrNoMemory) // on the second
		check(t, cr.Fetch(ctx, x.Any))
		same(t, "x", x.Data(), slices.Repeat([]uint32{1}, roomItems))
	}, fixed(shares))
}

// TestWidenedRoom has arrays of bytes, which take three buffers each, meet limits of all sizes.
func TestWidenedRoom(t *testing.T) {
	const source = `fn inc(i: u32) { a[i] = a[i] + 1u; }`
	references := map[string]reference{"inc": func(i uint32, m memory) { m.set("a", i, m.at("a", i)+1) }}
	fits := false
	for limit := uint64(64); !fits; limit += 64 {
		devices, _ := openFaulty(t, references, []failure{never}, gpu.WithMemory(limit))
		cr := onDevices(t, devices, 1, source)
		x, y := newArray[uint8](t, "a", 64), newArray[uint8](t, "a", 64)
		fits = true
		for range 2 {
			for _, a := range []*cruncher.Array[uint8]{x, y} {
				before := a.Data()[63]
				err := a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 64})
				switch {
				case errors.Is(err, gpu.ErrNoMemory):
					fits = false
				case err != nil:
					t.Fatal(err)
				default:
					before++
				}
				same(t, "the array", a.Data(), slices.Repeat([]uint8{before}, 64))
			}
		}
		check(t, cr.Close())
		if n := devices[0].Stats().LiveBytes; n != 0 {
			t.Errorf("limit %d: %d bytes are left", limit, n)
		}
		if limit > 4096 {
			t.Fatal("never enough")
		}
	}
}

// crowd is several arrays of each name, of which each call uses one.
type crowd struct {
	cr   *cruncher.Cruncher
	a, b []*cruncher.Array[uint32]
}

func newCrowd(t *testing.T, devices int, opts ...cruncher.Option) *crowd {
	list, _ := openFaulty(t, roomReferences, neverFault[:devices])
	c := &crowd{cr: onDevices(t, list, devices, roomSource, opts...)}
	for i := range 4 {
		c.a = append(c.a, newArray[uint32](t, "a", roomItems))
		c.b = append(c.b, newArray[uint32](t, "b", roomItems))
		if i%2 == 0 {
			c.b[i] = wrap(t, "b", make([]uint32, roomItems))
		}
	}
	return c
}

// step makes a random call, if need be after fetching everything. What it writes on the host goes up.
func (c *crowd) step(t *testing.T, rng *rand.Rand, fetch bool) error {
	i, k := rng.IntN(4), rng.IntN(4)
	for _, x := range []*cruncher.Array[uint32]{c.a[i], c.b[k]} {
		edit(x).Read(rng.IntN(3) == 0).PartialRead(rng.IntN(3) == 0).Write(rng.IntN(2) == 0)
		if at, v := rng.IntN(roomItems), rng.Uint32(); rng.IntN(4) == 0 && x.Flags().Read && !x.Flags().PartialRead {
			x.Data()[at] = v
			x.MarkDirty()
		}
	}
	kernels := []string{"inc", "mix", "peek", "peek mix"}[rng.IntN(4)]
	from := 8 * rng.IntN(roomItems/8)
	r := cruncher.Range{Global: 8 * (1 + rng.IntN((roomItems-from)/8)), Local: 8, Offset: from}
	if fetch {
		for j := range c.a {
			check(t, c.cr.Fetch(t.Context(), c.a[j].Any, c.b[j].Any))
		}
		check(t, c.cr.Evict())
	}
	return c.cr.Compute(t.Context(), rng.IntN(3), kernels, r, c.a[i], c.b[k])
}

// TestCrowd makes random calls with several arrays on devices that have no room for all of them: the results are those of one that has.
func TestCrowd(t *testing.T) {
	for devices := 1; devices <= 3; devices++ {
		free := newCrowd(t, 1)
		tight := newCrowd(t, devices, cruncher.WithMemory(5*roomBytes), shifting())
		seed, full := rand.New(rand.NewPCG(3, uint64(devices))), 0
		for call := range 400 {
			s := seed.Uint64()
			draw := func() *rand.Rand { return rand.New(rand.NewPCG(s, 1)) }
			err := tight.step(t, draw(), false)
			if errors.Is(err, gpu.ErrNoMemory) {
				full++
				check(t, tight.step(t, draw(), true))
				check(t, free.step(t, draw(), true))
			} else {
				check(t, err)
				check(t, free.step(t, draw(), false))
			}
			for i := range free.a {
				same(t, "a", tight.a[i].Data(), free.a[i].Data())
				same(t, "b", tight.b[i].Data(), free.b[i].Data())
			}
			if t.Failed() {
				t.Fatalf("%d devices, call %d", devices, call)
			}
		}
		if full == 0 {
			t.Error("there was always room")
		}
		t.Logf("%d devices: %d calls without room", devices, full)
	}
}
