// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// request is a product of matrices by rows, on a device that was tuned or not.
func request(d *Device, m, n, k int) *Request {
	return &Request{M: m, N: n, K: k, Device: d, A: Operand{Stride: k, Vectors: true}, B: Operand{Stride: n, Vectors: true}}
}

// asked returns what a device offers for each family, and what it usually takes, at sizes of no special shape.
func asked(t *testing.T, d Device) (offers map[Family][]string, usual map[Family]string) {
	t.Helper()
	offers, usual = map[Family][]string{}, map[Family]string{}
	d.Tuned = &Tuned{Asked: func(c Class, names []string, name string) {
		offers[c.Family], usual[c.Family] = names, name
	}}
	everything(t, &d)
	return offers, usual
}

// everything plans something of each family, and returns the kernels' names.
func everything(t *testing.T, d *Device) map[Family]string {
	t.Helper()
	fold := Fold{Op: fuse.ReduceSum}
	names := map[Family]string{
		FamilyLinear: Linear(1000, false, fuse.F32, d).Name(), FamilyGrid: Grid(30, 50, fuse.F32, d).Name(), FamilyBlock: Block(300, 500, fuse.F32, d).Name(),
		FamilySoftmax: Softmax(30, 500, true, true, d).Name(), FamilySparse: (&SparseRows{Rows: 300, Cols: 64, Entries: 3000}).Launch(fuse.F32, d).Name(),
	}
	rows, _ := FoldRows(fold, 30, 5000, true, d)
	cols, _ := FoldCols(fold, 5000, 30, true, d)
	names[FamilyRows], names[FamilyCols] = rows.Name(), cols.Name()
	for family, m := range map[Family]int{FamilyProduct: 100, FamilyVector: 1} {
		p, err := request(d, m, 300, 500).Pick()
		if err != nil {
			t.Fatal(err)
		}
		names[family] = p.First.Name() + PartsMark + strconv.Itoa(p.Parts)
	}
	return names
}

// TestOffers wants what is offered to fit the limits, less of it on smaller devices, and the usual variant among it.
func TestOffers(t *testing.T) {
	for name, d := range devices {
		offers, usual := asked(t, *d)
		for f, text := range Families {
			names := offers[Family(f)]
			if f == int(FamilySoftmax) && len(names) == 0 && d.SIMD != nil {
				continue // has a kernel of its own
			}
			if d.MaxInvocations > 0 && !slices.Contains(names, usual[Family(f)]) && name != "small" {
				t.Errorf("%s, %s: %q offered, %q used", name, text, names, usual[Family(f)])
			}
			if list := slices.Compact(slices.Sorted(slices.Values(names))); len(list) != len(names) {
				t.Errorf("%s, %s: %q has a name twice", name, text, names)
			}
		}
	}
	large, _ := asked(t, Device{MaxInvocations: 1024, MaxMemory: 65536})
	small, _ := asked(t, Device{MaxInvocations: 64, MaxMemory: 4096})
	for name, more := range map[string]bool{"tree 256 1024 256": true, "tree 64 1024 256": false} {
		if !slices.Contains(large[FamilyRows], name) || slices.Contains(small[FamilyRows], name) == more {
			t.Errorf("%s is offered on %q and on %q", name, large[FamilyRows], small[FamilyRows])
		}
	}
	if !slices.Contains(large[FamilyProduct], "group 16 16 2 2 4 in 1") || slices.Contains(small[FamilyProduct], "group 16 16 2 2 4 in 1") {
		t.Errorf("%q and %q are offered", large[FamilyProduct], small[FamilyProduct])
	}
}

// TestAnswers has a tuner answer with variants that fit, with some that do not, and with nonsense, which is ignored.
func TestAnswers(t *testing.T) {
	d := Portable
	before := everything(t, &d)
	answers := func(names map[Family]string) *Tuned {
		var all Tuned
		d.Tuned = &Tuned{Asked: func(c Class, _ []string, _ string) {
			all.Answers = append(all.Answers, Answer{Class: c, Best: names[c.Family], Sooner: "tile 8 1 1 1 in 1"})
		}}
		everything(t, &d)
		return &all
	}
	for name, c := range map[string]struct {
		best  map[Family]string
		after map[Family]string // where it is another kernel
	}{
		"nothing":  {nil, nil},
		"nonsense": {map[Family]string{FamilyLinear: "x", FamilyProduct: " in ", FamilyVector: "native", FamilyRows: "rows 64 16 513"}, nil},
		"too much": {map[Family]string{FamilyGrid: "grid 512", FamilyProduct: "group 64 64 2 2 4 in 1"}, nil},
		"others": {
			map[Family]string{
				FamilyLinear: "linear 64 2", FamilyGrid: "grid 256", FamilyBlock: "block 64 8", FamilyRows: "rows 64 16 512", FamilyCols: "cols 64 4 512",
				FamilySoftmax: "rows 32", FamilyProduct: "tile 8 2 4 4 in 1", FamilyVector: "row 8 8 in 4",
				FamilySparse: "rows 256 4",
			},
			map[Family]string{
				FamilyLinear: "elementwise/linear 0 64 2", FamilyGrid: "elementwise/grid 1 16 16 0", FamilyBlock: "elementwise/block 0 16 4 8 0 0", FamilyRows: "reduce/rows 64",
				FamilyCols: "reduce/cols 4", FamilySoftmax: "softmax/rows 1 32", FamilyProduct: "product/tile 8 2 4 4 0 0 in 1", FamilyVector: "product/row 8 8 64 0 in 4",
				FamilySparse: "sparse/rows 0 256 4",
			},
		},
	} {
		d.Tuned = answers(c.best)
		for family, got := range everything(t, &d) {
			want := before[family]
			if c.after[family] != "" {
				want = c.after[family]
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, Families[family], got, want)
			}
		}
	}
	d.Tuned = answers(map[Family]string{FamilyLinear: "linear 256 4", FamilyBlock: "block 64 2"})
	linear, block := Linear(1000, false, fuse.F32, &d).Sooner, Block(300, 500, fuse.F32, &d).Sooner
	if linear == nil || linear.Name() != before[FamilyLinear] || block == nil || block.Name() != before[FamilyBlock] {
		t.Errorf("until they are compiled: %v, %v", linear, block)
	}
	p, err := request(&d, 100, 300, 500).Pick()
	if err != nil || p.Sooner != nil && p.Sooner.Parts != p.Parts {
		t.Error(p, err)
	}
}

// TestNeighbours has answers serve sizes of the next class, but no further, and their own class first.
func TestNeighbours(t *testing.T) {
	tuned := &Tuned{Answers: []Answer{
		{Class: newClass(FamilyProduct, fuse.F32, 0, 256, 256, 256), Best: "far"},
		{Class: newClass(FamilyProduct, fuse.F32, 0, 512, 256, 256), Best: ""},
		{Class: newClass(FamilyProduct, fuse.F32, 2, 512, 512, 512), Best: "other layout"},
	}}
	for _, c := range []struct {
		m, n, k int
		best    string
		exact   bool
	}{
		{256, 129, 200, "far", true}, {100, 300, 256, "far", false}, {300, 200, 200, "", true}, {600, 200, 200, "", false}, {64, 256, 256, "", false}, {1, 1, 1, "", false},
	} {
		class := newClass(FamilyProduct, fuse.F32, 0, c.m, c.n, c.k)
		if a, exact := tuned.find(&class); a.Best != c.best || exact != c.exact {
			t.Errorf("%v: %q, %v", c, a.Best, exact)
		}
	}
}

// TestVariants computes products and reductions by every variant there is, at odd sizes.
func TestVariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for name, device := range map[string]Device{"software": *devices["llvmpipe"], "hardware": {MaxInvocations: 1024, MaxMemory: 65536}, "simd": *devices["simd"]} {
		offers, _ := asked(t, device)
		for i, family := range []Family{FamilyProduct, FamilyVector, FamilyRows, FamilyCols} {
			for _, best := range offers[family] {
				d := device
				d.Tuned = &Tuned{Asked: func(c Class, _ []string, _ string) {
					if c.Family == family && len(d.Tuned.Answers) == 0 {
						d.Tuned.Answers = []Answer{{Class: c, Best: best}}
					}
				}}
				if i < 2 {
					m, n, k := [2]int{37, 1}[i], 53, 131
					a, b := newMemory(rng, fuse.F32, m, k, false, false), newMemory(rng, fuse.F32, k, n, false, true)
					p, err := (&Request{M: m, N: n, K: k, A: a.operand, B: b.operand, Device: &d}).Pick()
					if err != nil {
						t.Fatal(err)
					}
					compare(t, execute(t, p, storing(fuse.F32, fuse.F32), a, b, m, n), fuse.F32, a, b, m, n, k)
					continue
				}
				m := newMatrix(fuse.F32, [2]int{3, 1501}[i-2], [2]int{4101, 67}[i-2], 0, [2]int{4101, 67}[i-2])
				m.fill(rng)
				byCols := family == FamilyCols
				got := perform(t, fuse.ReduceSum, m, byCols, &d)
				lines := m.rows
				if byCols {
					lines = m.cols
				}
				for l := range lines {
					x := got.get(min(l, got.rows-1), min(l, got.cols-1))
					if w := wantFold(fuse.ReduceSum, &m, byCols, l); math.Abs(x-w) > 1e-5*math.Abs(w) {
						t.Fatalf("%s, %s by %s: line %d is %v, want %v", name, Families[family], best, l, x, w)
					}
				}
			}
		}
	}
}
