// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var randomCases = []testCase{
	{"RandomLists", randomLists},
	{"RandomWords", randomWords},
}

// model is what a device should be: it executes lists on plain memory with the references.
type model struct {
	objects driver.Objects
	buffers map[driver.BufferID][]byte
	kernels map[driver.KernelID]program
	sets    map[driver.BindingsID][]driver.Binding
}

func (m *model) submit(l *driver.CommandList) error {
	if err := m.objects.Check(l); err != nil {
		return err
	}
	for c := range l.All() {
		m.execute(l, c)
	}
	return nil
}

func (m *model) execute(l *driver.CommandList, c driver.Command) {
	switch w := c.Words; c.Op {
	case driver.OpWrite:
		to := m.buffers[driver.BufferID(w[0])][c.U64(1):]
		n := copy(to, l.Data[w[3]].Mem())
		clear(to[n : (n+3)/4*4])
	case driver.OpCopy:
		copy(m.buffers[driver.BufferID(w[0])][c.U64(1):][:c.U64(6)], m.buffers[driver.BufferID(w[3])][c.U64(4):])
	case driver.OpClear:
		clear(m.buffers[driver.BufferID(w[0])][c.U64(1):][:c.U64(3)])
	case driver.OpBind:
		m.sets[driver.BindingsID(w[0])] = c.Bindings()
	case driver.OpUnbind:
		delete(m.sets, driver.BindingsID(w[0]))
	case driver.OpDispatch:
		var storage [][]byte
		for _, b := range m.sets[driver.BindingsID(w[1])] {
			storage = append(storage, m.buffers[b.Buffer][b.Offset:][:b.Size])
		}
		var block []byte
		if k := m.kernels[driver.KernelID(w[0])]; k.layout.HasParams() {
			block = l.Params[w[5]:]
		}
		m.kernels[driver.KernelID(w[0])].reference([3]uint32(w[2:5]), block, storage)
	}
}

// randomPrograms never reach beyond a binding and never touch an element twice, so what they compute is certain.
var randomPrograms = []program{affine, scale, offset, bump, blend, swap, step}

// randomRig is a rig beside a model with the same objects: buffers and kernels 1, 2, 3 ...
type randomRig struct {
	*rig
	*rand.Rand
	model model
}

const (
	randomBuffers = 5
	randomSets    = 8
	randomWordsOf = 512 // words of a buffer
)

func newRandomRig(r *rig, seed uint64) *randomRig {
	g := &randomRig{rig: r, Rand: rand.New(rand.NewPCG(seed, 1))}
	g.model = model{
		driver.NewObjects(r.info),
		map[driver.BufferID][]byte{},
		map[driver.KernelID]program{},
		map[driver.BindingsID][]driver.Binding{},
	}
	for range randomBuffers {
		id := r.buffer(4 * randomWordsOf)
		g.model.buffers[id] = make([]byte, 4*randomWordsOf)
		r.check(g.model.objects.AddBuffer(id, 4*randomWordsOf, false, false))
	}
	for _, p := range randomPrograms {
		id := r.kernel(p)
		k, err := p.kernel()
		r.check(err)
		g.model.kernels[id] = p
		r.check(g.model.objects.AddKernel(id, k))
	}
	return g
}

// submitBoth wants the device and the model to agree on whether the list is right, and if not, on what is wrong with it.
func (g *randomRig) submitBoth() bool {
	g.Helper()
	want, got := g.model.submit(&g.list), g.dev.Submit(&g.list)
	if (want == nil) != (got == nil) || fault.Code(want) != fault.Code(got) {
		g.Fatalf("got error %v, want %v, for\n%d", got, want, g.list.Words)
	}
	if got != nil {
		if _, ok := errors.AsType[*fault.OpError](got); !ok {
			g.Errorf("the error is not an OpError: %v", got)
		}
	}
	g.list.Reset()
	g.bound = map[driver.BindingsID]bool{}
	for id := range g.model.sets {
		g.bound[id] = true
	}
	return got == nil
}

func (g *randomRig) compare() {
	g.Helper()
	for id, want := range g.model.buffers {
		g.want(id, words(want))
	}
	if g.Failed() {
		g.FailNow()
	}
}

// finish unbinds all sets, whose ids are not the rig's.
func (g *randomRig) finish() {
	g.Helper()
	for id := range g.model.sets {
		g.list.Unbind(id)
	}
	g.submitBoth()
	g.compare()
}

// pick returns a number below n, and seldom one that is too large.
func (g *randomRig) pick(n int) uint32 {
	if g.IntN(200) == 0 {
		return uint32(n) + g.Uint32N(3)
	}
	return g.Uint32N(uint32(n))
}

func (g *randomRig) bufferID() driver.BufferID { return driver.BufferID(1 + g.pick(randomBuffers)) }

// part returns an offset and a size within a buffer, in bytes.
func (g *randomRig) part() (offset, size uint64) {
	o := g.pick(randomWordsOf)
	return 4 * uint64(o), 4 * uint64(g.Uint32N(max(1, randomWordsOf-min(o, randomWordsOf-1))))
}

func (g *randomRig) window() driver.Binding {
	o := uint64(g.IntN(4*randomWordsOf/256)) * 256
	return driver.Binding{Buffer: g.bufferID(), Offset: o, Size: 4 * (1 + g.Uint64N((4*randomWordsOf-o)/4))}
}

// command adds a command that is likely to be right.
func (g *randomRig) command() {
	switch g.IntN(8) {
	case 0:
		offset, size := g.part()
		g.write(g.bufferID(), offset, pattern(int(size/4), g.Uint32())...)
	case 1:
		offset, size := g.part()
		from, _ := g.part()
		g.list.Copy(g.bufferID(), offset, g.bufferID(), from/2, size/2&^3)
	case 2:
		offset, size := g.part()
		g.list.Clear(g.bufferID(), offset, size)
	case 3, 4:
		g.define()
	default:
		g.launch()
	}
}

// define gives an id that is free, mostly, a set for one of the programs.
func (g *randomRig) define() {
	id := driver.BindingsID(1 + g.pick(randomSets))
	if g.bound[id] && g.IntN(10) > 0 {
		g.list.Unbind(id)
	}
	p := randomPrograms[g.IntN(len(randomPrograms))]
	entries := make([]driver.Binding, p.layout.Storage())
	for i := range entries {
		entries[i] = g.window()
	}
	g.list.Bind(id, p.layout, entries)
	g.bound[id] = true
}

// launch dispatches a program whose layout some set has.
func (g *randomRig) launch() {
	id := driver.BindingsID(1 + g.IntN(randomSets))
	kernel := driver.KernelID(1 + g.pick(len(randomPrograms)))
	for c := range g.list.All() { // a set of this very list has a known layout
		if c.Op == driver.OpBind && driver.BindingsID(c.Words[0]) == id {
			kernel = g.programFor(driver.Layout(c.U64(1)))
		}
	}
	n := [3]uint32{g.Uint32N(5), g.Uint32N(3), g.Uint32N(3)}
	g.dispatch(kernel, id, n, g.Uint32N(9), g.Uint32(), g.Uint32N(randomWordsOf))
}

func (g *randomRig) programFor(l driver.Layout) driver.KernelID {
	first := g.IntN(len(randomPrograms))
	for i := range randomPrograms {
		if k := (first + i) % len(randomPrograms); randomPrograms[k].layout == l {
			return driver.KernelID(k + 1)
		}
	}
	return 1
}

// extremes are words at which sums, products and conversions go wrong.
var extremes = []uint32{0, 1, 3, 4, 255, 256, 1 << 20, 1<<31 - 4, 1 << 31, math.MaxUint32 - 3, math.MaxUint32}

// damage spoils a list: a bit, a word, two words that change places, one that is missing, or the memory of a write.
func (g *randomRig) damage() {
	w := g.list.Words
	i, j := g.IntN(len(w)), g.IntN(len(w))
	switch g.IntN(7) {
	case 0, 1:
		w[i] ^= 1 << g.IntN(32)
	case 2, 3:
		w[i] = extremes[g.IntN(len(extremes))]
	case 4:
		w[i], w[j] = w[j], w[i]
	case 5:
		g.list.Words = slices.Delete(w, i, i+1)
	default:
		for k := range g.list.Data {
			h := &g.list.Data[k]
			*h = h.Part(0, g.IntN(h.Size+1)) // also nothing, and parts of words
			h.Size += int(extremes[g.IntN(len(extremes))]) * g.IntN(2)
		}
	}
}

// seeds are those of a case: one, or in long tests many.
func seeds() int {
	if os.Getenv("SUBLET_LONG") != "" {
		return 20
	}
	return 1
}

// Lists of commands that mostly make sense do on the device what they do in the model.
func randomLists(r *rig) {
	for seed := range seeds() {
		s := r
		if seed > 0 {
			s = r.second() // a device of its own
		}
		listsOf(newRandomRig(s, uint64(seed+1)))
	}
}

func listsOf(g *randomRig) {
	accepted := 0
	for i := range 400 {
		for range 1 + g.IntN(6) {
			g.command()
		}
		if g.IntN(6) == 0 {
			g.damage()
		}
		if g.submitBoth() {
			accepted++
		}
		if i%20 == 19 {
			g.compare()
		}
	}
	g.finish()
	if accepted < 25 || accepted > 350 {
		g.Errorf("%d of 400 lists were right: they test too little", accepted)
	}
}

// Words without any sense are refused, and nothing happens.
func randomWords(r *rig) {
	g := newRandomRig(r, 2)
	for id := range g.model.buffers {
		g.write(id, 0, pattern(randomWordsOf, uint32(id))...)
	}
	g.submitBoth()
	for range 300 {
		g.list.Data = append(g.list.Data, zeros(16))
		g.list.Params = make([]byte, 256*g.IntN(3))
		for range 1 + g.IntN(20) {
			w := g.Uint32N(8)
			switch g.IntN(4) {
			case 0:
				w = g.Uint32()
			case 1: // a header
				w = header(driver.Op(g.Uint32N(8)), g.Uint32N(16))
			}
			g.list.Words = append(g.list.Words, w)
		}
		g.submitBoth()
	}
	g.finish()
}
