// SPDX-License-Identifier: Apache-2.0

// Package gogpu is an experimental driver over github.com/gogpu/wgpu, which is written in Go and calls Vulkan, Metal and Direct3D 12
// without cgo. It is a module of its own, so that only programs that want it download what it needs.
//
// What it does wrong is in package gpu/driver/expected. [gpu.Open] takes its adapters when it is asked for the driver "gogpu", or when
// only the oracle is left, as in programs that are built without cgo.
//
// # What the library lacks
//
// The driver does without dynamic offsets, which the library ignores, and has a bind group for each parameter block of a binding set.
// The library orders dispatches among themselves and before copies, but nothing after copies, clears and writes; what needs their
// results goes into another submission. It compiles kernels with indices that are held to their bounds only where it is given SPIR-V,
// which the driver therefore makes itself for Vulkan.
//
// Buffers cannot be mapped. Loops that a software adapter ends early (Limits.MaxLoopsPerInvoking) are not noticed.
package gogpu
