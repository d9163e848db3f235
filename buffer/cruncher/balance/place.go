// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// place hands out n steps, each to the device that would be done with it first, where device i needs offset[i] seconds
// and pace[i] for each step; a pace of +Inf keeps a device out, and one at least is finite. Ties go to the lower number.
//
// The result is the one of the greedy loop over all steps, but only the last few are handed out singly. If work could be
// divided at will, all devices that have some would be done at the same time, the level. The greedy loop ends less than a
// step before or after it.
func place(offset, pace []float64, n int) []int {
	counts := make([]int, len(pace))
	top := level(offset, pace, float64(n))
	left := n
	for i, p := range pace {
		c := math.Floor((top - offset[i]) / p)
		if c > 0 { // false for NaN
			counts[i] = int(min(c, float64(left)))
			left -= counts[i]
		}
	}
	// With numbers that float64 cannot hold together there may be more left than a step for each device.
	if singly := 2 * len(pace); left > singly {
		counts[slices.Index(pace, slices.Min(pace))] += left - singly
		left = singly
	}
	handOut(counts, offset, pace, left)
	return counts
}

// level returns when all devices are done if n steps are divided at will.
func level(offset, pace []float64, n float64) float64 {
	order := make([]int, 0, len(pace))
	for i, p := range pace {
		if !math.IsInf(p, 1) {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return offset[order[i]] < offset[order[j]] })
	base := offset[order[0]]
	var speed, lost, top float64
	for k, i := range order {
		speed += 1 / pace[i]
		lost += (offset[i] - base) / pace[i]
		top = base + (n+lost)/speed
		if k+1 < len(order) && top <= offset[order[k+1]] {
			break
		}
	}
	return top
}

// handOut gives n steps one at a time, with a heap of the devices by when they would be done with one more.
func handOut(counts []int, offset, pace []float64, n int) {
	type device struct {
		done float64
		i    int
	}
	next := func(i int) device { return device{offset[i] + float64(counts[i]+1)*pace[i], i} }
	heap := make([]device, len(counts))
	for i := range heap {
		heap[i] = next(i)
	}
	before := func(a, b device) int { return cmp.Or(cmp.Compare(a.done, b.done), cmp.Compare(a.i, b.i)) }
	sort.Slice(heap, func(i, j int) bool { return before(heap[i], heap[j]) < 0 })
	for range n {
		counts[heap[0].i]++
		heap[0] = next(heap[0].i)
		for k := 0; ; {
			child := 2*k + 1
			if child >= len(heap) {
				break
			}
			if child+1 < len(heap) && before(heap[child+1], heap[child]) < 0 {
				child++
			}
			if before(heap[k], heap[child]) <= 0 {
				break
			}
			heap[k], heap[child] = heap[child], heap[k]
			k = child
		}
	}
}
