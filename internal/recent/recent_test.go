// SPDX-License-Identifier: Apache-2.0

package recent_test

import (
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/internal/recent"
)

func TestMap(t *testing.T) {
	var m recent.Map[int, string]
	if m.Get(1) != "" || m.Peek(1) != "" {
		t.Error("an empty map has values")
	}
	m.Put(-1, "kept by use")
	m.Put(-2, "looked at only")
	m.Put(-3, "set anew")
	for k := range recent.Most - 3 {
		m.Put(k, "new")
	}
	m.Get(-1)
	m.Peek(-2)
	m.Put(-3, "again")
	m.Put(recent.Most, "one more")
	m.Put(recent.Most+1, "and one")
	for k, want := range map[int]string{-1: "kept by use", -2: "", -3: "again", 0: "", 1: "new", recent.Most + 1: "and one"} {
		if got := m.Peek(k); got != want {
			t.Errorf("%d: got %q, want %q", k, got, want)
		}
	}
	n := 0
	m.Each(func(string) { n++ })
	if n != recent.Most {
		t.Errorf("got %d entries, want %d", n, recent.Most)
	}
	m.Clear()
	m.Each(func(string) { t.Error("Clear leaves some") })
}

// TestPut looks at what Put says is gone, in maps of their own sizes.
func TestPut(t *testing.T) {
	for _, most := range []int{1, 2, 7} {
		m := recent.Map[string, int]{Most: most}
		for i := range 3 * most {
			gone, dropped := m.Put(strconv.Itoa(i), i)
			if want := i - most; dropped != (want >= 0) || dropped && gone != want {
				t.Errorf("%d entries: %d drops %d, %v", most, i, gone, dropped)
			}
			if old, replaced := m.Put(strconv.Itoa(i), i); !replaced || old != i {
				t.Errorf("%d entries: %d replaces %d, %v", most, i, old, replaced)
			}
		}
		for i := range 3 * most {
			key, want := strconv.Itoa(i), i
			if i < 2*most {
				want = 0
			}
			if a, b := recent.Find(&m, []byte(key)), m.Get(key); a != want || b != want {
				t.Errorf("%d entries: %s is %d and %d, want %d", most, key, a, b, want)
			}
		}
		recent.Find(&m, []byte(strconv.Itoa(2*most))) // the oldest is now the newest
		if gone, _ := m.Put("new", -1); most > 1 && gone != 2*most+1 {
			t.Errorf("%d entries: %d is gone", most, gone)
		}
	}
	var m recent.Map[string, int]
	m.Put("key", 1)
	key := []byte("key")
	if n := testing.AllocsPerRun(100, func() { recent.Find(&m, key) }); n != 0 {
		t.Errorf("Find allocates %v times", n)
	}
}
