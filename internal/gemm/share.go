// SPDX-License-Identifier: Apache-2.0

package gemm

import (
	"sync"
	"sync/atomic"
)

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// grain is how much work, in operations, is worth a goroutine.
var grain = 1 << 22

// share cuts rows x cols numbers of a result into parts of whole tiles, and calls do for each part, in up to so many goroutines.
// The parts are about as many as the goroutines: each part packs its operands for itself.
func share(threads, operations, rows, cols, tileRows, tileCols int, do func(s *scratch, i, j, rows, cols int)) {
	threads = min(threads, operations/grain)
	if threads <= 1 {
		s := scratches.Get().(*scratch)
		do(s, 0, 0, rows, cols)
		s.keep()
		return
	}
	down, across := grid(threads, (rows+tileRows-1)/tileRows, (cols+tileCols-1)/tileCols, tileRows, tileCols)
	var next atomic.Int64
	work := func() {
		s := scratches.Get().(*scratch)
		defer s.keep()
		for n := int(next.Add(1)) - 1; n < down*across; n = int(next.Add(1)) - 1 {
			i, height := cut(n%down, down, rows, tileRows)
			j, width := cut(n/down, across, cols, tileCols)
			do(s, i, j, height, width)
		}
	}
	var group sync.WaitGroup
	for range min(threads, down*across) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// keep keeps the scratch for later products, without the operands.
func (s *scratch) keep() {
	s.tile, s.vectors = tile{}, vectors{}
	scratches.Put(s)
}

// grid finds how many parts down and across a result of so many tiles makes, so that the parts read little.
func grid(parts, rows, cols, tileRows, tileCols int) (down, across int) {
	best := -1
	for d := 1; d <= min(parts, rows); d++ {
		a := min((parts+d-1)/d, cols)
		// The longest part's time, then what all parts read of A and B.
		cost := ((rows+d-1)/d)*((cols+a-1)/a)*8*tileRows*tileCols + (rows*a*tileRows + cols*d*tileCols)
		if best < 0 || cost < best {
			best, down, across = cost, d, a
		}
	}
	return down, across
}

// cut is the n-th of `parts` parts of a length, in whole tiles.
func cut(n, parts, length, tile int) (first, count int) {
	tiles := (length + tile - 1) / tile
	first = n * tiles / parts * tile
	return first, min((n+1)*tiles/parts*tile, length) - first
}
