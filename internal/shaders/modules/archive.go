// SPDX-License-Identifier: Apache-2.0

package modules

import "encoding/binary"

// Hash is of what the code of a kernel depends on, by FNV-1a. Only kernels whose text is the library's own may be looked up by it: 64 bits
// are enough for those, and not for a text that is to be taken for another.
func Hash(k *Kernel, relaxed, shared bool) uint64 {
	h := uint64(offset)
	for _, flag := range []bool{k.Bounded, k.Exact, relaxed, shared} {
		h *= prime
		if flag {
			h++
		}
	}
	for _, text := range []string{k.Entry, "\x00", k.Source} {
		h = fnv(h, text)
	}
	return h
}

const offset, prime = 14695981039346656037, 1099511628211

func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	return h
}

// Archive has modules by the hashes of their kernels. In a file it is a table of words of 32 bits, least byte first: how many modules there
// are, and for each the two words of its hash and where it is, its offset and its size. The modules are behind it.
type Archive struct {
	table []uint32
	known map[uint64]bool
	bytes []byte
	at    map[string]uint32 // of a module among the bytes
}

// Add puts a module into the archive. Modules that are equal, as most are with relaxed SIMD and without, are there once.
func (a *Archive) Add(hash uint64, m *Module) {
	if a.known[hash] {
		return
	}
	if a.known == nil {
		a.known, a.at = map[uint64]bool{}, map[string]uint32{}
	}
	a.known[hash] = true
	text := string(m.encode())
	at, there := a.at[text]
	if !there {
		at = uint32(len(a.bytes))
		a.at[text], a.bytes = at, append(a.bytes, text...)
	}
	a.table = append(a.table, uint32(hash), uint32(hash>>32), at, uint32(len(text)))
}

// Len returns how many hashes the archive knows.
func (a *Archive) Len() int { return len(a.known) }

// Bytes returns the archive as it is in a file.
func (a *Archive) Bytes() []byte {
	const entry = 4
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(a.table)/entry))
	behind := uint32(4 * (1 + len(a.table)))
	for i, word := range a.table {
		if i%entry == 2 {
			word += behind
		}
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return append(b, a.bytes...)
}

// encode writes a module for Decode: a sum of what follows, how much scratch memory it needs, the binding of its parameters, how many others
// there are, these, and its text.
func (m *Module) encode() []byte {
	words := []int{m.Scratch, m.Params, len(m.Bindings)}
	for _, x := range m.Bindings {
		write := 0
		if x.Write {
			write = 1
		}
		words = append(words, x.Number, write, x.Least)
	}
	var b []byte
	for _, word := range words {
		b = binary.LittleEndian.AppendUint32(b, uint32(word))
	}
	b = append(b, m.Wasm...)
	return append(binary.LittleEndian.AppendUint32(nil, sum(b)), b...)
}

// sum tells bytes of an archive from those of a file that was damaged.
func sum(b []byte) uint32 { return uint32(fnv(offset, string(b))) }

// Decode returns a module of an archive, which keeps the bytes; nil if they are damaged.
func Decode(b []byte) *Module {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != sum(b[4:]) {
		return nil
	}
	b = b[4:]
	word := func() int {
		w := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return int(int32(w))
	}
	m := &Module{Scratch: word(), Params: word()}
	for range word() {
		m.Bindings = append(m.Bindings, Binding{word(), word() > 0, word()})
	}
	m.Wasm = b
	return m
}
