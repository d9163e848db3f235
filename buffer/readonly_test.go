// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestReadOnly refuses whatever would write wrapped memory that is read-only, and changes nothing.
func TestReadOnly(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		host := []byte("abcdefgh")
		mem := gpu.HostBytes(host)
		mem.ReadOnly = true
		b, err := buffer.Wrap(dev, mem, nil)
		check(t, err)
		other, err := buffer.FromHost(dev, mem)
		check(t, err)
		if !b.ReadOnly() || other.ReadOnly() {
			t.Errorf("read-only: %v and %v", b.ReadOnly(), other.ReadOnly())
		}
		whole := buffer.Range(0, 8)
		for range 2 {
			for name, err := range map[string]error{
				"Writable":            second(b.Memory(buffer.Writes)),
				"Writable whole":      second(b.Memory(buffer.Replaces)),
				"Write":               b.Write(0, gpu.HostBytes([]byte("ABCD"))),
				"Access":              b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Writes, func([]byte) error { t.Error("called"); return nil }),
				"Read from the host":  b.Read(t.Context(), whole, mem, 0),
				"Read from elsewhere": other.Read(t.Context(), whole, mem, 0),
			} {
				if !errors.Is(err, gpu.ErrReadOnly) {
					t.Errorf("%s: %v, want %v", name, err, gpu.ErrReadOnly)
				}
			}
			check(t, errors.Join(b.Sync(t.Context()), b.Touch()))
			if got := read(t, b); string(got) != "abcdefgh" || string(host) != "abcdefgh" {
				t.Errorf("the memory holds %q, the buffer %q", host, got)
			}
			check(t, second(b.Memory(buffer.Reads))) // on both sides from now on
		}
		// A kernel that writes what was asked for to read.
		replica := devtest.Must[*gpu.Buffer](t)(b.Memory(buffer.Reads))
		check(t, replica.Clear(0, 8))
		b.Wrote(dev, whole)
		check(t, b.Sync(t.Context()))
		if string(host) != "abcdefgh" {
			t.Errorf("a kernel's bytes are in memory that is read-only: %q", host)
		}
		check(t, other.Write(0, gpu.HostBytes([]byte("ABCD"))))
		check(t, errors.Join(b.Close(), other.Close()))
		if err := second(b.Memory(buffer.Replaces)); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func second[V any](_ V, err error) error { return err }
