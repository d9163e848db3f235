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
// results goes into another submission. Its compiler knows neither all() nor any(), takes functions for builtin ones of the same name and
// abs() of an unsigned number for that of a signed one, and does not hold indices to their bounds. The driver changes what the compiler
// has read before SPIR-V is made of it, which it does for Vulkan only.
//
// Buffers cannot be mapped. Loops that a software adapter ends early (Limits.MaxLoopsPerInvoking) are not noticed.
package gogpu
