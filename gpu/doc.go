// SPDX-License-Identifier: Apache-2.0

// Package gpu opens devices and runs kernels on them.
//
//	dev, err := gpu.Open(ctx)
//	defer dev.Close()
//
// A [Device] collects commands and hands them to its driver in batches: a call such as [Kernel.Dispatch] returns as soon
// as the command is recorded. A batch leaves when somebody reads, at [Device.Sync], at [Device.Flush], or when it has
// become large. [Device.Stats] counts what moved and what ran.
//
// Most programs use package matrix and meet only [Open], [Adapters] and [Device] of this one. Programs with kernels of
// their own use [Device.Kernel] and [Device.NewBuffer]; those for several devices begin with [Select].
//
// # Errors
//
// Errors wrap one of this package's sentinels in an [OpError]; compare with errors.Is. No call panics. A call that fails
// has changed nothing.
//
// # Devices and goroutines
//
// All methods may be called from several goroutines; every call is one step, in some order. Several devices may be open
// at once, also of one adapter. Objects of one device given to another are [ErrForeign].
package gpu
