// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestRefusedBatch has a buffer of somebody else's destroyed under work that is queued. Whoever has work in the same batch is told, and
// nobody else; no matrix shows what another left in memory that is used again.
func TestRefusedBatch(t *testing.T) {
	onPlatforms(t, func(t *testing.T, dev *gpu.Device) {
		handle, destroy := foreignBuffer(t, dev, 64)
		before := owned(t, dev, 2, 2, 1, 2, 3, 4)
		gone := must[*dense](t)(matrix.New[float32](dev, 4, 4))
		check(t, gone.Fill(7))
		check(t, dev.Sync(background))
		check(t, gone.Close())

		theirs := must[*dense](t)(matrix.WrapBuffer[float32](dev, 4, 4, handle))
		mine := must[*dense](t)(matrix.New[float32](dev, 4, 4))
		check(t, mine.Fill(1))
		check(t, theirs.Fill(2))
		destroy()
		for range 2 {
			if values, err := mine.Read(background); err == nil {
				t.Errorf("a matrix of the refused batch holds %v", values)
			}
			if values, err := theirs.Read(background); err == nil {
				t.Errorf("a destroyed buffer holds %v", values)
			}
			if err := mine.Sync(background); err == nil {
				t.Error("a matrix of the refused batch is synced")
			}
			values, err := before.Read(background)
			check(t, err)
			same(t, "a bystander", values, []float32{1, 2, 3, 4})
			check(t, before.Sync(background))
		}
		check(t, mine.Fill(3))
		values, err := mine.Read(background)
		check(t, err)
		same(t, "written anew", values[:4], []float32{3, 3, 3, 3})
		check(t, mine.Close())
		_ = theirs.Close()
	})
}
