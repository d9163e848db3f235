// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/gpu"
)

// Data are examples to learn from: Inputs numbers and a label below Classes for each.
type Data struct {
	Inputs   int
	Classes  int
	Features []float32 // example by example
	Labels   []uint8
}

// check refuses what does not fit together. Classes are as many as labels can tell apart.
func (d *Data) check(op string) error {
	switch {
	case d == nil:
		return fail(op, gpu.ErrInvalid, "no data")
	case d.Inputs < 1 || d.Classes < 2 || d.Classes > 256:
		return fail(op, gpu.ErrInvalid, itoa(d.Inputs), " inputs, ", itoa(d.Classes), " classes")
	case len(d.Features)/d.Inputs != len(d.Labels) || len(d.Features)%d.Inputs != 0:
		return fail(op, gpu.ErrInvalid, itoa(len(d.Features)), " features for ", itoa(len(d.Labels)), " labels")
	}
	for i, l := range d.Labels {
		if int(l) >= d.Classes {
			return fail(op, gpu.ErrInvalid, "example ", itoa(i), " has the label ", itoa(int(l)))
		}
	}
	return nil
}

// Split divides the examples: every n-th goes into the second part. Both share the memory of neither.
func (d *Data) Split(n int) (most, rest *Data) {
	if d == nil || d.check("Split") != nil || n < 1 {
		return nil, nil
	}
	most, rest = &Data{Inputs: d.Inputs, Classes: d.Classes}, &Data{Inputs: d.Inputs, Classes: d.Classes}
	for i, l := range d.Labels {
		to := most
		if i%n == n-1 {
			to = rest
		}
		to.Labels = append(to.Labels, l)
		to.Features = append(to.Features, d.Features[i*d.Inputs:(i+1)*d.Inputs]...)
	}
	return most, rest
}

// maxExamples bounds what is made here.
const maxExamples = 1 << 24

// Points makes n points of the plane to learn from: "spirals" on three arms that wind around each other, or "clusters" in four
// heaps around the origin. The label is the arm or the heap.
func Points(kind string, n int, seed uint64) (*Data, error) {
	if n < 1 || n > maxExamples || kind != "spirals" && kind != "clusters" {
		return nil, fail("Points", gpu.ErrInvalid, itoa(n), " points of ", kind, ", want spirals or clusters")
	}
	r := rand.New(rand.NewPCG(seed, 1))
	d := &Data{Inputs: 2, Classes: 4, Features: make([]float32, 0, 2*n), Labels: make([]uint8, n)}
	at := func(heap float64) (x, y float64) {
		sin, cos := math.Sincos(2 * math.Pi * heap / 4)
		return 1.3*sin + 0.3*r.NormFloat64(), 1.3*cos + 0.3*r.NormFloat64()
	}
	if kind == "spirals" {
		d.Classes = 3
		at = func(arm float64) (x, y float64) {
			t := r.Float64()
			sin, cos := math.Sincos(2*math.Pi*arm/3 + 4.5*t + 0.12*r.NormFloat64())
			return (0.1 + 1.9*t) * sin, (0.1 + 1.9*t) * cos
		}
	}
	for i := range n {
		d.Labels[i] = uint8(i % d.Classes)
		x, y := at(float64(d.Labels[i]))
		d.Features = append(d.Features, float32(x), float32(y))
	}
	return d, nil
}

// deck deals the numbers of examples in batches. Each epoch has all of them in another order, but for those that make no
// whole batch.
type deck struct {
	order []uint32
	at    int
	rng   *rand.Rand
}

func newDeck(n int, seed uint64) *deck {
	d := &deck{order: make([]uint32, n), at: n, rng: rand.New(rand.NewPCG(seed, 2))}
	for i := range d.order {
		d.order[i] = uint32(i)
	}
	return d
}

// deal returns the next batch, which is valid until the next call.
func (d *deck) deal(n int) []uint32 {
	if d.at+n > len(d.order) {
		d.rng.Shuffle(len(d.order), func(i, j int) { d.order[i], d.order[j] = d.order[j], d.order[i] })
		d.at = 0
	}
	d.at += n
	return d.order[d.at-n : d.at]
}
