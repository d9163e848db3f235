// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/pattern"
)

// random is a pattern with as many entries as chance has, and its values, 1 and more, as a dense matrix too.
func random(rng *rand.Rand, rows, cols int, byRows bool) (p pattern.Pattern, values, dense []int) {
	p = pattern.Pattern{Rows: rows, Cols: cols, ByRows: byRows, Ptr: []int32{0}}
	dense = make([]int, rows*cols)
	share := rng.Float64()
	majors, minors := cols, rows
	if byRows {
		majors, minors = rows, cols
	}
	for m := range majors {
		for i := range minors {
			if rng.Float64() > share {
				continue
			}
			v := 1 + rng.IntN(9)
			p.Index, values = append(p.Index, int32(i)), append(values, v)
			if byRows {
				dense[m*cols+i] = v
			} else {
				dense[i*cols+m] = v
			}
		}
		p.Ptr = append(p.Ptr, int32(len(p.Index)))
	}
	return p, values, dense
}

// spread is the dense matrix of a pattern's values. It fails unless the pattern is sound.
func spread(t *testing.T, p pattern.Pattern, value func(entry int) int) []int {
	t.Helper()
	dense := make([]int, p.Rows*p.Cols)
	majors := p.Majors()
	if int(p.Ptr[len(p.Ptr)-1]) != len(p.Index) || len(majors) != len(p.Index) {
		t.Fatalf("%+v is broken", p)
	}
	for e, i := range p.Index {
		m := int(majors[e])
		if e > int(p.Ptr[m]) && p.Index[e-1] >= i {
			t.Fatalf("%+v is not in order", p)
		}
		at := int(i)*p.Cols + m
		if p.ByRows {
			at = m*p.Cols + int(i)
		}
		dense[at] = value(e)
	}
	return dense
}

func at(values []int, place int32) int {
	if place < 0 {
		return 0
	}
	return values[place]
}

// TestPatterns compares sums, element-wise products, products and the other order with those of dense matrices, and their numbers of
// entries: values are all positive.
func TestPatterns(t *testing.T) {
	rng := rand.New(rand.NewPCG(80, 1))
	for round := range 400 {
		m, k, n := rng.IntN(7), rng.IntN(7), rng.IntN(7)
		a, av, ad := random(rng, m, k, round&1 == 0)
		b, bv, bd := random(rng, m, k, round&2 == 0)
		c, cv, cd := random(rng, k, n, round&4 == 0)
		check := func(what string, p pattern.Pattern, value func(int) int, want []int) {
			if got := spread(t, p, value); !slices.Equal(got, want) {
				t.Fatalf("%s: got %v, want %v", what, got, want)
			}
			count := 0
			for _, v := range want {
				if v != 0 {
					count++
				}
			}
			if len(p.Index) != count {
				t.Fatalf("%s: %d entries, want %d", what, len(p.Index), count)
			}
		}
		check("the same", a, func(e int) int { return av[e] }, ad)
		q, places := a.Across()
		check("across", q, func(e int) int { return av[places[e]] }, ad)
		turned := make([]int, m*k)
		both, elements := make([]int, m*k), make([]int, m*k)
		for i := range m {
			for j := range k {
				turned[j*m+i] = ad[i*k+j]
				both[i*k+j] = ad[i*k+j] + bd[i*k+j]
				elements[i*k+j] = ad[i*k+j] * bd[i*k+j]
			}
		}
		check("transpose", a.T(), func(e int) int { return av[e] }, turned)
		u, fromA, fromB := pattern.Union(a, b)
		check("union", u, func(e int) int { return at(av, fromA[e]) + at(bv, fromB[e]) }, both)
		s, inA, inB := pattern.Intersection(a, b)
		check("intersection", s, func(e int) int { return at(av, inA[e]) * at(bv, inB[e]) }, elements)
		product := make([]int, m*n)
		for i := range m {
			for j := range n {
				for l := range k {
					product[i*n+j] += ad[i*k+l] * cd[l*n+j]
				}
			}
		}
		p, terms, err := pattern.Product(a, c)
		if err != nil {
			t.Fatal(err)
		}
		check("product", p, func(e int) (sum int) {
			for q := terms.Ptr[e]; q < terms.Ptr[e+1]; q++ {
				sum += av[terms.FromA[q]] * cv[terms.FromB[q]]
			}
			return sum
		}, product)
		if p.ByRows != a.ByRows || u.ByRows != a.ByRows || s.ByRows != a.ByRows {
			t.Fatal("the order is not that of the first operand")
		}
		ids, some := a.Filled()
		if len(some.Ptr) != len(ids)+1 || len(some.Majors()) != len(a.Index) {
			t.Fatalf("%d filled majors: %+v", len(ids), some)
		}
	}
}

func TestBlocks(t *testing.T) {
	p := pattern.Blocks(2, 4, []int32{1, 3})
	if got := spread(t, p, func(e int) int { return e + 1 }); !slices.Equal(got, []int{0, 1, 0, 3, 0, 2, 0, 4}) {
		t.Errorf("got %v", got)
	}
}

// TestManyTerms refuses products of more terms than there may be, before memory is taken for them.
func TestManyTerms(t *testing.T) {
	const n = 1 << 14
	full := pattern.Pattern{Rows: n, Cols: 1, Index: make([]int32, n), Ptr: []int32{0, n}}
	for i := range full.Index {
		full.Index[i] = int32(i)
	}
	if _, _, err := pattern.Product(full, full.T()); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("error %v", err)
	}
}
