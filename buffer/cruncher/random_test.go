// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
)

// whim is a balancer without a plan: every call gets other shares.
type whim struct{ rng *rand.Rand }

func (w whim) Split(r balance.Request) ([]int, error) {
	counts := make([]int, r.Devices)
	left := r.Global / r.Step
	last := -1
	for i := range counts {
		if r.Alive != nil && !r.Alive[i] {
			continue
		}
		n := w.rng.IntN(left + 1)
		counts[i], left, last = n*r.Step, left-n, i
	}
	counts[last] += left*r.Step + r.Global%r.Step
	return counts, nil
}
func (w whim) Observe(int, []balance.Sample) {}
func (w whim) Stats(int) balance.Stats       { return balance.Stats{} }

const randomKernels = `
fn scale(i: u32) { for (var k = i * 2u; k < i * 2u + 2u; k++) { x[k] = x[k] * 3u + 1u; } }
fn blend(i: u32) { y[i] = y[i] + i32(x[2u * i] & 0xffu) - 7; z[i] = z[i] + u32(y[i]); }
fn count(i: u32) { if (i % 3u == 0u) { z[i] = z[i] + 5u; } y[i] = y[i] ^ 3; }
`

// world is a set of arrays and a cruncher for them.
type world struct {
	cr *cruncher.Cruncher
	x  *cruncher.Array[uint32] // two elements per item
	y  *cruncher.Array[int16]
	z  *cruncher.Array[uint8]

	still bool // nobody writes to the host's side
}

func (w *world) equal(o *world) bool {
	return slices.Equal(w.x.Data(), o.x.Data()) && slices.Equal(w.y.Data(), o.y.Data()) && slices.Equal(w.z.Data(), o.z.Data())
}

const worldItems = 700

func newWorld(t *testing.T, n int, rng *rand.Rand) *world {
	t.Helper()
	return newWorldOn(t, openDevices(t, n), rng)
}

func newWorldOn(t *testing.T, devices []*gpu.Device, rng *rand.Rand) *world {
	t.Helper()
	w := &world{
		cr: onDevices(t, devices, len(devices), randomKernels, cruncher.WithBalancer(whim{rng})),
		x:  must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("x", 2*worldItems+3)),
		y:  must[*cruncher.Array[int16]](t)(cruncher.NewArray[int16]("y", worldItems)),
		z:  must[*cruncher.Array[uint8]](t)(cruncher.Wrap("z", make([]uint8, worldItems+1))),
	}
	edit(w.x).ElementsPerItem(2)
	return w
}

// step does the same, drawn from rng, to whatever world.
func (w *world) step(t *testing.T, rng *rand.Rand, compute computing) string {
	t.Helper()
	did, err := w.try(t, rng, compute)
	if err != nil {
		t.Fatalf("%s: %v", did, err)
	}
	return did
}

// try is step that may fail.
func (w *world) try(t *testing.T, rng *rand.Rand, compute computing) (string, error) {
	t.Helper()
	var what []string
	for _, a := range []*cruncher.Any{w.x.Any, w.y.Any, w.z.Any} {
		read, partial, write, all := rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(8) == 0
		edit(a).Read(read).PartialRead(partial).Write(write).WriteAll(all)
		what = append(what, fmt.Sprint(a.Name(), " ", read, partial, write, all))
	}
	if rng.IntN(3) == 0 && !w.still {
		k := rng.IntN(worldItems)
		w.x.Data()[k] = rng.Uint32() // by Set it is refused where only the devices have the newest
		w.x.MarkDirty()
		w.z.Data()[k]++ // the caller's own memory
	}
	offset := rng.IntN(worldItems)
	r := cruncher.Range{Global: 1 + rng.IntN(worldItems-offset), Local: []int{1, 8, 64}[rng.IntN(3)], Offset: offset}
	r.Blobs, r.Repeat = rng.IntN(4), 1+rng.IntN(2)
	kernels := [][]string{{"scale"}, {"blend"}, {"count"}, {"scale", "blend"}, {"scale", "count", "blend", "count"}}[rng.IntN(5)]
	if rng.IntN(5) == 0 {
		r.TransferOnly = true
	}
	list := strings.Join(kernels, " ")
	did := fmt.Sprintf("%s; %s %+v", strings.Join(what, "; "), list, r)
	return did, compute(t.Context(), rng.IntN(3), list, r, w.x, w.y, w.z)
}

// TestAnyShares makes 200 calls with shares, sizes and flags drawn at random: on one device, two and three the arrays hold the same
// after each.
func TestAnyShares(t *testing.T) {
	var worlds []*world
	var draws []*rand.Rand
	for n := 1; n <= 3; n++ {
		worlds = append(worlds, newWorld(t, n, rand.New(rand.NewPCG(uint64(n), 2))))
		draws = append(draws, rand.New(rand.NewPCG(7, 7)))
	}
	for call := range 200 {
		var what string
		for i, w := range worlds {
			what = w.step(t, draws[i], w.cr.Compute)
		}
		for i, w := range worlds[1:] {
			if !w.equal(worlds[0]) {
				t.Fatalf("call %d, %d devices: other results than on one\n%s", call, i+2, what)
			}
		}
	}
	for _, w := range worlds {
		check(t, w.cr.Fetch(t.Context(), w.x.Any, w.y.Any, w.z.Any))
	}
	for i, w := range worlds[1:] {
		if !w.equal(worlds[0]) {
			t.Errorf("what %d devices kept is not what one did", i+2)
		}
	}
}
