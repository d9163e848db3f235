// SPDX-License-Identifier: Apache-2.0

// Package mapfile lets matrices use the bytes of a file where they lie, natively: the file is mapped into memory, and
// the operating system fetches its pages when they are needed and lets go of them when memory is short. So a file may be
// larger than the machine's memory. A matrix larger than a buffer of the device is used in parts, and expressions of it are
// computed block by block.
//
//	f, err := mapfile.Open("weights.bin")
//	defer f.Close()
//	w, err := mapfile.Wrap[float32](dev, f, 128, 4096, 4096) // from byte 128 on
//
// [Open] maps for reading, [OpenWritable] for writing too. Numbers are in the byte order of the machine, for practical
// purposes little-endian. The file is unmapped once the [File] and all matrices made of it are closed, in whatever order.
//
// Results reach a writable mapping at [matrix.Dense.Sync], like any wrapped memory; from then on everybody who reads the
// file sees them. [File.Flush] returns once they are on the disk. A matrix of a read-only mapping is
// no destination: [gpu.ErrReadOnly]. Where [matrix.Dense.Access] shows it, nothing must be written: the operating system
// stops a program that does.
//
// # Files that change
//
// A mapped file must not become shorter: the operating system stops a program that touches the pages behind its new end
// (SIGBUS); on Windows such a file cannot be shortened. Sublet touches them when a matrix is read, first used by a kernel, or
// synced. [runtime/debug.SetPanicOnFault] makes a panic of it where Go code does so, but not in a driver. The same happens
// where results reach a hole of a sparse file and the disk is full. What others write into the file meanwhile may be seen or
// not: a matrix is told with [matrix.Dense.Touch].
package mapfile
