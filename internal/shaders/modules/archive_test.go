// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"
)

// find is what web/src/prepared.mjs does.
func find(archive []byte, hash uint64) *Module {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(archive[4*i:])) }
	for i := range word(0) {
		if at := 1 + 4*i; uint64(word(at))|uint64(word(at+1))<<32 == hash {
			return Decode(archive[word(at+2):][:word(at+3)])
		}
	}
	return nil
}

func TestArchive(t *testing.T) {
	one := &Module{Wasm: []byte("one"), Scratch: 4096, Bindings: []Binding{{1, false, 16}, {0, true, 4}}, Params: 7}
	two := &Module{Wasm: []byte("another"), Bindings: []Binding{{0, true, 1 << 30}}, Params: -1}
	var a Archive
	a.Add(1<<63+5, one)
	a.Add(5, two)
	a.Add(6, two) // the same code for another kernel
	a.Add(5, one) // known
	b := a.Bytes()
	if a.Len() != 3 {
		t.Errorf("%d modules", a.Len())
	}
	for hash, want := range map[uint64]*Module{1<<63 + 5: one, 5: two, 6: two, 7: nil} {
		if got := find(b, hash); !reflect.DeepEqual(got, want) {
			t.Errorf("%x: %v, want %v", hash, got, want)
		}
	}
	if single := (&Archive{}); len(single.Bytes()) != 4 || find(single.Bytes(), 5) != nil {
		t.Errorf("an empty archive has %d bytes", len(single.Bytes()))
	}
	var shorter Archive
	shorter.Add(5, two)
	if want := len(shorter.Bytes()) + 2*16 + len(one.encode()); len(b) != want {
		t.Errorf("%d bytes, want %d: what is equal is there once", len(b), want)
	}
}

// TestDamaged flips bits of a module, and cuts some of it off.
func TestDamaged(t *testing.T) {
	whole := (&Module{Wasm: []byte("\x00asm"), Bindings: []Binding{{1, true, 4}}, Params: -1}).encode()
	if Decode(whole) == nil {
		t.Fatal("what is whole seems to be damaged")
	}
	for i := range whole {
		flipped := slices.Clone(whole)
		flipped[i] ^= 0x10
		if Decode(flipped) != nil || Decode(whole[:i]) != nil {
			t.Errorf("byte %d is damaged, or is not there", i)
		}
	}
}

// TestHash wants other hashes for all that other code is made for.
func TestHash(t *testing.T) {
	seen := map[uint64]int{}
	for i := range 1 << 6 {
		k := Kernel{Entry: "main", Source: "fn main() {}", Bounded: i&1 != 0, Exact: i&2 != 0}
		if i&4 != 0 {
			k.Entry = "mai"
		}
		if i&8 != 0 {
			k.Source = "n" + k.Source
		}
		h := Hash(&k, i&16 != 0, i&32 != 0)
		if other, there := seen[h]; there {
			t.Errorf("%d and %d have the same hash", i, other)
		}
		seen[h] = i
	}
}
