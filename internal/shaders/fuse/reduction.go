// SPDX-License-Identifier: Apache-2.0

package fuse

// Reduction names what a reduction computes.
type Reduction uint8

// The reductions.
const (
	ReduceSum Reduction = iota
	ReduceMax
	ReduceMin
	ReduceProd
)

// Axis tells what a reduction leaves.
type Axis uint8

// The axes.
const (
	AxisAll  Axis = iota // 1 x 1
	AxisRows             // one value per row: rows x 1
	AxisCols             // one value per column: 1 x cols
)
