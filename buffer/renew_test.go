// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestFailedReplacement replaces bits that were lost with a device, which fails. They are still lost, and no zeros.
func TestFailedReplacement(t *testing.T) {
	data := gpu.HostBytes([]byte{1, 2, 3, 4})
	for _, fault := range []devtest.Fault{devtest.Lose, devtest.LoseAfter, devtest.NoMemory, devtest.Refuse} {
		for n := range 4 {
			dev, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
			b := devtest.Must[*buffer.Buffer](t)(buffer.FromHost(dev, data))
			reopen := func() {
				f = devtest.NewFaulty(devtest.Oracle(t), nil)
				devtest.Check(t, dev.Reopen(t.Context(), gpu.WithDevice(f)))
			}
			devtest.Check(t, dev.Sync(t.Context()))
			f.Lose()
			reopen()
			f.Arm(devtest.At(n, fault))
			err := b.Write(0, data)
			f.Arm(nil)
			if dev.Usable() != nil {
				reopen()
			}
			got := gpu.HostBytes(make([]byte, 4))
			if rerr := b.Read(t.Context(), buffer.Range(0, 4), got, 0); err != nil && !errors.Is(rerr, gpu.ErrDeviceLost) {
				t.Errorf("fault %d at call %d: got %v, error %v after %v", fault, n, got.Bytes, rerr, err)
			}
			devtest.Check(t, b.Write(0, data))
			if err := b.Read(t.Context(), buffer.Range(0, 4), got, 0); err != nil || got.Bytes[3] != 4 {
				t.Errorf("got %v, error %v", got.Bytes, err)
			}
			devtest.Check(t, b.Close())
		}
	}
}
