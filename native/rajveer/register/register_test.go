// SPDX-License-Identifier: Apache-2.0

//go:build cgo && rajveer

package register

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// A program that imports the package multiplies on the driver.
func TestRegistered(t *testing.T) {
	if list := gpu.Drivers(); !slices.Equal(list, []string{"simd", "rajveer", "cpu"}) {
		t.Fatalf("the drivers are %v", list)
	}
	dev, err := gpu.Open(t.Context(), gpu.WithDriver("rajveer"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := matrix.Mul(a, a).Read(t.Context()); err != nil || !slices.Equal(got, []float32{7, 10, 15, 22}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, closed := range []error{a.Close(), dev.Close()} {
		if closed != nil {
			t.Error(closed)
		}
	}
}
