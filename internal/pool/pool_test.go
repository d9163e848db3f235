// SPDX-License-Identifier: Apache-2.0

package pool

import "testing"

// TestPool takes the newest of a size and evicts the oldest of all.
func TestPool(t *testing.T) {
	var p Pool
	for _, s := range []string{"aaa", "bbb", "cc", "dddd"} {
		p.Put(s, uint64(len(s)))
	}
	if v := p.Evict(10); v != "aaa" {
		t.Errorf("evicted %v", v)
	}
	if v := p.Evict(10); v != nil {
		t.Errorf("evicted %v from %d bytes", v, p.Bytes)
	}
	p.Put("eee", 3)
	for _, want := range []any{"eee", "bbb", nil} {
		if v := p.Take(3); v != want {
			t.Errorf("took %v, want %v", v, want)
		}
	}
	if p.Bytes != 6 || len(p.items) != 2 {
		t.Errorf("%d bytes in %d items", p.Bytes, len(p.items))
	}
	for _, want := range []any{"cc", "dddd", nil} {
		if v := p.Evict(0); v != want {
			t.Errorf("evicted %v, want %v", v, want)
		}
	}
}

// TestPoolOfMany keeps no more values than are quickly searched, however small they are.
func TestPoolOfMany(t *testing.T) {
	var p Pool
	for i := range 2 * most {
		p.Put(i, 1)
		if v := p.Evict(1 << 20); (v != nil) != (i >= most) {
			t.Fatalf("evicted %v of %d", v, i+1)
		}
	}
	if p.Bytes != most {
		t.Errorf("%d values are left", p.Bytes)
	}
}
