// SPDX-License-Identifier: Apache-2.0

package buffer

// Span returns how many bytes lie between the region's first and last byte, both included.
func (r Region) Span() int { return r.span() }
