// SPDX-License-Identifier: Apache-2.0

// Package gonum converts between gonum's matrices, of float64 on the CPU, and Sublet's.
//
//	a, err := gonum.From[float32](dev, m)      // m is any mat.Matrix
//	a, change, err := gonum.Convert(dev, m)    // and how much the values changed
//	d, err := gonum.ToDense(ctx, a)
//
// # Precision
//
// float32 has 24 bits of the 53 that gonum's numbers have. Each value is rounded to the nearest; the relative change of a normal
// number is at most 2^-24. A value that the element type cannot hold at all is an error.
//
// # Layout
//
// A transpose (the result of T) is not carried out: its matrix becomes one that is stored by columns.
package gonum
