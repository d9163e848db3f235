// SPDX-License-Identifier: Apache-2.0

// Package dlpack lends tensors to other libraries in the process and borrows theirs, without copies, natively: NumPy,
// PyTorch, JAX, TVM and others exchange memory in the structures of DLPack 1. It needs cgo, on amd64 or arm64.
//
//	t, err := dlpack.FromArray(ctx, a, dlpack.InPlace) // or a dlpack.Tensor of any memory
//	m, err := dlpack.Export(t)                         // unsafe.Pointer(m) is a DLManagedTensorVersioned *
//
//	t, err := dlpack.Import((*dlpack.Managed)(pointer)) // from C
//	a, err := dlpack.ToArray(dev, t)                    // or t.Host, t.Handle; Close gives it back
//
// [ExportLegacy] and [ImportLegacy] do the same with the DLManagedTensor of older libraries.
//
// # Who owns what
//
// A managed tensor is borrowed memory and a deleter, which its one consumer calls exactly once, when done. What is exported
// stays pinned until then; Tensor.Release runs on the consumer's thread and takes locks of the device, so a consumer must not
// give a device's memory back from within a callback of that device. The deleter of what is imported is called by
// [Tensor.Close], or when the last user of the array of [ToArray] is closed; a tensor that [Import] refuses is given back at
// once. No garbage collector gives back what nobody closes. A [Tensor] is used up by Close, Export and ToArray, whichever
// succeeds first. What is refused is as it was.
//
// Version, rank, dimensions, strides, element type, and that all of that can be addressed are checked. Nobody can see whether
// an address or a handle is what it says, nor whether a structure was consumed before: as in C, a wrong one ends the process.
//
// # Elements of less than a byte
//
// They share bytes unless [Padded] says that they have a byte each, as those of arrays have. TVM's older bool (one bit,
// unsigned) has one, too, but its legacy structure cannot say so: whoever knows where a tensor is from sets the flag.
//
// # Devices
//
// Arrays in host memory travel as [CPU]. Those of a GPU travel as [WebGPU], the handle being a WGPUBuffer of wgpu-native for
// other code of this process that uses the same library and device. It is no Vulkan or Metal object, which wgpu-native does
// not hand out. For other libraries take [OnHost]. Tensors of all other devices are passed through.
//
// Facts about the format are from DLPack's header and documentation, https://dmlc.github.io/dlpack/latest/.
package dlpack
