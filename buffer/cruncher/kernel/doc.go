// SPDX-License-Identifier: Apache-2.0

// Package kernel launches kernels that users write: it makes WGSL of them that devices compile, binds arrays and scalars by their
// names, and divides ranges into workgroups and dispatches.
//
//	src, err := kernel.Parse("fn add3(i: u32) { arr[i] = arr[i] + step; }")
//	p, err := src.Build("add3",
//		[]kernel.Decl{{Name: "arr", Type: dtype.Float32}, {Name: "step", Type: dtype.Float32, Scalar: true}},
//		[3]int{256})
//	err = p.Launch(ctx, dev, kernel.Range{Count: [3]int{n}, Total: [3]int{n}},
//		kernel.Argument{Name: "arr", Type: dtype.Float32, Buffer: buf, Length: n},
//		kernel.Argument{Name: "step", Type: dtype.Float32, Bits: []uint32{math.Float32bits(3)}})
//
// # Sources of functions
//
// A kernel is a function without a result and with one parameter, the item it is called for: u32, or vec2<u32> and vec3<u32> for
// ranges of two and three dimensions. It uses arrays and scalars by the names they are declared with; bindings, the entry point, and the check
// that an item is in the range are the library's. Functions, structs, constants, and variables of the address spaces private
// and workgroup may stand beside kernels. Names that begin with sublet_ are the library's. A kernel can use
//
//	sublet_base    the first item that this launch computes, of the type of the parameter
//	sublet_count   how many items it computes
//	sublet_total   how many items the whole range has
//	arrayLength(&arr)        the array's true length, also where less of it is bound
//	sublet_load_arr(i)       element i of a packed or atomic array of 8- or 16-bit elements
//	sublet_store_arr(i, x)   stores to element i of an atomic one
//
// A scalar is a variable of each invocation: what is assigned to it is seen by that invocation only. Barriers need a complete
// module, since items beyond the range leave before.
//
// # Complete modules
//
// A source with a @compute entry point is a complete module. It declares its bindings in group 0, and its text is not
// changed. The names of its storage variables are those of the arrays. It may have one uniform variable: a struct whose
// members have the names of scalars, or of what the library knows,
//
//	sublet_base, sublet_count, sublet_total   u32, vec2<u32> or vec3<u32>
//	sublet_groups                             workgroups along x, u32
//	sublet_off_arr, sublet_len_arr            the first element bound and the length of an array, u32
//
// or begin with pad. A uniform variable that is no struct is one such member. An entry point that takes sublet_groups gets a
// range of one dimension that has more than 65,535 workgroups as rows of so many: its workgroup's number is
// workgroup_id.y * sublet_groups + workgroup_id.x. As workgroups are whole, there may be more items than the range has: a
// module checks against sublet_count.
//
// # Elements of 8 and 16 bits
//
// WGSL has no such types. By declaration a kernel sees such an array widened to 32 bits, packed in words, or as atomic words;
// see [Mode]. [Conversions] are the kernels that convert on the device.
//
// # Loops
//
// Where a device limits the turns of loops, see MaxLoopsPerInvoking of its limits, what a kernel beyond it was to write is natively
// [github.com/sublet-gpu/sublet/gpu.ErrLimit] to whoever uses it.
//
// # Errors
//
// What the text itself shows to be wrong is [ErrKernel], with the line. The rest is found by the device's compiler;
// [Program.Compile] turns its error into one about the user's lines. No call panics, whatever the source.
package kernel
