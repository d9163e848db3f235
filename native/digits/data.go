// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

// split shuffles the examples by a seed and keeps every fifth back.
func split(all *samples.Data, seed uint64) (learnt, held *samples.Data) {
	shuffled := &samples.Data{Classes: all.Classes}
	for _, i := range rand.New(rand.NewPCG(seed, 3)).Perm(len(all.Labels)) {
		shuffled.Labels = append(shuffled.Labels, all.Labels[i])
		shuffled.Features = append(shuffled.Features, image(all, i)...)
	}
	return shuffled.Split(5)
}

func image(d *samples.Data, i int) []float32 { return d.Features[i*mnist.Pixels : (i+1)*mnist.Pixels] }

// vary draws an image turned, leaning, scaled and moved by a little, so that the network learns more hands than there are.
func vary(dst, src []float32, r *rand.Rand) {
	spread := func(most float64) float64 { return most * (2*r.Float64() - 1) }
	sin, cos := math.Sincos(spread(0.2))
	lean, wide, high := spread(0.15), 1+spread(0.12), 1+spread(0.12)
	const middle = (side - 1) / 2.
	right, down := spread(1.5), spread(1.5)
	for i := range side {
		for j := range side {
			x, y := (float64(j)-middle-right)*wide, (float64(i)-middle-down)*high
			x += lean * y
			dst[i*side+j] = between(src, cos*x-sin*y+middle, sin*x+cos*y+middle)
		}
	}
}

// between returns the brightness at a point between pixels, which is 0 outside of the image.
func between(src []float32, x, y float64) float32 {
	left, top := math.Floor(x), math.Floor(y)
	fx, fy := float32(x-left), float32(y-top)
	at := func(i, j int) float32 {
		if i < 0 || j < 0 || i >= side || j >= side {
			return 0
		}
		return src[i*side+j]
	}
	i, j := int(top), int(left)
	return (1-fy)*((1-fx)*at(i, j)+fx*at(i, j+1)) + fy*((1-fx)*at(i+1, j)+fx*at(i+1, j+1))
}
