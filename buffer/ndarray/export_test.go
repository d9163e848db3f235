// SPDX-License-Identifier: Apache-2.0

package ndarray

import "github.com/sublet-gpu/sublet/buffer/dtype"

// TypeOf returns the element type of T.
func TypeOf[T Elem]() dtype.Type { return typeOf[T]() }

// Check holds an input to the limits of graphs.
func (in Input) Check() error { return in.check() }

// ByPieces loads as to memory that cannot be mapped.
func ByPieces() LoadOptions { return LoadOptions{byPieces: true} }
