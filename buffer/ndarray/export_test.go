// SPDX-License-Identifier: Apache-2.0

package ndarray

// ByPieces loads as to memory that cannot be mapped.
func ByPieces() LoadOptions { return LoadOptions{byPieces: true} }
