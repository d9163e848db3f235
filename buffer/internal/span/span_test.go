// SPDX-License-Identifier: Apache-2.0

package span

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// model is a map of a few keys as an array: -1 is no value.
type model []int

func newModel(n int) model { return slices.Repeat(model{-1}, n) }

func (m model) set(lo, hi, v int) {
	for i := max(lo, 0); i < min(hi, len(m)); i++ {
		m[i] = v
	}
}

// pieces returns the spans of [lo, hi) that have the same value, or with missing those that have none.
func (m model) pieces(lo, hi int, missing bool) []run {
	var all []run
	for i := max(lo, 0); i < min(hi, len(m)); i++ {
		if (m[i] < 0) != missing {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Hi == i && all[n-1].v == m[i] {
			all[n-1].Hi++
		} else {
			all = append(all, run{Span{i, i + 1}, m[i]})
		}
	}
	return all
}

func listed(seq iter.Seq2[Span, int]) []run {
	var all []run
	for s, v := range seq {
		all = append(all, run{s, v})
	}
	return all
}

// valued gives the spans of a set the value v.
func valued(seq iter.Seq[Span], v int) []run {
	var all []run
	for s := range seq {
		all = append(all, run{s, v})
	}
	return all
}

// sound checks what the runs promise.
func sound(t *testing.T, m *Map) {
	t.Helper()
	last := run{Span{math.MinInt, math.MinInt}, -1}
	for _, r := range m.runs {
		if r.Lo >= r.Hi || r.Lo < last.Hi || r.Lo == last.Hi && r.v == last.v {
			t.Fatalf("%v after %v", r, last)
		}
		last = r
	}
}

// text formats a map as "[0,3)=1 [5,7)=0".
func text(m *Map) string {
	var parts []string
	for s, v := range m.All() {
		parts = append(parts, fmt.Sprintf("[%d,%d)=%d", s.Lo, s.Hi, v))
	}
	return strings.Join(parts, " ")
}

// play makes changes to a map and a set, and to models of them, and compares. Few keys make runs meet often, many keys
// and short ranges make many blocks. Every other thousand changes mostly removes.
func play(t *testing.T, rng *rand.Rand, keys, length, values, changes int) {
	t.Helper()
	var m Map
	var s, other Set
	mm, sm, om := newModel(keys), newModel(keys), newModel(keys)
	for k := range changes {
		lo := rng.IntN(keys)
		hi := min(lo+rng.IntN(length+1), keys)
		if rng.IntN(20) == 0 {
			lo, hi = rng.IntN(keys), rng.IntN(keys)
		}
		v := rng.IntN(values)
		kind := rng.IntN(5)
		if k/1000%2 == 1 && kind > 1 {
			kind = 0
		}
		switch kind {
		case 0:
			m.Remove(lo, hi)
			mm.set(lo, hi, -1)
			s.Remove(lo, hi)
			sm.set(lo, hi, -1)
		case 1:
			other.Add(lo, hi)
			om.set(lo, hi, 0)
		default:
			m.Set(lo, hi, v)
			mm.set(lo, hi, v)
			s.Add(lo, hi)
			sm.set(lo, hi, 0)
		}
		if rng.IntN(400) == 0 {
			s.Intersect(&other)
			for i := range sm {
				if om[i] < 0 {
					sm[i] = -1
				}
			}
		}
		if rng.IntN(400) == 0 {
			s.Subtract(&other)
			for i := range sm {
				if om[i] >= 0 {
					sm[i] = -1
				}
			}
		}
		sound(t, &m)
		sound(t, &s.m)
		lo, hi = rng.IntN(keys), rng.IntN(keys)+1
		same(t, "Get", listed(m.Get(lo, hi)), mm.pieces(lo, hi, false))
		same(t, "Map.Missing", valued(m.Missing(lo, hi), -1), mm.pieces(lo, hi, true))
		same(t, "Overlap", valued(s.Overlap(lo, hi), 0), sm.pieces(lo, hi, false))
		same(t, "Set.Missing", valued(s.Missing(lo, hi), -1), sm.pieces(lo, hi, true))
		if got, want := s.Contains(lo, hi), len(sm.pieces(lo, hi, true)) == 0; got != want {
			t.Fatalf("Contains(%d, %d) is %v in %s", lo, hi, got, text(&s.m))
		}
	}
	same(t, "Map.All", listed(m.All()), mm.pieces(0, keys, false))
	same(t, "Set.All", valued(s.All(), 0), sm.pieces(0, keys, false))
	if s.Len() != len(sm.pieces(0, keys, false)) || m.Len() != len(mm.pieces(0, keys, false)) {
		t.Fatalf("Len %d and %d", s.Len(), m.Len())
	}
}

func same(t *testing.T, op string, got, want []run) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %v, want %v", op, got, want)
	}
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		play(t, rand.New(rand.NewPCG(seed, 1)), 40, 12, 3, 1000)
		play(t, rand.New(rand.NewPCG(seed, 2)), 40, 2, 2, 1000)
	}
	play(t, rand.New(rand.NewPCG(7, 3)), 4000, 3, 2, 8000)
}

func FuzzAgainstModel(f *testing.F) {
	f.Add(uint64(3), uint(30), uint(4), uint(2))
	f.Fuzz(func(t *testing.T, seed uint64, keys, length, values uint) {
		play(t, rand.New(rand.NewPCG(seed, 9)), 1+int(keys%300), int(length%300), 1+int(values%5), 300)
	})
}

// TestAssign wants copies to be equal and apart.
func TestAssign(t *testing.T) {
	var s, c Set
	var m, d Map
	for i := range 1000 {
		s.Add(10*i, 10*i+3)
		m.Set(10*i, 10*i+3, i%7)
	}
	c.Add(-5, 99999)
	c.Assign(&s)
	d.Assign(&m)
	sound(t, &c.m)
	if text(&c.m) != text(&s.m) || text(&d) != text(&m) {
		t.Error("copies differ")
	}
	before, beforeMap := text(&s.m), text(&m)
	for i := range 1000 {
		c.Remove(10*i, 10*i+1)
		d.Set(10*i+1, 10*i+2, 9)
	}
	if text(&s.m) != before || text(&m) != beforeMap {
		t.Error("a copy is not apart")
	}
	s.Subtract(&s)
	if s.Len() != 0 {
		t.Error("something is left")
	}
}

func TestEmpty(t *testing.T) {
	var s Set
	if s.Len() != 0 || s.Contains(0, 1) || !s.Contains(5, 5) || !s.Contains(1, 0) {
		t.Errorf("the zero value is not empty: %s", text(&s.m))
	}
	s.Add(5, 7)
	s.Add(0, 3)
	s.Add(9, 9)
	s.Add(12, 10)
	if got := text(&s.m); got != "[0,3)=0 [5,7)=0" {
		t.Error(got)
	}
	s.Add(3, 5)
	if got := text(&s.m); got != "[0,7)=0" {
		t.Error(got)
	}
	var m Map
	m.Set(0, 9, 1)
	m.Set(3, 5, 0)
	m.Set(5, 6, 1)
	m.Set(-3, 0, 1)
	if got := text(&m); got != "[-3,3)=1 [3,5)=0 [5,9)=1" {
		t.Error(got)
	}
	m.Clear()
	s.Clear()
	if m.Len() != 0 || s.Len() != 0 {
		t.Error("not empty after Clear")
	}
}

func TestExtremes(t *testing.T) {
	var s Set
	s.Add(math.MinInt, math.MaxInt)
	s.Remove(-1, 1)
	s.Remove(5, math.MinInt)
	if s.Len() != 2 || !s.Contains(math.MinInt, -1) || s.Contains(0, 2) {
		t.Error(text(&s.m))
	}
	for span := range s.All() {
		if span.Len() != math.MaxInt && span.Len() != math.MaxInt-1 {
			t.Error(span, span.Len())
		}
	}
	if n := (Span{math.MinInt, math.MaxInt}).Len(); n != math.MaxInt {
		t.Error(n)
	}
	if n := (Span{math.MaxInt, math.MinInt}).Len(); n != 0 {
		t.Error(n)
	}
	s.Intersect(&s)
	if s.Len() != 2 {
		t.Errorf("intersected with itself: %s", text(&s.m))
	}
	s.Intersect(new(Set))
	if s.Len() != 0 {
		t.Errorf("intersected with nothing: %s", text(&s.m))
	}
	s.Add(1, 2)
	s.Intersect(nil)
	if s.Len() != 0 {
		t.Errorf("intersected with nil: %s", text(&s.m))
	}
}

// Loops may change what they range over.
func TestChangesInLoops(t *testing.T) {
	var s Set
	for i := range 500 {
		s.Add(4*i, 4*i+2)
	}
	for span := range s.Missing(0, 2000) {
		s.Add(span.Lo, span.Hi)
	}
	if got := text(&s.m); got != "[0,2000)=0" {
		t.Error(got)
	}
	var m Map
	for i := range 500 {
		m.Set(i, i+1, i)
	}
	n := 0
	for span, v := range m.All() {
		n++
		m.Set(span.Lo, span.Hi, -v)
		if v == 300 {
			m.Clear()
		}
	}
	if n != 301 || m.Len() != 0 {
		t.Errorf("%d turns, %d left", n, m.Len())
	}
	// A sequence can be used again, and left.
	s.Remove(10, 20)
	gaps := s.Missing(0, 3000)
	for range 2 {
		for span := range gaps {
			if span != (Span{10, 20}) {
				t.Error(span)
			}
			break
		}
		for span := range s.All() {
			if span != (Span{0, 10}) {
				t.Error(span)
			}
			break
		}
	}
	m.Clear()
	m.Set(0, 5, 1)
	m.Set(5, 9, 2)
	for span, v := range m.Get(2, 9) {
		if span != (Span{2, 5}) || v != 1 {
			t.Error(span, v)
		}
		break
	}
}

// A set that was cleared and filled anew is not taken for the old one.
func TestClearInLoop(t *testing.T) {
	var s Set
	s.Add(0, 5)
	var seen []Span
	for span := range s.All() {
		seen = append(seen, span)
		s.Clear()
		if len(seen) == 1 {
			s.Add(7, 9)
		}
	}
	if !slices.Equal(seen, []Span{{0, 5}, {7, 9}}) {
		t.Error(seen)
	}
}

func TestNothingAllocated(t *testing.T) {
	var s Set
	for i := range 50 {
		s.Add(10*i, 10*i+5)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i = (i + 7) % 50
		s.Add(10*i+6, 10*i+8)
		s.Remove(10*i+6, 10*i+8)
		if s.Contains(10*i, 10*i+9) {
			t.Error("wrong")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleSet() {
	var valid Set // elements that a device has
	valid.Add(0, 100)
	valid.Add(300, 400)
	for s := range valid.Missing(50, 350) {
		fmt.Println("fetch", s)
		valid.Add(s.Lo, s.Hi)
	}
	fmt.Println(valid.Len(), valid.Contains(0, 400))
	// Output:
	// fetch {100 300}
	// 1 true
}

func ExampleMap() {
	var owner Map // who wrote elements last
	owner.Set(0, 1000, 0)
	owner.Set(250, 500, 1)
	for s, device := range owner.Get(200, 600) {
		fmt.Println(s, device)
	}
	// Output:
	// {200 250} 0
	// {250 500} 1
	// {500 600} 0
}

func BenchmarkChange(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n, " spans"), func(b *testing.B) {
			var s Set
			for i := range n {
				s.Add(10*i, 10*i+5)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				i := 10 * rng.IntN(n)
				s.Add(i+6, i+8)
				s.Remove(i+6, i+8)
				if s.Contains(i+4, i+9) {
					b.Fatal("wrong")
				}
			}
			if s.Len() != n {
				b.Fatal(s.Len())
			}
		})
	}
}
