// SPDX-License-Identifier: Apache-2.0

// Package cogent drives GPUs through wgpu-native (Vulkan, Metal, Direct3D 12), in the form in which
// github.com/cogentcore/webgpu carries it. It needs cgo; without it the driver is there but lists no adapters.
//
// # Why it goes past the binding
//
// The binding is linked and its types are the handles that users exchange with this driver ([*wgpu.Device],
// [*wgpu.Buffer]), but the driver calls the C library itself, for four reasons:
//
//   - The binding hands C the addresses of Go variables that the garbage collector reuses before the callback runs. Here
//     all state that C may touch later is C memory, and callbacks are C functions.
//   - The waiting poll gives up after five seconds and then takes unfinished work for done. Here nothing but the
//     polling poll is used, which reads the fence.
//   - Error scopes are one stack per device, so errors of concurrent calls get mixed up, and an error outside of a scope
//     ends the process. Here devices are made with handlers that give each error to the call that caused it. Devices that
//     were made elsewhere and adopted have scopes, under the device's lock.
//   - A call into C costs more than a dispatch. Here a whole command list is one call.
//
// With llvmpipe, and only there, a submission blocks inside the library until the one before it is done. The driver then
// waits outside, so that others can use the device and contexts are obeyed, but Submit returns only when its turn has come.
//
// # What ends the process all the same
//
// wgpu-native aborts on mistakes that it finds at submission. [driver.Objects] keeps all those from it that can be made
// through the seam. What remains lies with those who use a handle beside the driver: to release one that is only
// borrowed ([driver.Device.Handle]), or to destroy or map a buffer in one goroutine while
// another submits a list that names it. A destroyed or mapped buffer is an error of Submit. wgpu-native also aborts when
// the platform loses the device while work is submitted or polled; losses it reports otherwise close
// [driver.Device.Lost].
//
// # Handles
//
// A buffer that is mapped is not imported: fault.ErrMapped. wgpu-native has no call to ask (wgpuBufferGetMapState is not implemented and
// ends the process). So one that can be mapped is asked for another mapping, which fails, and of one that was mapped at its creation
// the calls to create and to unmap it are watched, which linkers can do on Linux and Windows. On macOS the only way to find out is
// to unmap it.
//
// Adopted devices and imported buffers get a reference of their own; the caller may release its own at any time. Handles that
// the driver gives out are borrowed and must not be released. Callbacks that a user registers with the binding run inside
// calls of this driver and must not call it.
package cogent
