// SPDX-License-Identifier: Apache-2.0

package cruncher

import "testing"

// TestJournal notes calls by the hundred thousand: those that recur in turns cost little, and there is an end.
func TestJournal(t *testing.T) {
	a, err := NewArray[uint32]("a", 10)
	if err != nil {
		t.Fatal(err)
	}
	make := func(id int, bits uint32) *call {
		ps, err := gather([]Param{a, NewScalar("k", bits)})
		if err != nil {
			t.Fatal(err)
		}
		return &call{id: id, r: Range{Global: 10, Inner: []int{3}}, list: ps, arrays: []argument{{}}}
	}
	var j journal
	const n = 100_000
	for k := range n {
		j.add(make(k%5, uint32(k)))
	}
	if j.full || len(j.forms) != 5 || j.bytes > 40*n {
		t.Errorf("%d forms of 5 calls, %d bytes for %d", len(j.forms), j.bytes, n)
	}
	for _, k := range []int{0, 77, n - 1} {
		if c := j.calls[k].call(); c.id != k%5 || c.list[1].value.bits != uint32(k) || c.list[0].array != a.Any {
			t.Errorf("call %d is one of id %d with %d", k, c.id, c.list[1].value.bits)
		}
	}
	before := j.bytes
	for k := range 100 {
		j.add(make(k+10, 0)) // none of which recurs
	}
	if each := (j.bytes - before) / 100; len(j.forms) != formsKept || each > 800 {
		t.Errorf("%d forms, %d bytes for each", len(j.forms), each)
	}
	for k, c := 0, make(0, 1); !j.full && k < journalLimit; k++ {
		j.add(c)
	}
	if !j.full || j.calls != nil || j.bytes != 0 {
		t.Error("it has no end")
	}
}
