// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Order tells which index runs fastest in memory: by its String method, "row-major" or "column-major".
type Order = expr.Order

// ColMajorOrder is the order of columns one after the other. The other one, of rows, is the zero value.
const ColMajorOrder = expr.ColMajorOrder
