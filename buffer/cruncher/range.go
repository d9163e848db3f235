// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"math"
	"math/bits"
)

// Range says what a call computes, and how.
type Range struct {
	// Global is the number of work items: those from Offset to Offset+Global-1. In two and three dimensions it is the extent
	// of the slowest one, which the devices divide among them. It need not be a multiple of anything.
	Global int
	// Local is the number of items in a workgroup, 256 or what the devices allow where it is 0. Devices get multiples of it,
	// but for the rest of the range.
	Local int
	// Offset is the number of the first item.
	Offset int
	// Inner are the extents of the faster dimensions, x alone in two dimensions, x and y in three.
	Inner []int
	// Strict refuses ranges that are no multiples of Local, and those too small to give every device a workgroup.
	Strict bool

	// Blobs cuts each device's part into as many pieces, to move one piece while another is computed. 0 and 1 do not, nor do
	// ranges with repeats or a SyncKernel.
	// Pieces of fewer than Local items are not made, nor more than 4,096. The results do not depend on it as long as items depend
	// on elements of their own only.
	Blobs int
	// Repeat calls the kernels as many times without anything moving between. 0 is 1.
	Repeat int
	// SyncKernel runs after each repeat on every device, with the items of one workgroup from 0 on. What it writes of elements that
	// are not the device's own stays there, and is gone when the next call begins.
	SyncKernel string
	// TransferOnly moves what the call would and runs no kernel.
	TransferOnly bool
}

const (
	maxBlobs = 4096                             // of a part, so that they are not beyond count
	maxItems = min(math.MaxUint32, math.MaxInt) // that kernels can number, and the host count
)

// inner returns the number of items for each step along the slowest dimension.
func (r *Range) inner() int {
	n := 1
	for _, e := range r.Inner {
		n *= e
	}
	return n
}

// check completes the range and refuses impossible ones.
func (r *Range) check() error {
	const op = "Compute"
	for i, n := range []int{r.Global, r.Local, r.Offset, r.Blobs, r.Repeat} {
		if n < 0 {
			return fail(op, ErrRange, []string{"global", "local", "offset", "blobs", "repeat"}[i], " ", itoa(n), ", which is negative")
		}
	}
	if len(r.Inner) > 2 {
		return fail(op, ErrRange, "more than three dimensions")
	}
	total := 1
	for _, e := range r.Inner {
		if e < 1 || e > maxItems/total {
			return fail(op, ErrRange, "an inner extent of ", itoa(e))
		}
		total *= e
	}
	if r.Global > maxItems || r.Offset > maxItems-r.Global || r.Global > 0 && (r.Offset+r.Global) > maxItems/total {
		return fail(op, ErrRange, "more than ", itoa(maxItems), " items")
	}
	if r.Repeat == 0 {
		r.Repeat = 1
	}
	if r.Repeat > 1 || r.SyncKernel != "" || r.Blobs == 0 {
		r.Blobs = 1 // repeats need everything to stay where it is
	}
	r.Blobs = min(r.Blobs, maxBlobs)
	return nil
}

// checkStrict refuses what the Cekirdekler API refuses, with a local range of l, for so many devices.
func (r *Range) checkStrict(l, devices int) error {
	const op = "Compute"
	if !r.Strict {
		return nil
	}
	blob := l * r.Blobs // small: l is within the devices' limits
	switch {
	case r.Global%blob != 0:
		return fail(op, ErrRange, "a global range of ", itoa(r.Global), " is no multiple of the local range times the blobs, ", itoa(blob))
	case r.Global < blob*devices:
		return fail(op, ErrRange, "a global range of ", itoa(r.Global), " does not give ", itoa(devices), " devices ", itoa(blob), " items each")
	}
	return nil
}

// part is a device's share of a range: count steps of the slowest dimension from base on, which counts from zero and has
// the offset in it.
type part struct{ base, count int }

// span is the elements lo to hi-1 of an array.
type span struct{ lo, hi int }

// elements returns the elements of an array that belong to a part.
func (p part) elements(items, inner, n int) span {
	return span{min(mul(p.base*inner, items), n), min(mul((p.base+p.count)*inner, items), n)}
}

// checkLength checks the length of the parameter, if that is an array.
func (p *param) checkLength(r *Range) error {
	if p.array == nil {
		return nil
	}
	return checkLength(p.array.body, &p.flags, r)
}

// checkLength wants an array that moves by parts to have elements for every item.
func checkLength(a *body, f *Flags, r *Range) error {
	if !f.PartialRead && (!f.Write || f.WriteAll) {
		return nil
	}
	if need := mul((r.Offset+r.Global)*r.inner(), f.ElementsPerItem); r.Global > 0 && a.n < need {
		return fail("Compute", ErrLength, a.name, " has ", itoa(a.n), " elements, the range needs ", itoa(need))
	}
	return nil
}

// mul multiplies numbers that are not negative. What is too large is the largest number.
func mul(a, b int) int {
	if high, low := bits.Mul64(uint64(a), uint64(b)); high == 0 && low <= math.MaxInt {
		return int(low)
	}
	return math.MaxInt
}
