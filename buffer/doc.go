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
// [Location] says where the current bytes are: on the host, on the device, on both, or nowhere yet. Reading them elsewhere
// copies them, and then both are current; writing leaves only what was written current. Only stale bytes move: a wrapped slice
// goes up once, when a kernel first reads it, and results come back at [Buffer.Sync], and only the parts that kernels
// wrote. The caller of a wrapped slice says with [Buffer.Touch] that it has changed.
//
// # Replicas
//
// What a device has of a buffer is a replica. There may be one on each of several devices ([Buffer.Use]), and of memory larger
// than a device's largest buffer several of ranges. A replica gets what it lacks when a kernel is about to use it: from
// another replica of the same device by a copy there, else by way of the host. Wraps of host memory that overlaps, which is
// recognised by address, or by ArrayBuffer and offset, see each other's results in the same way; closing a wrap gives up
// results that were not synced and that no other replica has.
//
// # Goroutines
//
// Methods may be called from several goroutines. Host memory of the caller's must not be written while a call that reads
// it runs.
package buffer
