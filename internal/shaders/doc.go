// SPDX-License-Identifier: Apache-2.0

// Package shaders holds the compute kernels: text and numbers in, text and numbers out. It knows no device.
//
//	fuse      element-wise functions as WGSL and Go, which kernels take in
//	kernels   the kernels of matrices, a folder of WGSL files for each family; beside them in Go the parameter block, the
//	          dispatch arithmetic, and the same computation on the CPU, which the oracle runs and tests compare with
//	wgsl      what is read of texts of the user's
//
// # Kernel files
//
// A kernel file is valid WGSL as it stands. [Expand] specialises it by rewriting whole lines: the right-hand side of a
// line that ends in "// @param", the region between "// @fuse" and "// @end", and loops marked "// @unroll".
package shaders

import "encoding/binary"

// Program is a kernel ready to be compiled. All its bindings are in group 0: the parameter block, Own storage bindings that are
// read, the one that is written, and Inputs others that are read.
type Program struct {
	Name        string // for people: the family, the kernel and its variant
	Source      string
	Own, Inputs int
	// Reference does the same in Go. It is nil where the program holds WGSL of the user's, which Go cannot run.
	Reference Reference
}

// Reference runs a kernel in Go, given the workgroup counts, the parameter block, and the bytes of each storage binding. It is
// an interface because the linker leaves out a method that nobody calls: a program without the oracle then has no references.
type Reference interface {
	Run(groups [3]uint32, params []byte, storage [][]byte)
}

// Ceil divides and rounds up.
func Ceil(a, b int) int { return (a + b - 1) / b }

// MaxGroups is how many workgroups WebGPU allows in one dimension.
const MaxGroups = 65535

// Fold spreads n workgroups over x and y so that neither exceeds [MaxGroups]. The kernel's index is
// workgroup.x + workgroup.y * num_workgroups.x, and it ignores what is too much.
func Fold(n int) [3]uint32 {
	if n <= MaxGroups {
		return [3]uint32{uint32(n), 1, 1}
	}
	rows := Ceil(n, MaxGroups)
	return [3]uint32{uint32(Ceil(n, rows)), uint32(rows), 1}
}

// LoopLimit is how many turns all loops of one invocation may take together. Mesa's llvmpipe ends an invocation silently
// at 65535; kernels split their work to stay below this.
const LoopLimit = 60000

// Words appends numbers to a parameter block.
func Words(b []byte, v ...int) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// Bit is 1 for true and 0 for false.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
