// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// FuzzNewKernel compiles sources: whatever they are, each compiles or does not, and the process lives.
func FuzzNewKernel(f *testing.F, bench Bench) {
	f.Add(axpy.Source)
	f.Add(bump.Source)
	f.Add(spinKernel.Source)
	d := bench.open(f)
	f.Fuzz(func(t *testing.T, source string) {
		if bench.fatal(source) {
			return
		}
		k := axpy
		k.Source = source
		if err := d.NewKernel(t.Context(), 1, &k); err == nil {
			d.FreeKernel(1)
		} else if source != "" && !errors.Is(err, fault.ErrCompile) {
			t.Error(err)
		}
	})
}
