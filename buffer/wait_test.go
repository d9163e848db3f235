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

// held waits until another call has a buffer.
func held(t *testing.T, b *buffer.Buffer) {
	t.Helper()
	devtest.Busy(t, func(ctx context.Context) error {
		_, _, err := b.Use(ctx, b.Device(), buffer.Range(0, b.Size()), buffer.Reads)
		return err
	})
}

// TestCallsBehindCalls makes calls while others, whose contexts do not end, have the buffers: those with a context are called off, and
// notes of what was written, as well as Close, take effect when the others end.
func TestCallsBehindCalls(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiters(t, dev)
		released := make(chan struct{})
		w.wrap.SetRelease(func() { close(released) })
		mem := devtest.Must[*gpu.Buffer](t)(w.own.Memory(buffer.Writes))
		g.Shut(t, dev)
		syncs := make(chan error, 2)
		go func() { syncs <- w.own.Sync(context.Background()) }()
		go func() { syncs <- w.wrap.Sync(context.Background()) }()
		held(t, w.own)
		held(t, w.wrap)
		for name, call := range map[string]func(context.Context) error{
			"Use": func(ctx context.Context) error {
				_, _, err := w.own.Use(ctx, dev, buffer.Range(0, 16), buffer.Writes)
				return err
			},
			"Copy":                func(ctx context.Context) error { _, err := w.own.Copy(ctx); return err },
			"Patch":               func(ctx context.Context) error { return w.own.Patch(ctx, 4, make([]byte, 4)) },
			"an overlapping wrap": func(ctx context.Context) error { return w.overlapping.Patch(ctx, 12, make([]byte, 4)) },
		} {
			devtest.CalledOff(t, name, call)
		}
		devtest.Soon(t, "Wrote", func() {
			devtest.Check(t, mem.Write(0, gpu.HostBytes([]byte{8, 8, 8, 8})))
			w.own.Wrote(dev, buffer.Range(0, 4))
		})
		devtest.Soon(t, "Close", func() { devtest.Check(t, w.wrap.Close()) })
		select {
		case <-released:
			t.Error("memory was given back that a call uses")
		default:
		}
		g.Open()
		devtest.Check(t, errors.Join(<-syncs, <-syncs))
		devtest.Soon(t, "the release function", func() { <-released })
		if want := bytes.Repeat([]byte{7}, 16); !bytes.Equal(w.mem[:16], want) {
			t.Errorf("the wrapped memory is % x", w.mem)
		}
		into := make([]byte, 16)
		devtest.Check(t, w.own.Read(t.Context(), buffer.Range(0, 16), gpu.HostBytes(into), 0))
		if want := append(bytes.Repeat([]byte{8}, 4), bytes.Repeat([]byte{7}, 12)...); !bytes.Equal(into, want) {
			t.Errorf("got % x", into)
		}
	})
}

// TestWroteBehindCall notes a write of wrapped memory while a Sync of an earlier one waits. The next Sync brings it.
func TestWroteBehindCall(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiters(t, dev)
		mem := devtest.Must[*gpu.Buffer](t)(w.wrap.Memory(buffer.Writes))
		g.Shut(t, dev)
		syncs := make(chan error, 1)
		go func() { syncs <- w.wrap.Sync(context.Background()) }()
		held(t, w.wrap)
		devtest.Soon(t, "Wrote", func() {
			devtest.Check(t, mem.Write(4, gpu.HostBytes([]byte{8, 8, 8, 8})))
			w.wrap.Wrote(dev, buffer.Range(4, 4))
			if got := w.wrap.Location(); got != buffer.Device {
				t.Errorf("the location is %v", got)
			}
		})
		g.Open()
		devtest.Check(t, errors.Join(<-syncs, w.wrap.Sync(t.Context())))
		if want := []byte{7, 7, 7, 7, 8, 8, 8, 8, 7, 7, 7, 7}; !bytes.Equal(w.mem[:12], want) {
			t.Errorf("the wrapped memory is % x", w.mem)
		}
	})
}

// TestAccessBehindCalls has a function of Access begin a call with an overlapping wrap that does not end. What the function wrote into
// the host's memory counts; what has yet to get to the device is called off, and the memory stays as it was.
func TestAccessBehindCalls(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiters(t, dev)
		syncs := make(chan error, 1)
		block := func() {
			go func() { syncs <- w.wrap.Sync(context.Background()) }()
			held(t, w.wrap)
		}
		_ = devtest.Must[*gpu.Buffer](t)(w.overlapping.Memory(buffer.Reads))
		g.Shut(t, dev)
		devtest.Soon(t, "Access on the host", func() {
			devtest.Check(t, w.overlapping.Access(context.Background(), buffer.Range(8, 8), buffer.Writes, func(mem []byte) error {
				copy(mem, "hostside")
				block()
				return nil
			}))
		})
		g.Open()
		devtest.Check(t, <-syncs)
		into := make([]byte, 8)
		mem := devtest.Must[*gpu.Buffer](t)(w.overlapping.Memory(buffer.Writes))
		devtest.Check(t, mem.Read(t.Context(), gpu.Transfer{Offset: 8, Host: gpu.HostBytes(into), Width: 8, Pitch: 8, Count: 1}))
		if string(into) != "hostside" {
			t.Errorf("the device has %q", into)
		}

		devtest.Check(t, mem.Write(0, gpu.HostBytes([]byte("devicesides."))))
		w.overlapping.Wrote(dev, buffer.Range(0, 12))
		g.Shut(t, dev)
		devtest.CalledOff(t, "Access on the device", func(ctx context.Context) error {
			return w.overlapping.Access(ctx, buffer.Range(0, 8), buffer.Replaces, func(mem []byte) error {
				copy(mem, "whatever")
				block()
				<-ctx.Done()
				return nil
			})
		})
		g.Open()
		devtest.Check(t, errors.Join(<-syncs, w.overlapping.Sync(t.Context())))
		if string(w.mem[8:24]) != "devicesides.side" {
			t.Errorf("the memory is %q", w.mem)
		}
	})
}
