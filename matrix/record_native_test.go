// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestRecordAllocates wants an operation of a matrix to take no memory once its plan is known, but for what the submissions take now and then.
func TestRecordAllocates(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, c := must[*dense](t)(matrix.New[float32](dev, 4, 4)), must[*dense](t)(matrix.New[float32](dev, 4, 4))
		for name, record := range map[string]func() error{
			"Add":     func() error { return c.Add(c, a) },
			"Sub":     func() error { return c.Sub(a, c) },
			"MulElem": func() error { return c.MulElem(c, a) },
			"DivElem": func() error { return c.DivElem(c, a) },
			"Scale":   func() error { return c.Scale(0.5, c) },
		} {
			most := 0.0
			if name == "Scale" {
				most = 1 // its number
			}
			least := math.Inf(1) // what computes on the CPU takes memory at the same time
			for range 5 {
				check(t, dev.Sync(background))
				least = min(least, testing.AllocsPerRun(50, func() { check(t, record()) }))
			}
			if least > most {
				t.Errorf("%s takes %v allocations, want %v", name, least, most)
			}
		}
		check(t, errors.Join(dev.Sync(background), a.Close(), c.Close()))
	})
}
