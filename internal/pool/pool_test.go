// SPDX-License-Identifier: Apache-2.0

package pool

import "testing"

// TestPool takes the newest of a size and evicts the oldest of all.
func TestPool(t *testing.T) {
	var p Pool[string]
	for _, s := range []string{"aaa", "bbb", "cc", "dddd"} {
		p.Put(s, uint64(len(s)))
	}
	if v, ok := p.Evict(10); !ok || v != "aaa" {
		t.Errorf("evicted %q", v)
	}
	if v, ok := p.Evict(10); ok {
		t.Errorf("evicted %q from %d bytes", v, p.Bytes)
	}
	p.Put("eee", 3)
	for _, want := range []string{"eee", "bbb", ""} {
		if v, ok := p.Take(3); v != want || ok == (want == "") {
			t.Errorf("took %q, want %q", v, want)
		}
	}
	if p.Bytes != 6 || len(p.items) != 2 {
		t.Errorf("%d bytes in %d items", p.Bytes, len(p.items))
	}
	for _, want := range []string{"cc", "dddd", ""} {
		if v, _ := p.Evict(0); v != want {
			t.Errorf("evicted %q, want %q", v, want)
		}
	}
}

// TestPoolOfMany keeps no more values than are quickly searched, however small they are.
func TestPoolOfMany(t *testing.T) {
	var p Pool[int]
	for i := range 2 * most {
		p.Put(i, 1)
		if _, ok := p.Evict(1 << 20); ok != (i >= most) {
			t.Fatalf("evicted one of %d: %v", i+1, ok)
		}
	}
	if p.Bytes != most {
		t.Errorf("%d values are left", p.Bytes)
	}
}
