// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"errors"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestAliasesOfPages writes through one of two typed arrays of one ArrayBuffer, and reads through the other. The oracle writes from
// Go memory only.
func TestAliasesOfPages(t *testing.T) {
	devtest.EachGPU(t, func(t *testing.T, dev *gpu.Device) {
		all := js.Global().Get("Uint8Array").New(64)
		wrap := func(lo, hi int) *buffer.Buffer {
			b, err := buffer.Wrap(dev, gpu.Host{Foreign: all.Call("subarray", lo, hi), Size: hi - lo}, nil)
			check(t, err)
			return b
		}
		a, b := wrap(0, 40), wrap(16, 64)
		kernelWrites(t, a, dev, one(20, 4), []byte{1, 2, 3, 4})
		if got := kernelReads(t, b, dev, one(0, 12)); got[4] != 1 || got[7] != 4 || got[8] != 0 {
			t.Errorf("a kernel sees %v", got)
		}
		check(t, b.Write(0, gpu.HostBytes([]byte{9, 8, 7, 6})))
		if got := read(t, a); got[16] != 9 || got[20] != 1 {
			t.Errorf("read %v", got)
		}
		check(t, b.Sync(t.Context()))
		if v := all.Index(16).Int(); v != 9 {
			t.Errorf("byte 16 is %d", v)
		}
		if v := all.Index(23).Int(); v != 4 {
			t.Errorf("byte 23 is %d", v)
		}
		check(t, errors.Join(a.Close(), b.Close()))
	})
}
