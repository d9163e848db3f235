// SPDX-License-Identifier: Apache-2.0

// Package npy reads and writes arrays of numbers in NumPy's .npy format, versions 1 to 3.
//
//	r, err := npy.NewReader(file, size)
//	rows, cols := r.Header().Shape[0], r.Header().Shape[1]
//	values, err := npy.Read[float32](r)
//
// # Hostile files
//
// A header is checked whole before anything is allocated for what it claims: negative and overflowing shapes, a length
// beyond the end of the file, and unknown or repeated keys are [ErrFormat]. Where the size of the input is unknown, memory
// grows with what really arrives. Nothing panics and nothing in a file is executed; element types that would need it
// (Python objects) and those that no matrix has (structures, text, complex numbers, dates) are [ErrType].
//
// The format is described at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
package npy
