// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestForgottenViews resizes a matrix whose views stood inside expressions only.
func TestForgottenViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 5 {
			m := owned(t, dev, 2, 2, 1, 2, 3, 4)
			c := must[*dense](t)(matrix.New[float32](dev, 2, 2))
			check(t, c.Mul(m, m.T()))
			check(t, c.Add(m.Slice(0, 2, 0, 2), m.T()))
			check(t, m.Assign(owned(t, dev, 1, 3, 1, 2, 3)))
			wants(t, m, 1, 3, false, 1, 2, 3)
			v := m.Row(0)
			isError(t, m.Resize(4, 4), matrix.ErrView)
			check(t, v.Close())
			check(t, m.Resize(4, 4))
		}
	})
}
