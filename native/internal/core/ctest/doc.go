// SPDX-License-Identifier: Apache-2.0

// Package ctest tests the drivers over package core: what package gputest wants of every driver, and what these promise beside it.
// A driver's test is
//
//	func TestCore(t *testing.T) { ctest.Run(t, bench) }
//
// where bench is the driver, and its binding as programs use it. [FuzzNewKernel] and [Benchmark] take the same.
package ctest
