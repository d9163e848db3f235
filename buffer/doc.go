// SPDX-License-Identifier: Apache-2.0

// Package buffer is memory that kernels can use, whoever owns it.
//
// A [Buffer] is untyped bytes with a mode, a state and a share count.
//
// # Modes
//
// An owned buffer is an allocation of the library's, taken from the device's pool and given back when the last share
// closes. An external one is somebody else's memory: a Go slice, a typed array of JavaScript, a memory-mapped file, a
// GPU buffer made elsewhere. It is never resized and never freed; a release function, if there is one, is called exactly
// once when the last share closes. A mapped one is memory that CPU and GPU both see: in place where the device can do
// that, else a pair of memories behind the same calls.
//
// # State
//
// [Location] tells where the current bits are: on the host, on the device, on both, or nowhere yet. Reading on the other
// side copies and makes it Both; writing makes it the side that was written. Only what is stale moves: a wrapped slice
// goes up once, when a kernel first reads it, and results come back at [Buffer.Sync], and only the parts that kernels
// wrote. The caller of a wrapped slice says with [Buffer.Touch] that he wrote into it.
//
// # Goroutines
//
// Methods may be called from several goroutines. Host memory of the caller's must not be written while a call that reads
// it runs.
package buffer
