// SPDX-License-Identifier: Apache-2.0

// Package npy reads and writes arrays of numbers in NumPy's .npy format, versions 1 to 3, and archives of them, .npz.
//
//	r, err := npy.NewReader(file, size)
//	rows, cols := r.Header().Shape[0], r.Header().Shape[1]
//	values, err := npy.Read[float32](r)
//
// [NewZipReader] and [NewZipWriter] stream the arrays of an archive, as package file has it.
//
// # Hostile files
//
// A header is checked whole before anything is allocated for what it claims: negative and overflowing shapes, and unknown
// keys are [file.ErrFormat], repeated ones [file.ErrDuplicate], a length beyond the end of the file [file.ErrTruncated]. Where the size of the
// input is unknown, memory grows with what really arrives. Nothing panics and nothing in a file is executed; element types
// that would need it (Python objects) and those that no array here has (structures, text, dates) are [file.ErrType].
// Errors are *[file.Error] and tell where: in a compressed member of an archive, where its bytes begin.
//
// The formats are described at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html and
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT.
package npy
