// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
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
		q, places, err := a.Across("Mul")
		if err != nil {
			t.Fatal(err)
		}
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
		u, fromA, fromB, err := pattern.Union("Add", a, b)
		if err != nil {
			t.Fatal(err)
		}
		check("union", u, func(e int) int { return at(av, fromA[e]) + at(bv, fromB[e]) }, both)
		s, inA, inB, err := pattern.Intersection("MulElem", a, b)
		if err != nil {
			t.Fatal(err)
		}
		check("intersection", s, func(e int) int { return at(av, inA[e]) * at(bv, inB[e]) }, elements)
		product := make([]int, m*n)
		for i := range m {
			for j := range n {
				for l := range k {
					product[i*n+j] += ad[i*k+l] * cd[l*n+j]
				}
			}
		}
		p, terms, err := pattern.Product("Mul", a, c)
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
		columns, whole, from, err := a.Columns("ToFormat")
		if err != nil || whole.Cols != len(columns) || whole.ByRows {
			t.Fatalf("columns %v of %+v: %v", columns, whole, err)
		}
		for e, m := range whole.Majors() {
			place := e
			if from != nil {
				place = int(from[e])
			}
			if want := ad[int(whole.Index[e])*k+int(columns[m])]; av[place] != want {
				t.Fatalf("entry %d of the columns is %d, want %d", e, av[place], want)
			}
		}
		ids, some := a.Filled()
		if len(some.Ptr) != len(ids)+1 || len(some.Majors()) != len(a.Index) {
			t.Fatalf("%d filled majors: %+v", len(ids), some)
		}
	}
}

func TestBlocks(t *testing.T) {
	p, err := pattern.Blocks("Mul", 2, 4, []int32{1, 3})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, _, err := pattern.Product("Mul", full, full.T()); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("error %v", err)
	}
}

// TestVast multiplies patterns whose summed or free dimension is the largest there is: entries, not dimensions, take memory.
func TestVast(t *testing.T) {
	apart := func(list []int32) []int32 { // 0 to 6, far from each other
		list = slices.Clone(list)
		for k := range list {
			list[k] = list[k]*(math.MaxInt32/7) + 3
		}
		return list
	}
	rng := rand.New(rand.NewPCG(80, 2))
	for range 50 {
		a, _, _ := random(rng, 5, 7, true)
		b, _, _ := random(rng, 7, 5, false)
		want, terms, err := pattern.Product("Mul", a, b)
		if err != nil {
			t.Fatal(err)
		}
		a.Index, a.Cols = apart(a.Index), math.MaxInt32
		b.Index, b.Rows = apart(b.Index), math.MaxInt32
		got, same, err := pattern.Product("Mul", a, b)
		if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(same, terms) {
			t.Fatalf("summed: %+v, %+v, %v; want %+v, %+v", got, same, err, want, terms)
		}
		c, _, _ := random(rng, 7, 7, true)
		a.Index, a.Cols = slices.Clone(want.Index), 5
		c.Rows, c.Ptr = 5, c.Ptr[:6]
		c.Index = c.Index[:c.Ptr[5]]
		a.Ptr = want.Ptr
		if want, terms, err = pattern.Product("Mul", a, c); err != nil {
			t.Fatal(err)
		}
		c.Index, c.Cols = apart(c.Index), math.MaxInt32
		want.Index, want.Cols = apart(want.Index), math.MaxInt32
		if got, same, err = pattern.Product("Mul", a, c); err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(same, terms) {
			t.Fatalf("free: %+v, %+v, %v; want %+v, %+v", got, same, err, want, terms)
		}
		if got, same, err = pattern.Product("Mul", c.T(), a.T()); err != nil || !reflect.DeepEqual(got, want.T()) {
			t.Fatalf("transposed: %+v, %+v, %v; want %+v", got, same, err, want.T())
		}
	}
}

// TestManyPointers refuses patterns with more pointers than memory is taken for.
func TestManyPointers(t *testing.T) {
	wide := pattern.Pattern{Rows: 2, Cols: math.MaxInt32, ByRows: true, Index: []int32{5, math.MaxInt32 - 1}, Ptr: []int32{0, 1, 2}}
	_, _, across := wide.Across("Mul")
	_, blocks := pattern.Blocks("Mul", 2, math.MaxInt32, []int32{7})
	_, _, product := pattern.Product("Mul", pattern.Pattern{Rows: 1, Cols: 2, Ptr: []int32{0, 0, 0}}, wide)
	ids, columns, places, err := wide.Columns("ToFormat")
	for what, err := range map[string]error{"across": across, "blocks": blocks, "product": product} {
		if !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if err != nil || !slices.Equal(ids, []int32{5, math.MaxInt32 - 1}) || !slices.Equal(columns.Ptr, []int32{0, 1, 2}) || !slices.Equal(places, []int32{0, 1}) {
		t.Errorf("columns %v, %+v, %v, %v", ids, columns, places, err)
	}
}
