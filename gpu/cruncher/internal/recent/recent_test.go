// SPDX-License-Identifier: Apache-2.0

package recent_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu/cruncher/internal/recent"
)

func TestMap(t *testing.T) {
	var m recent.Map[int, string]
	if m.Get(1) != "" || m.Peek(1) != "" {
		t.Error("an empty map has values")
	}
	m.Delete(1)
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
	m.Delete(-1)
	m.Each(func(string) { n-- })
	if n != 1 || m.Peek(-1) != "" {
		t.Error("Delete leaves it there")
	}
	m.Clear()
	m.Each(func(string) { t.Error("Clear leaves some") })
}
