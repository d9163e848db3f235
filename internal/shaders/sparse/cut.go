// SPDX-License-Identifier: Apache-2.0

package sparse

import "github.com/sublet-gpu/sublet/internal/shaders"

// Rows of up to shortRow entries are summed by one invocation for each vector of the result. Longer ones are cut, into
// maxParts parts at most, so that neither an invocation of "rows" nor one of "sum" comes near [shaders.LoopLimit]: a part
// of the longest row there can be, 2^31 entries, has 42950.
//
// A launch is done when its longest row is, so rows far below that limit are cut too. Of 256, 1024, 2048, 4096 and 16384
// entries, BenchmarkSparseRows of package matrix has 1024 on llvmpipe with two cores: a single row of 100,000 takes 0.44 ms
// (4096: 0.63, 16384: 0.75), one of a million 3.3 ms (3.0, 6.4), 50,000 short rows with a long one among them 5.1 ms (6.0,
// 6.4). Rows that are long but many, 200 of 10,000, gain nothing there and take a fifth to a third more time for being added
// up, whatever the cut. 256 is hardly faster and needs four times the memory for parts.
const (
	shortRow = 1024
	maxParts = 50000
)

// Chunk returns how many entries a part has where the longest row has that many, or 0 if no row need be cut.
func Chunk(longest int) int {
	if longest <= shortRow {
		return 0
	}
	return max(shortRow, shaders.Ceil(longest, maxParts))
}

// Longest returns the number of entries of the longest row.
func Longest(pointers []int32) int {
	most := int32(0)
	for i := 1; i < len(pointers); i++ {
		most = max(most, pointers[i]-pointers[i-1])
	}
	return int(most)
}

// Cut cuts rows into parts of up to chunk entries. parts points to the entries of each part as pointers did to those of each
// row, and rows to the parts of each row, of which there is one at least.
func Cut(pointers []int32, chunk int) (parts, rows []int32) {
	rows = make([]int32, 1, len(pointers))
	parts = make([]int32, 1, len(pointers))
	for i := 1; i < len(pointers); i++ {
		for at := int(pointers[i-1]) + chunk; at < int(pointers[i]); at += chunk {
			parts = append(parts, int32(at))
		}
		parts = append(parts, pointers[i])
		rows = append(rows, int32(len(parts)-1))
	}
	return parts, rows
}
