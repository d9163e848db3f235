// SPDX-License-Identifier: Apache-2.0

// Package core is what the drivers over wgpu-native (Vulkan, Metal, Direct3D 12) share: everything except the calls of one binding. A
// [Binding] says how a Go package wraps the library's objects and, in a table of C functions (binding.h), how that version of
// the library is called. Programs use packages cogent, oliver and rajveer, which make their drivers of it; [Raw] and [FromRaw] are for
// those that exchange buffers with C.
//
// # Why it goes past the binding
//
// A binding is linked and its types are the handles that users exchange with its driver (*wgpu.Device, *wgpu.Buffer), but
// this package calls the C library itself, for four reasons:
//
//   - Bindings hand C the addresses of Go variables that the garbage collector reuses before the callback runs. Here
//     all state that C may touch later is C memory, and callbacks are C functions.
//   - The waiting poll gives up after five seconds and then takes unfinished work for done. This package uses
//     the poll that does not wait, which reads the fence.
//   - Error scopes are one stack per device, so errors of concurrent calls get mixed up, and an error outside of a scope
//     ends the process. Here devices are made with handlers that give each error to the call that caused it. Devices that
//     were made elsewhere and adopted have scopes, under the device's lock.
//   - A call into C costs more than a dispatch. Here a whole command list is one call.
//
// With llvmpipe, and only there, a submission blocks inside the library until the one before it is done. The driver then
// waits outside, so that others can use the device and contexts are obeyed, but Submit returns only after the submission before it.
//
// # What ends the process all the same
//
// wgpu-native aborts on mistakes that it finds at submission. [driver.Objects] keeps all those from it that can be made
// through the seam. What remains lies with those who use a handle beside the driver: to release one that is only
// borrowed ([driver.Device.Handle]), to destroy the device (wgpuDeviceDestroy, which bindings do not offer) while a call on it runs, or to
// destroy or map a buffer in one goroutine while another submits a list that names it. A destroyed or mapped buffer is an error of Submit. wgpu-native also aborts when
// the platform loses the device while work is submitted or polled; losses it reports otherwise close
// [driver.Device.Lost].
//
// # Handles
//
// A buffer that is mapped is not imported: fault.ErrMapped. wgpu-native has no call to ask for that or whether it is destroyed
// (wgpuBufferGetMapState is not implemented and ends the process), and an error that is provoked to find out may end up in an error scope
// of the program's. So the calls that create, unmap, destroy and release buffers are watched, which linkers can do on Linux and Windows. Only
// one that can be mapped later is asked for another mapping, which fails if there is one. On macOS errors are provoked, and the only way to
// find out that a buffer is mapped since its creation is to unmap it.
//
// Adopted devices and imported buffers get a reference of their own; the caller may release its own at any time. Handles that
// the driver gives out are borrowed and must not be released. Callbacks that a user registers with the binding run inside
// calls of this driver and must not call it.
//
// # What is not known of an adopted device
//
// The library does not tell which adapter a device is of. So the driver lists the adapters that could have granted the device's limits
// and features, and measures how far the loops of a kernel go. If that leaves one, or several that are alike, the device is taken to
// be of it.
package core
