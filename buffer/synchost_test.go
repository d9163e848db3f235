// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestSyncHost gives out the very memory that was wrapped, with what the device wrote, and moves nothing else.
func TestSyncHost(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		host := []byte("abcdefgh")
		mem := gpu.HostBytes(host)
		b, err := buffer.Wrap(dev, mem, nil)
		check(t, err)
		check(t, b.Write(4, gpu.HostBytes([]byte("EFGH"))))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.SyncHost(canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		before := dev.Stats().BytesDown
		lent, err := b.SyncHost(t.Context())
		check(t, err)
		if &lent.Bytes[0] != &host[0] || lent.Size != 8 || lent.ReadOnly || string(host) != "abcdEFGH" {
			t.Errorf("%+v with %q", lent, host)
		}
		at(t, b, buffer.Both)
		lent.Bytes[0] = 'A'
		check(t, b.Touch())
		if got := read(t, b); string(got) != "AbcdEFGH" {
			t.Errorf("the buffer holds %q", got)
		}
		if n := dev.Stats().BytesDown - before; n != 4 {
			t.Errorf("%d bytes came back, want 4", n)
		}
		check(t, b.Close())
		if err := second(b.SyncHost(t.Context())); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: %v", err)
		}

		mem.ReadOnly = true
		b, err = buffer.Wrap(dev, mem, nil)
		check(t, err)
		if lent, err := b.SyncHost(t.Context()); err != nil || !lent.ReadOnly {
			t.Errorf("%+v, %v", lent, err)
		}
		owned, err := buffer.FromHost(dev, mem)
		check(t, err)
		if err := second(owned.SyncHost(t.Context())); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("owned: %v", err)
		}
		check(t, errors.Join(b.Close(), owned.Close()))
	})
}
