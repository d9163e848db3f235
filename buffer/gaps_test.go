// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

const gapRows, gapPitch = 100, 12 // more rows than writes are noted one by one

// writeRows has a kernel write each row of a window of wrapped memory by itself, the first 8 bytes of every 12, and returns the window.
func writeRows(t *testing.T, dev *gpu.Device, mem []byte) (*buffer.Buffer, buffer.Region) {
	t.Helper()
	b, err := buffer.Wrap(dev, gpu.HostBytes(mem), nil)
	check(t, err)
	for i := range gapRows {
		r := buffer.Range(gapPitch*i, 8)
		kernelWrites(t, b, dev, r, bytes.Repeat([]byte{byte(i)}, 8))
	}
	return b, buffer.Region{Width: 8, Pitch: gapPitch, Count: gapRows}
}

// TestSyncLeavesGaps has many results come back to a window of memory whose caller changed what is beside the window.
func TestSyncLeavesGaps(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		mem := make([]byte, gapPitch*gapRows)
		b, _ := writeRows(t, dev, mem)
		for i := range gapRows {
			copy(mem[gapPitch*i+8:], "mine")
		}
		check(t, b.Sync(t.Context()))
		for i := range gapRows {
			if row := mem[gapPitch*i:][:gapPitch]; !bytes.Equal(row, append(bytes.Repeat([]byte{byte(i)}, 8), "mine"...)) {
				t.Fatalf("row %d is %q", i, row)
			}
		}
		check(t, b.Close())
	})
}

// TestGapsOutliveDevice loses the device that had many results, all in a window. What is beside the window is the host's still, and so
// is all of it when the window is touched.
func TestGapsOutliveDevice(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	mem := bytes.Repeat([]byte("results mine"), gapRows)
	b, window := writeRows(t, dev, mem)
	k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), gpu.KernelDesc{
		Source: "panic", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
	}))
	check(t, k.Dispatch([3]uint32{1, 1, 1}, nil))
	if err := dev.Sync(t.Context()); !errors.Is(err, gpu.ErrDeviceLost) {
		t.Fatal("the device was not lost: ", err)
	}
	<-dev.Lost()
	check(t, dev.Reopen(t.Context()))
	nothing := func([]byte) error { return nil }
	check(t, b.Access(t.Context(), buffer.Range(gapPitch+8, 4), buffer.Reads, nothing))
	if err := b.Access(t.Context(), buffer.Range(gapPitch, gapPitch), buffer.Reads, nothing); !errors.Is(err, gpu.ErrDeviceLost) {
		t.Errorf("lost results: %v", err)
	}
	check(t, b.Touch(window))
	if got := b.Location(); got != buffer.Host {
		t.Errorf("after Touch the newest is on %v", got)
	}
	check(t, errors.Join(b.Sync(t.Context()), b.Access(t.Context(), buffer.Range(0, len(mem)), buffer.Reads, nothing), b.Close()))
}
