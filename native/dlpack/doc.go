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
// A managed tensor has borrowed memory and a deleter, which its only consumer calls exactly once, when done. The memory of an exported
// tensor stays pinned until then. Tensor.Release runs on the consumer's thread and takes locks of the device, so a consumer must not
// call the deleter in a callback of that device. The deleter of an imported tensor is called by [Tensor.Close], or when the last user
// of the array of [ToArray] is closed; if [Import] refuses a tensor its deleter is called at once. The garbage collector does not call
// deleters. Close, Export and ToArray consume a [Tensor]: only the first of them that succeeds has an effect. A call that fails
// changes nothing.
//
// Version, rank, dimensions, strides, element type and the range of addresses are checked. Whether an address or a handle is valid, or a
// structure was consumed before, cannot be checked: as in C, a wrong one ends the process.
//
// # Elements of less than a byte
//
// They share bytes unless [Padded] says that each has its own byte, as in arrays. TVM's older bool (one bit, unsigned) has a byte, too,
// but the legacy structure cannot say so: set the flag for tensors from there.
//
// # Devices
//
// Arrays in host memory are exported as [CPU]. Those of a GPU are exported as [WebGPU], with a WGPUBuffer of wgpu-native as the handle,
// for other code of this process that uses the same library and device. It is not a Vulkan or Metal object, which wgpu-native does
// not expose. For other libraries use [OnHost]. Tensors of all other devices are passed through.
//
// Facts about the format are from DLPack's header and documentation, https://dmlc.github.io/dlpack/latest/.
package dlpack
