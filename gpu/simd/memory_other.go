// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !js

package simd

// zero fills a part of reserved memory with zeros.
func zero(mem []byte) { clear(mem) }

// discard does nothing.
func discard([]byte) bool { return false }
