// SPDX-License-Identifier: Apache-2.0

package kernels

import "strings"

// Family is kernels of one purpose, of which there are several variants.
type Family uint8

// The families.
const (
	FamilyLinear Family = iota // element-wise functions of contiguous operands
	FamilyGrid                 // element-wise functions of operands of any layout
	FamilyBlock                // element-wise functions of operands that are stored the other way round
	FamilyRows                 // reductions
	FamilyCols
	FamilySoftmax
	FamilyProduct
	FamilyVector // products of a row and a matrix, or of a matrix and a column
	FamilySparse // products of a sparse matrix and a dense one
)

// Families are the families' names in files of timings.
var Families = [...]string{"elementwise", "grid", "transpose", "reduce-rows", "reduce-columns", "softmax", "product", "vector", "sparse"}

// pass is a variant of a kernel that goes once over its operands.
type pass struct {
	form *form
	size int // invocations of a workgroup; of softmax by groups 0 says as many as the row is long
	each int // vectors, or blocks, of an invocation; of folds along rows the fewest of one, of sparse products the most
	busy int // of folds: how many invocations, or groups that fold together, keep a device busy
	few  int // of folds of columns: so many vectors are folded in one pass, since a second one would take longer
}

const (
	laneSize     = 64      // invocations of a workgroup of kernels that have no other size
	chunkVectors = 2048    // vectors of a chunk: enough for a launch to be shared by threads, few enough for a sum to be exact
	fewVectors   = 1 << 14 // of a matrix whose columns a software adapter folds in one pass
	always       = 1 << 30 // more invocations than there are
)

// passes lists the variants on offer. They have to serve operands of any size.
var passes = [...][]*pass{
	FamilyLinear: {&linear1, &linear2, {mapLinear, 256, 4, 0, 0}, {mapLinear, 64, 1, 0, 0}, {mapLinear, 64, 2, 0, 0}, {mapLinear, 64, 4, 0, 0}},
	FamilyGrid:   {&grid64, {mapGrid, 128, 0, 0, 0}, &grid256},
	FamilyBlock:  {&block1, {mapBlock, 64, 2, 0, 0}, &block4, {mapBlock, 64, 8, 0, 0}, &block256},
	FamilyRows: {
		&tree256,
		{foldTree, 128, 512, 512, 0},
		{foldTree, 64, 256, 1024, 0},
		{foldTree, 256, 4096, 64, 0},
		{foldTree, 64, 1024, 256, 0},
		&rows64,
		{foldRows, 64, 16, 2048, 0},
		{foldRows, 64, 16, 1 << 14, 0},
		{foldRows, 64, 64, 128, 0},
		{foldRows, 16, 16, 512, 0},
		&rowsChunks,
	},
	FamilyCols: {
		&colsMany,
		{foldCols, laneSize, 1, 1 << 12, 0},
		&cols1,
		{foldCols, laneSize, 2, 512, 0},
		{foldCols, laneSize, 2, 1 << 14, 0},
		{foldCols, laneSize, 4, 512, 0},
		&cols4,
		&colsChunks,
		{foldCols, laneSize, 4, 1 << 12, 0},
	},
	FamilySoftmax: {
		&softmaxLong,
		{softmaxGroup, 32, 0, 0, 0},
		{softmaxGroup, 64, 0, 0, 0},
		{softmaxGroup, 128, 0, 0, 0},
		{softmaxGroup, 256, 0, 0, 0},
		&softmax16,
		{softmaxRows, 32, 0, 0, 0},
		&softmax64,
	},
	FamilySparse: {&sparse1, {sparseRows, 64, 2, 0, 0}, &sparse4, {sparseRows, 64, 8, 0, 0}, {sparseRows, 256, 1, 0, 0}, {sparseRows, 256, 4, 0, 0}},
}

// fits tells whether a device can run the variant.
func (v *pass) fits(d *Device) bool {
	size, memory := v.size, 0
	switch v.form {
	case foldTree:
		memory = 3 * 16 * size // of the largest state
	case softmaxGroup:
		if size == 0 {
			size = 256
		}
		memory = 2 * 4 * size
	}
	return size <= d.MaxInvocations && memory <= d.MaxMemory
}

// name is what the variant is called in files of timings.
func (v *pass) name() string {
	_, name, _ := strings.Cut(v.form.name, "/")
	return named(name, v.size, v.each, v.busy, v.few)
}
