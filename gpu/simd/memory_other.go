// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package simd

// zero fills a part of reserved memory with zeros.
func zero(mem []byte) { clear(mem) }
