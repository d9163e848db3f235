// SPDX-License-Identifier: Apache-2.0

// Package kernel launches kernels that users write: it turns their source into complete WGSL modules, binds arrays and scalars by
// name, and divides ranges into workgroups and dispatches.
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
// A kernel is a function without a result and with one parameter, the number of its item: u32, or vec2<u32> and vec3<u32> for ranges
// of two and three dimensions. It uses arrays and scalars by the names they are declared with; the library adds the bindings, the
// entry point and the check that an item is in the range. A source may also have functions, structs, constants, and variables of the
// address spaces private and workgroup. Names that begin with sublet_ are reserved. A kernel can use
//
//	sublet_base    the first item that this launch computes, of the type of the parameter
//	sublet_count   how many items it computes
//	sublet_total   how many items the whole range has
//	arrayLength(&arr)        the array's full length, also if only a part of it is bound
//	sublet_load_arr(i)       element i of a packed or atomic array of 8- or 16-bit elements
//	sublet_store_arr(i, x)   stores to element i of an atomic one
//
// A scalar is a variable of each invocation: only that invocation sees assignments to it. Barriers need a complete module, since
// invocations beyond the range return early.
//
// # Complete modules
//
// A source with a @compute entry point is a complete module. It declares its bindings in group 0, and its text is not
// changed. The names of its storage variables are those of the arrays. It may have one uniform variable: a struct whose
// members have the names of scalars or one of these names,
//
//	sublet_base, sublet_count, sublet_total   u32, vec2<u32> or vec3<u32>
//	sublet_groups                             workgroups along x, u32
//	sublet_off_arr, sublet_len_arr            the first element bound and the length of an array, u32
//
// or begin with pad. A uniform variable that is no struct is treated as one such member. If an entry point uses sublet_groups, a
// one-dimensional range of more than 65,535 workgroups is dispatched as rows of sublet_groups workgroups: the number of a workgroup
// is workgroup_id.y * sublet_groups + workgroup_id.x. The last workgroups may have more invocations than the range has items: a
// module must compare with sublet_count.
//
// # Elements of 8 and 16 bits
//
// WGSL has no such types. Depending on its declaration, a kernel sees such an array converted to 32 bits, packed in words, or as
// atomic words; see [Mode]. [Conversions] makes the kernels that convert on the device.
//
// # Loops
//
// Some devices limit the iterations of loops, see MaxLoopsPerInvoking of their limits. If a kernel exceeds the limit natively, using
// the memory that it should have written is [github.com/sublet-gpu/sublet/gpu.ErrLimit].
//
// # Errors
//
// Mistakes that are found without compiling are [ErrKernel], with the line. The device's compiler finds the others;
// [Program.Compile] returns its error with the line numbers of the user's source. No call panics, whatever the source.
package kernel
