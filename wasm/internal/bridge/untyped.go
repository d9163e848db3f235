// SPDX-License-Identifier: Apache-2.0

package bridge

import "github.com/sublet-gpu/sublet/matrix"

// The types of package matrix whose element type is a value: a page chooses it at run time.
type (
	anyDense  = matrix.Any
	anyPart   = matrix.AnyPart
	anyExpr   = matrix.AnyExpr
	anySparse = matrix.AnySparse
)
