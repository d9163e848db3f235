// SPDX-License-Identifier: Apache-2.0

// Package shaders holds the compute kernels: text and numbers in, text and numbers out. It knows no device.
//
// Each family is a folder with WGSL files and, beside each, its reference implementation in Go of the same name: the parameter block, the
// bindings, the dispatch arithmetic and the same computation on the CPU, which is what the oracle runs and what the tests
// compare with.
//
//	elementwise   one pass over a result of any layout
//	product       matrix products and matrix-vector products
//	reduce        sums, maxima and minima over rows, columns or everything
//	softmax       normalised exponentials of rows
//	sparse        sparse matrices: to dense ones, and times dense ones
//	fuse          element-wise functions as WGSL and Go, which all the others take in
//	plan          computations that take several launches
//
// # Kernel files
//
// A kernel file is valid WGSL as it stands. [Expand] specialises it by rewriting whole lines: the right-hand side of a
// line that ends in "// @param", the region between "// @fuse" and "// @end", and loops marked "// @unroll".
package shaders

// Access tells what a kernel does with a binding.
type Access uint8

// The kinds of binding, as the device layer knows them.
const (
	Read Access = 1 + iota
	ReadWrite
	Params
)

// Program is a kernel ready to be compiled. All its bindings are in group 0, numbered as in Access.
type Program struct {
	Name   string // for people: the family, the kernel and its variant
	Source string
	Access []Access
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
