// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

const modelBytes = 1500

// model is an array's values as a single device and a host would have them, beside the memory of several devices.
type model struct {
	t            *testing.T
	rng          *rand.Rand
	values       *memory.Values
	account      memory.Account
	places       []memory.Place
	host, device []byte
}

func newModel(t *testing.T, rng *rand.Rand) *model {
	m := &model{t: t, rng: rng, host: make([]byte, modelBytes), device: make([]byte, modelBytes)}
	large := devtest.Open(t, "cpu")
	small := devtest.Open(t, "cpu", gpu.WithMaxBuffer(512))
	m.places = []memory.Place{{Device: large, Map: true}, {Device: large, Slot: 1}, {Device: small, Slot: 2}}
	m.values = memory.NewValues(gpu.HostBytes(m.host), &m.account, rng.IntN(2) == 0)
	m.scribble(memory.Between(0, modelBytes), m.host)
	return m
}

func (m *model) scribble(w memory.Region, to []byte) {
	for i := w.Offset; i < w.End(); i++ {
		to[i] = byte(m.rng.Uint32())
	}
}

func (m *model) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) region() memory.Region {
	at := m.rng.IntN(modelBytes)
	return memory.Between(at, at+m.rng.IntN(min(400, modelBytes-at)+1))
}

// use returns memory of some place in which a region is up to date.
func (m *model) use(w memory.Region) *memory.Replica {
	m.t.Helper()
	r, err := m.values.Use(m.places[m.rng.IntN(len(m.places))], w, 16)
	m.check(err)
	m.check(m.values.Update(m.t.Context(), r, w))
	return r
}

// write does what a kernel does.
func (m *model) write(r *memory.Replica, w memory.Region, data []byte) {
	m.t.Helper()
	words := r.Words(w)
	mem := make([]byte, words.Width)
	m.check(r.Read(m.t.Context(), words, gpu.HostBytes(mem), 0))
	copy(mem[w.Offset-words.Offset:], data[w.Offset:w.End()])
	m.check(r.Mem.Write(uint64(words.Offset-r.Lo), gpu.HostBytes(mem)))
}

// follow has the model's device have what the host has where nobody else has anything, and zeros for what is lost.
func (m *model) follow() {
	apart := make([]bool, modelBytes)
	for _, s := range m.values.Newest(memory.Between(0, modelBytes), memory.Apart) {
		for i := s.Offset; i < s.End(); i++ {
			if apart[i] = true; s.Lost {
				m.device[i] = 0
			}
		}
	}
	for i, a := range apart {
		if !a {
			m.device[i] = m.host[i]
		}
	}
}

func (m *model) step() string {
	all, w := memory.Between(0, modelBytes), m.region()
	switch op := m.rng.IntN(10); op {
	case 0, 1:
		r := m.use(w)
		m.scribble(w, m.device)
		m.write(r, w, m.device)
		m.values.Wrote(r, w, memory.Newer)
		return fmt.Sprint("write ", w)
	case 2:
		m.values.Change(w, memory.Newer, memory.Apart)
		m.values.Upload(w)
		copy(m.device[w.Offset:w.End()], m.host[w.Offset:])
		return fmt.Sprint("upload ", w)
	case 9:
		newer, device := m.values.Newest(w, memory.Newer), slices.Clone(m.device)
		m.values.Upload(w)
		copy(m.device[w.Offset:w.End()], m.host[w.Offset:])
		for _, s := range newer {
			copy(m.device[s.Offset:s.End()], device[s.Offset:])
		}
		return fmt.Sprint("upload what is not newer of ", w)
	case 3:
		m.scribble(w, m.host)
		m.values.HostChanged(all, memory.Apart)
		m.follow()
		return fmt.Sprint("the host changes ", w)
	case 4:
		for _, s := range m.values.Newest(w, memory.Newer) {
			if s.Replica != nil {
				m.check(s.Replica.Read(m.t.Context(), s.Region, gpu.HostBytes(m.host), s.Offset))
				m.values.Returned(s.Region)
			}
		}
		return fmt.Sprint("return ", w)
	case 5:
		r := m.use(w)
		if m.values.Forget(r, w) {
			m.write(r, w, make([]byte, modelBytes))
		}
		m.follow()
		return fmt.Sprint("forget ", w)
	case 6:
		left := m.values.Leave(m.places[m.rng.IntN(len(m.places))].Device, false)
		return fmt.Sprint("leave ", left)
	case 7:
		m.values.Change(w, memory.Newer, memory.Apart)
		return fmt.Sprint("known ", w)
	default:
		if m.rng.IntN(4) > 0 {
			return "nothing"
		}
		slot := m.rng.IntN(len(m.places))
		m.values.Lost(slot)
		m.follow()
		return fmt.Sprint("lost ", slot)
	}
}

// TestValues does at random what a cruncher does with an array, on two places of one device and on one that has to use ranges: each has
// what a single device would have, and what comes back is that.
func TestValues(t *testing.T) {
	for seed := range uint64(devtest.Times(20)) {
		m := newModel(t, rand.New(rand.NewPCG(seed, 1)))
		var did []string
		for range 150 {
			did = append(did, m.step())
			w := m.region()
			r := m.use(w)
			got := make([]byte, w.Width)
			m.check(r.Read(t.Context(), w, gpu.HostBytes(got), 0))
			if !bytes.Equal(got, m.device[w.Offset:w.End()]) {
				t.Fatalf("seed %d: %v has %v, want %v\n%q", seed, w, got, m.device[w.Offset:w.End()], did)
			}
		}
		m.check(m.values.Close())
		for _, p := range m.places {
			if n := p.Device.Stats().LiveBytes; n != 0 {
				t.Errorf("seed %d: %d bytes are left", seed, n)
			}
		}
	}
}
