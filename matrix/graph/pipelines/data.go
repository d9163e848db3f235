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

// Len returns the number of examples.
func (d *Data) Len() int {
	if d == nil {
		return 0
	}
	return len(d.Labels)
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

// Spirals makes n points of the plane on so many arms that wind around each other, the label being the arm.
func Spirals(n, arms int, seed uint64) (*Data, error) {
	return points("Spirals", n, arms, seed, func(arm int, r *rand.Rand) (x, y float64) {
		t := r.Float64()
		angle := 2*math.Pi*float64(arm)/float64(arms) + 4.5*t + 0.12*r.NormFloat64()
		return (0.1 + 1.9*t) * math.Sin(angle), (0.1 + 1.9*t) * math.Cos(angle)
	})
}

// Clusters makes n points of the plane in so many heaps around the origin, the label being the heap.
func Clusters(n, heaps int, seed uint64) (*Data, error) {
	return points("Clusters", n, heaps, seed, func(heap int, r *rand.Rand) (x, y float64) {
		angle := 2 * math.Pi * float64(heap) / float64(heaps)
		return 1.3*math.Sin(angle) + 0.3*r.NormFloat64(), 1.3*math.Cos(angle) + 0.3*r.NormFloat64()
	})
}

func points(op string, n, classes int, seed uint64, at func(int, *rand.Rand) (x, y float64)) (*Data, error) {
	if n < 1 || n > maxExamples || classes < 2 || classes > 256 {
		return nil, fail(op, gpu.ErrInvalid, itoa(n), " points of ", itoa(classes), " classes")
	}
	r := rand.New(rand.NewPCG(seed, 1))
	d := &Data{Inputs: 2, Classes: classes, Features: make([]float32, 0, 2*n), Labels: make([]uint8, n)}
	for i := range n {
		d.Labels[i] = uint8(i % classes)
		x, y := at(i%classes, r)
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
