// SPDX-License-Identifier: Apache-2.0

package ndarray

// ByPieces loads as to memory that cannot be mapped.
// Range is the range of an input.
func (in Input) Range() (int32, bool) { return in.limit() }

func ByPieces() LoadOptions { return LoadOptions{byPieces: true} }
