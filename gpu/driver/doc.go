// SPDX-License-Identifier: Apache-2.0

// Package driver is the seam between Sublet and whatever executes its kernels.
//
// A driver knows buffers of bytes, kernels and command lists. It knows nothing of matrices, element types or
// expressions. Everything above hands it integers: buffers, kernels and binding sets are small numbers that the caller
// chooses, so a command list is one flat slice of words that can be printed, recorded, replayed, sent across a language
// border in one call, or executed by a fake.
//
// # Order
//
// Commands take effect in the order in which they were submitted, and within a list in the order in which they stand.
// [Device.Submit] does not wait. [Device.Read], [Device.Map] and [Device.Wait] wait for everything submitted before.
//
// # Safety
//
// Native WebGPU ends the process on many mistakes, so a driver never forwards a command it has not checked. The check is
// the same everywhere and is written once, in [Objects]: every driver embeds it and refuses a list before the first of
// its commands has run.
//
// # Concurrency
//
// All methods of a Device may be called from several goroutines. Who needs an order between them arranges it.
package driver
