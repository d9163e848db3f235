// SPDX-License-Identifier: Apache-2.0

// Package samples makes what the task graphs of matrix/graph/pipelines are shown with: a moving scene, and points to learn from.
package samples

import (
	"math"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Data are examples to learn from: the same number of features for each, and a label below Classes.
type Data struct {
	Features []float32 // example by example
	Labels   []uint8
	Classes  int
}

// Split divides the examples: every n-th goes into the second part.
func (d *Data) Split(n int) (most, rest *Data) {
	most, rest = &Data{Classes: d.Classes}, &Data{Classes: d.Classes}
	inputs := len(d.Features) / len(d.Labels)
	for i, l := range d.Labels {
		to := most
		if i%n == n-1 {
			to = rest
		}
		to.Labels = append(to.Labels, l)
		to.Features = append(to.Features, d.Features[i*inputs:(i+1)*inputs]...)
	}
	return most, rest
}

// Points makes n points of the plane to learn from: "spirals" on three arms that wind around each other, or "clusters" in four
// heaps around the origin. The label is the arm or the heap.
func Points(kind string, n int, seed uint64) (*Data, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &Data{Labels: make([]uint8, n)}
	var at func(label float64) (radius, angle float64)
	spread := 0.0
	switch kind {
	case "spirals":
		d.Classes = 3
		at = func(arm float64) (radius, angle float64) {
			t := r.Float64()
			return 0.1 + 1.9*t, 2*math.Pi*arm/3 + 4.5*t + 0.12*r.NormFloat64()
		}
	case "clusters":
		d.Classes, spread = 4, 0.3
		at = func(heap float64) (radius, angle float64) { return 1.3, 2 * math.Pi * heap / 4 }
	default:
		return nil, fault.Fail("samples", fault.ErrInvalid, "points of ", kind, ", want spirals or clusters")
	}
	for i := range d.Labels {
		d.Labels[i] = uint8(i % d.Classes)
		radius, angle := at(float64(d.Labels[i]))
		sin, cos := math.Sincos(angle)
		d.Features = append(d.Features, float32(radius*sin+spread*r.NormFloat64()), float32(radius*cos+spread*r.NormFloat64()))
	}
	return d, nil
}

// Predict returns the most likely class of each example by the weights of package pipelines' network, computed on the host.
func Predict(weights [][]float32, features []float32) []uint8 {
	w1, b1, w2, b2 := weights[0], weights[1], weights[2], weights[3]
	inputs := len(w1) / len(b1)
	out := make([]uint8, len(features)/inputs)
	h, z := make([]float32, len(b1)), make([]float32, len(b2))
	for i := range out {
		layer(h, features[i*inputs:(i+1)*inputs], w1, b1)
		for j, v := range h {
			h[j] = float32(math.Tanh(float64(v)))
		}
		layer(z, h, w2, b2)
		for k, v := range z {
			if v > z[out[i]] {
				out[i] = uint8(k)
			}
		}
	}
	return out
}

// layer computes x*w + b.
func layer(out, x, w, b []float32) {
	copy(out, b)
	for i, v := range x {
		if v == 0 { // most pixels of a digit
			continue
		}
		for j, m := range w[i*len(out) : (i+1)*len(out)] {
			out[j] += v * m
		}
	}
}

// Errors returns the share of the examples whose class the weights do not find.
func (d *Data) Errors(weights [][]float32) float32 {
	wrong := 0
	for i, class := range Predict(weights, d.Features) {
		if class != d.Labels[i] {
			wrong++
		}
	}
	return float32(wrong) / float32(len(d.Labels))
}

// Scene draws frame n of a moving scene: discs that cross in front of a background that fades. frame has red, green, blue and
// opacity of each pixel, row by row.
func Scene(frame []byte, width, height, n int) {
	t, w, h := float64(n)/30, float64(width), float64(height)
	for y := range height {
		v := byte(40 + 70*y/height)
		span(frame[4*y*width:], 0, width, [3]byte{v / 2, v, v + 40})
	}
	for i, colour := range [...][3]byte{{235, 94, 85}, {250, 200, 90}, {90, 200, 160}} {
		phase := t*(0.7+0.25*float64(i)) + 2.1*float64(i)
		x, y := w*(0.5+0.38*math.Sin(phase)), h*(0.5+0.32*math.Cos(1.3*phase+float64(i)))
		r := min(w, h) * (0.1 + 0.03*float64(i))
		for row := max(int(math.Ceil(y-r)), 0); row < min(int(y+r)+1, height); row++ {
			half := math.Sqrt(max(r*r-(float64(row)-y)*(float64(row)-y), 0))
			span(frame[4*row*width:], max(int(math.Ceil(x-half)), 0), min(int(math.Floor(x+half))+1, width), colour)
		}
	}
}

// span fills pixels from to to-1 of a row.
func span(row []byte, from, to int, colour [3]byte) {
	for i := from; i < to; i++ {
		row[4*i], row[4*i+1], row[4*i+2], row[4*i+3] = colour[0], colour[1], colour[2], 255
	}
}
