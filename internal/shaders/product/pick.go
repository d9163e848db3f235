// SPDX-License-Identifier: Apache-2.0

package product

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

// Plan is how a product is computed, and Pass one launch of it.
type (
	Plan = plan.Plan[Spec]
	Pass = plan.Pass[Spec]
)

// Request is a product C = A B to be planned: A has M rows and K columns, B has K rows and N columns.
type Request struct {
	M, N, K int
	A, B    Operand
	Compute fuse.Type // the type of the sums, that of the function behind the product
	Device  plan.Device
}

// Operand is a factor and where it lies. Offset and Stride are in elements; the stride is that of its rows, or of its
// columns where ColMajor is set.
type Operand struct {
	Type           fuse.Type
	ColMajor       bool
	Offset, Stride int
	// Scalars forbids loading vectors. It must be set where the vector that holds the last element reaches beyond the end
	// of the binding.
	Scalars bool
}

// class tells how to read the operand. alongK tells whether memory runs along k, lines how many lines of memory there are.
func (o *Operand) class(alongK bool, lines int) Class {
	aligned := o.Offset%4 == 0 && (o.Stride%4 == 0 || lines <= 1)
	return Class{Type: o.Type, AlongK: alongK, Vector: aligned && !o.Scalars}
}

// place is the offset and the stride in units of the binding.
func (o *Operand) place(c Class) [2]int {
	if c.Vector {
		return [2]int{o.Offset / 4, o.Stride / 4}
	}
	return [2]int{o.Offset, o.Stride}
}

// classes tells how to read A and B.
func (r *Request) classes() (a, b Class) {
	a = r.A.class(!r.A.ColMajor, lines(r.A.ColMajor, r.M, r.K))
	b = r.B.class(r.B.ColMajor, lines(r.B.ColMajor, r.K, r.N))
	return a, b
}

func lines(colMajor bool, rows, cols int) int {
	if colMajor {
		return cols
	}
	return rows
}

// quads is the length of k in steps of four.
func (r *Request) quads() int { return plan.Quads(r.K) }

// maxSize keeps element numbers within 32 bits.
const maxSize = math.MaxInt32

// Pick plans a product by the variant that promises to be the fastest. The plan is empty if the result is.
func Pick(r *Request) (Plan, error) {
	return PickNow(r, func(Spec, int) bool { return true })
}

// PickNow plans a product by the variant that gives its result the soonest, for kernels of which some would have to be
// compiled first. Software adapters take a third of a second for those that run the fastest.
func PickNow(r *Request, compiled func(s Spec, parts int) bool) (Plan, error) {
	best := choice{cost: math.Inf(1)}
	err := r.each(func(c choice) {
		if !compiled(c.spec, c.parts) {
			c.cost += r.costs().compiling(c.spec)
		}
		if c.cost < best.cost {
			best = c
		}
	})
	if err != nil || r.M == 0 || r.N == 0 {
		return Plan{}, err
	}
	return r.plan(best.spec, best.parts), nil
}

// Candidates returns all plans that serve the request, the most promising first: what a tuner tries.
func Candidates(r *Request) ([]Plan, error) {
	var all []choice
	err := r.each(func(c choice) { all = append(all, c) })
	if err != nil || r.M == 0 || r.N == 0 {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y choice) int { return cmp.Compare(x.cost, y.cost) })
	plans := make([]Plan, len(all))
	for i, c := range all {
		plans[i] = r.plan(c.spec, c.parts)
	}
	return plans, nil
}

// choice is a variant with k cut into so many parts.
type choice struct {
	spec  Spec
	parts int
	cost  float64
}

// each calls f for every variant that serves the request, with every number of parts worth considering.
func (r *Request) each(f func(choice)) error {
	if r.M < 0 || r.N < 0 || r.K < 0 || r.M > maxSize || r.N > maxSize || r.K > maxSize {
		return errors.New("product: size out of range")
	}
	a, b := r.classes()
	served := false
	for i := range variants {
		if v := &variants[i]; v.fits(r) {
			served = true
			r.eachParts(v, v.spec(r, a, b), f)
		}
	}
	if !served { // a device below all limits; tiles need nothing
		r.eachParts(&variants[0], variants[0].spec(r, a, b), f)
	}
	return nil
}

// eachParts calls f with every number of parts worth considering.
func (r *Request) eachParts(v *variant, s Spec, f func(choice)) {
	least := shaders.Ceil(max(r.quads(), 1), s.maxChunk())
	f(choice{s, least, v.cost(r, s, least)})
	if v.rounds(r, s, least) >= enoughRounds {
		return // the device is busy as it is
	}
	for parts := 2 * least; parts <= maxParts && r.quads() >= parts*minChunk && parts*r.M*r.N <= maxScratch; parts *= 2 {
		f(choice{s, parts, v.cost(r, s, parts)})
	}
}

const (
	maxParts = 64
	minChunk = 8 // quads of k that are worth a part
	// enoughRounds of all that runs at the same time need no more parts.
	enoughRounds = 4
	maxScratch   = 1 << 22 // elements of scratch memory that parallelism is worth
)

// maxChunk is how many quads of k an invocation may take, for all its loops to stay below shaders.LoopLimit.
func (s Spec) maxChunk() int {
	switch s.Kernel {
	case Group:
		return shaders.LoopLimit / 5
	case Row:
		return (shaders.LoopLimit - 16) * int(s.Tiling.TY)
	}
	return shaders.LoopLimit
}

// plan lists the launches of a product with k in parts.
func (r *Request) plan(s Spec, parts int) Plan {
	step := max(int(s.Tiling.KQ), 1) // Group takes whole steps
	chunk := max(shaders.Ceil(r.quads(), parts*step)*step, 1)
	parts = max(shaders.Ceil(r.quads(), chunk), 1)
	sh := shape{
		m: r.M, n: r.N, k: r.K, parts: parts, chunk: chunk, a: r.A.place(s.A), b: r.B.place(s.B),
		wide: shaders.Ceil(r.N, s.cols()), high: shaders.Ceil(r.M, s.rows()),
	}
	groups := sh.wide * sh.high * parts
	if s.Kernel == Tile {
		groups = shaders.Ceil(groups, s.threads())
	}
	first := Pass{Spec: s, Groups: shaders.Fold(groups), Shape: sh.bytes(), Own: []plan.Buffer{plan.A, plan.B}}
	if parts == 1 {
		return Plan{Passes: []Pass{first}}
	}
	quads := plan.Quads(r.N)
	first.To, first.Row = plan.Scratch, uint32(4*quads)
	last := Pass{
		Spec:   Spec{Kernel: Sum, Tiling: Tiling{TX: sumGroup, TY: 1}},
		Groups: shaders.Fold(shaders.Ceil(r.M*quads, sumGroup)),
		Shape:  plan.Words(nil, r.M, r.N, quads, parts),
		Own:    []plan.Buffer{plan.Scratch},
	}
	return Plan{Passes: []Pass{first, last}, Scratch: parts * r.M * quads * 16}
}

const sumGroup = 64
