// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// waiters are what the tests have: buffers of each kind with results on the device.
type waiters struct {
	mem                 []byte
	own, wrap, mapped   *buffer.Buffer
	overlapping, unused *buffer.Buffer
}

func newWaiters(t *testing.T, dev *gpu.Device) *waiters {
	w := &waiters{mem: make([]byte, 32)}
	new := func(b *buffer.Buffer, err error) *buffer.Buffer { return devtest.Must[*buffer.Buffer](t)(b, err) }
	w.own, w.mapped = new(buffer.New(dev, 16)), new(buffer.Map(dev, 16))
	w.wrap = new(buffer.Wrap(dev, gpu.HostBytes(w.mem[:16]), nil))
	w.overlapping = new(buffer.Wrap(dev, gpu.HostBytes(w.mem[8:24]), nil))
	w.unused = new(buffer.Wrap(dev, gpu.HostBytes(w.mem[4:8]), nil))
	for _, b := range []*buffer.Buffer{w.own, w.wrap} {
		mem := devtest.Must[*gpu.Buffer](t)(b.Memory(buffer.Replaces))
		devtest.Check(t, mem.Write(0, gpu.HostBytes(bytes.Repeat([]byte{7}, 16))))
		b.Wrote(dev, buffer.Range(0, 16))
	}
	return w
}

// TestContextsBehindWork cancels every call that takes a context behind work that does not end, also while another call, whose context
// does not end, has the buffer. Results are there afterwards.
func TestContextsBehindWork(t *testing.T) {
	into := make([]byte, 16)
	nothing := func([]byte) error { return nil }
	calls := map[string]func(w *waiters, ctx context.Context) error{
		"Sync":         func(w *waiters, ctx context.Context) error { return w.own.Sync(ctx) },
		"Sync of wrap": func(w *waiters, ctx context.Context) error { return w.wrap.Sync(ctx) },
		"SyncHost":     func(w *waiters, ctx context.Context) error { _, err := w.wrap.SyncHost(ctx); return err },
		"Read": func(w *waiters, ctx context.Context) error {
			return w.own.Read(ctx, buffer.Range(0, 16), gpu.HostBytes(into), 0)
		},
		"Access": func(w *waiters, ctx context.Context) error {
			return w.own.Access(ctx, buffer.Range(0, 8), buffer.Reads, nothing)
		},
		"Access to write": func(w *waiters, ctx context.Context) error {
			return w.own.Access(ctx, buffer.Range(0, 8), buffer.Writes, nothing)
		},
		"Access of wrap": func(w *waiters, ctx context.Context) error {
			return w.wrap.Access(ctx, buffer.Range(0, 8), buffer.Reads, nothing)
		},
		"Access in place": func(w *waiters, ctx context.Context) error {
			return w.mapped.Access(ctx, buffer.Range(0, 8), buffer.Reads, nothing)
		},
		"Patch": func(w *waiters, ctx context.Context) error { return w.own.Patch(ctx, 1, []byte{7}) },
		"Sync of an overlapping wrap": func(w *waiters, ctx context.Context) error {
			return errors.Join(w.overlapping.Sync(ctx), w.unused.Sync(ctx))
		},
	}
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiters(t, dev)
		g.Shut(t, dev)
		syncs := make(chan error, 2)
		for round := range 2 {
			for name, call := range calls {
				devtest.CalledOff(t, name, func(ctx context.Context) error { return call(w, ctx) })
			}
			if round == 0 {
				go func() { syncs <- w.own.Sync(context.Background()) }()
				go func() { syncs <- w.wrap.Sync(context.Background()) }()
			}
		}
		devtest.Soon(t, "another wrap's first use", func() {
			b := devtest.Must[*buffer.Buffer](t)(buffer.Wrap(dev, gpu.HostBytes(make([]byte, 16)), nil))
			_, err := b.Memory(buffer.Reads)
			devtest.Check(t, errors.Join(err, b.Close()))
		})
		g.Open()
		devtest.Check(t, errors.Join(<-syncs, <-syncs, w.own.Read(t.Context(), buffer.Range(0, 16), gpu.HostBytes(into), 0)))
		if want := bytes.Repeat([]byte{7}, 16); !bytes.Equal(into, want) || !bytes.Equal(w.mem[:16], want) {
			t.Errorf("got % x, wrapped memory % x", into, w.mem)
		}
	})
}

// TestGettersBehindWork asks buffers that others wait for.
func TestGettersBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiters(t, dev)
		g.Shut(t, dev)
		syncs := make(chan error, 2)
		go func() { syncs <- w.own.Sync(context.Background()) }()
		go func() { syncs <- w.wrap.Sync(context.Background()) }()
		devtest.Soon(t, "a getter", func() {
			for range 100 { // some while the calls wait
				for b, want := range map[*buffer.Buffer]buffer.Location{
					w.own: buffer.Device, w.wrap: buffer.Device, w.overlapping: buffer.Device, w.unused: buffer.Device,
				} {
					if got := b.Location(); got != want {
						t.Errorf("the location is %v, not %v", got, want)
					}
					_, _, _, _ = b.Mode(), b.Size(), b.Device(), b.Shares()
					_, _, _, _ = b.HasHost(), b.ReadOnly(), b.InPlace(), b.Accessed()
					_, _, _ = b.Windowed(), b.Overlaps(w.wrap), b.Same(w.own)
					devtest.Check(t, b.Share().Close())
				}
			}
		})
		g.Open()
		devtest.Check(t, errors.Join(<-syncs, <-syncs))
		if got := w.wrap.Location(); got != buffer.Both {
			t.Errorf("the location after Sync is %v", got)
		}
	})
}
