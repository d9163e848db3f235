// SPDX-License-Identifier: Apache-2.0

// Package cogent is the driver over github.com/cogentcore/webgpu, which carries a wgpu-native of August 2024 (wgpu 0.19). Programs that
// use this binding for their own drawing build with the tag cogent, which takes this driver in place of package oliver; without cgo the
// driver is there but lists no adapters. What it does is documented in package core. Its handles are *wgpu.Device and *wgpu.Buffer.
//
// What this version of the library cannot do: kernels in f16 and subgroup operations are not compiled, timestamps are not there, and
// a lack of memory can end the process; see "What ends the process" in SECURITY.md.
package cogent
