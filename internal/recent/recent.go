// SPDX-License-Identifier: Apache-2.0

// Package recent has a map that forgets what was not used for long, so that it does not grow without end where keys are
// always new.
package recent

import "cmp"

// Most is how many entries a [Map] keeps that does not say.
const Most = 1024

// Map keeps the values of the keys used last. The zero value is empty and ready for use. It is for one goroutine at a time.
type Map[K comparable, V any] struct {
	Most    int // entries that it keeps; without it the package's
	entries map[K]*entry[V]
	clock   uint64
}

type entry[V any] struct {
	value V
	used  uint64
}

// Get returns the value of a key, which then counts as used, or the zero value.
func (m *Map[K, V]) Get(k K) V { return m.use(m.entries[k]) }

// Find is Get for a key in bytes, of which it makes no string.
func Find[V any](m *Map[string, V], k []byte) V { return m.use(m.entries[string(k)]) }

func (m *Map[K, V]) use(e *entry[V]) (v V) {
	if e != nil {
		m.clock++
		e.used = m.clock
		v = e.value
	}
	return v
}

// Peek is Get that leaves no trace.
func (m *Map[K, V]) Peek(k K) (v V) {
	if e := m.entries[k]; e != nil {
		v = e.value
	}
	return v
}

// Put sets the value of a key, which then counts as used. It returns the value that is no longer there for it, if any: what the
// key had, or that of the key whose use is longest ago, which goes if there are too many.
func (m *Map[K, V]) Put(k K, v V) (gone V, any bool) {
	if m.entries == nil {
		m.entries = map[K]*entry[V]{}
	}
	m.clock++
	old := m.entries[k]
	m.entries[k] = &entry[V]{v, m.clock}
	if old != nil {
		return old.value, true
	}
	if len(m.entries) <= cmp.Or(m.Most, Most) {
		return gone, false
	}
	oldest := m.clock
	for key, e := range m.entries { // new keys are rare, compared to what is done with them
		if e.used < oldest {
			k, oldest, gone = key, e.used, e.value
		}
	}
	delete(m.entries, k)
	return gone, true
}

// Clear removes all keys.
func (m *Map[K, V]) Clear() { clear(m.entries) }

// Each calls fn for each value.
func (m *Map[K, V]) Each(fn func(V)) {
	for _, e := range m.entries {
		fn(e.value)
	}
}
