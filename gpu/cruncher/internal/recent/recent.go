// SPDX-License-Identifier: Apache-2.0

// Package recent has a map that forgets what was not used for long, so that it does not grow without end where keys are
// always new.
package recent

// Most is how many entries a [Map] keeps.
const Most = 1024

// Map keeps the values of the keys used last. The zero value is empty and ready for use. It is for one goroutine at a time.
type Map[K comparable, V any] struct {
	entries map[K]*entry[V]
	clock   uint64
}

type entry[V any] struct {
	value V
	used  uint64
}

// Get returns the value of a key, which then counts as used, or the zero value.
func (m *Map[K, V]) Get(k K) (v V) {
	if e := m.entries[k]; e != nil {
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

// Put sets the value of a key, which then counts as used. If there are more than [Most], the key whose use is longest ago goes.
func (m *Map[K, V]) Put(k K, v V) {
	if m.entries == nil {
		m.entries = map[K]*entry[V]{}
	}
	m.clock++
	m.entries[k] = &entry[V]{v, m.clock}
	if len(m.entries) <= Most {
		return
	}
	oldest := m.clock
	for key, e := range m.entries { // new keys are rare, compared to what is done with them
		if e.used < oldest {
			k, oldest = key, e.used
		}
	}
	delete(m.entries, k)
}

// Delete removes a key.
func (m *Map[K, V]) Delete(k K) { delete(m.entries, k) }

// Clear removes all keys.
func (m *Map[K, V]) Clear() { clear(m.entries) }

// Each calls fn for each value.
func (m *Map[K, V]) Each(fn func(V)) {
	for _, e := range m.entries {
		fn(e.value)
	}
}
