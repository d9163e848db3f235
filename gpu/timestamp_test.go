// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// TestTimestamp reads the device's clock before and after work, in the order in which it was queued.
func TestTimestamp(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := devtest.Must[*gpu.Buffer](t)
		clock, work := must(dev.NewBuffer(32)), must(dev.NewBuffer(400))
		check(t, clock.Clear(0, 32))
		if !dev.Info().Features.Has(driver.FeatureTimestamps) {
			if err := clock.Timestamp(0); !errors.Is(err, gpu.ErrUnsupported) {
				t.Errorf("without the feature: %v", err)
			}
			check(t, errors.Join(clock.Close(), work.Close()))
			return
		}
		check(t, clock.Timestamp(0))
		check(t, work.Clear(0, 400))
		check(t, clock.Timestamp(8))
		got := make([]byte, 32)
		check(t, clock.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(got), Width: 32, Count: 1}))
		begin, end := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:])
		if begin == 0 || end < begin || binary.LittleEndian.Uint64(got[16:]) != 0 || dev.Info().Limits.TimestampPeriod <= 0 {
			t.Errorf("from %d to %d, of %g ns", begin, end, dev.Info().Limits.TimestampPeriod)
		}
		for _, offset := range []uint64{4, 28, 32, 1 << 60} {
			if err := clock.Timestamp(offset); !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("at %d: %v", offset, err)
			}
		}
		check(t, errors.Join(clock.Close(), work.Close()))
		if err := clock.Timestamp(0); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
