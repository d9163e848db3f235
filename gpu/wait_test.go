// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package gpu_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// increment adds 1 to the first byte of its buffer.
var increment = gpu.KernelDesc{
	Source: "increment", Bindings: []driver.Access{driver.AccessReadWrite},
	Reference: func(_ [3]uint32, _ []byte, s [][]byte) { s[0][0]++ },
}

// stuck is what the tests have of a device, made before the gate shuts.
type stuck struct {
	dev            *gpu.Device
	a, b, mappable *gpu.Buffer
	k              *gpu.Kernel
	host           []byte
	dispatched     int
}

func newStuck(t *testing.T, dev *gpu.Device) *stuck {
	s := &stuck{dev: dev, host: make([]byte, 16)}
	s.a = devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(16))
	s.b = devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(16))
	s.mappable = devtest.Must[*gpu.Buffer](t)(dev.NewMappable(16))
	s.k = devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), increment))
	devtest.Check(t, errors.Join(s.a.Clear(0, 16), s.b.Clear(0, 16)))
	s.dispatch(t)
	return s
}

func (s *stuck) dispatch(t *testing.T) {
	t.Helper()
	devtest.Check(t, s.k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: s.a}))
	s.dispatched++
}

// want checks that everything queued was done, once.
func (s *stuck) want(t *testing.T) {
	t.Helper()
	devtest.Check(t, s.a.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(s.host), Width: 4, Pitch: 4, Count: 1}))
	if int(s.host[0]) != s.dispatched%256 {
		t.Errorf("%d of %d launches ran", s.host[0], s.dispatched)
	}
}

// TestContextsBehindWork cancels every call that takes a context behind work that does not end. Nothing that was queued gets lost.
func TestContextsBehindWork(t *testing.T) {
	calls := map[string]func(s *stuck, ctx context.Context) error{
		"Device.Sync": func(s *stuck, ctx context.Context) error { return s.dev.Sync(ctx) },
		"Buffer.Sync": func(s *stuck, ctx context.Context) error { return s.b.Sync(ctx) },
		"Buffer.Read": func(s *stuck, ctx context.Context) error {
			return s.b.Read(ctx, gpu.Transfer{Host: gpu.HostBytes(make([]byte, 16)), Width: 16, Pitch: 16, Count: 1})
		},
		"Buffer.Map": func(s *stuck, ctx context.Context) error {
			return s.mappable.Map(ctx, 0, 16, func([]byte) error { return nil })
		},
	}
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		g.Shut(t, dev)
		for name, call := range calls {
			s.dispatch(t)
			devtest.CalledOff(t, name, func(ctx context.Context) error { return call(s, ctx) })
		}
		g.Open()
		s.want(t)
	})
}

// TestGettersBehindWork calls what takes no context and need not wait.
func TestGettersBehindWork(t *testing.T) {
	calls := map[string]func(s *stuck) error{
		"Device": func(s *stuck) error {
			s.dev.Info()
			s.dev.Handle()
			s.dev.Lost()
			s.dev.Reopened()
			s.dev.Generation()
			s.dev.Attach("key", nil)
			return s.dev.Usable()
		},
		"Stats": func(s *stuck) error { s.dev.Stats(); return nil },
		"Buffer": func(s *stuck) error {
			s.a.Size()
			s.a.Device()
			s.a.Identity()
			s.a.Handle()
			s.a.Lost()
			return s.a.Renew()
		},
		"Kernel": func(s *stuck) error {
			k, err := s.dev.Kernel(context.Background(), increment)
			return errors.Join(err, k.Close())
		},
		"another Kernel": func(s *stuck) error {
			other := increment
			other.Source = "other"
			k, err := s.dev.Kernel(context.Background(), other)
			return errors.Join(err, k.Close())
		},
		"NewBuffer": func(s *stuck) error {
			b, err := s.dev.NewBuffer(32)
			return errors.Join(err, b.Close())
		},
		"Write":    func(s *stuck) error { return s.b.Write(0, gpu.HostBytes([]byte{1, 2, 3, 4})) },
		"CopyFrom": func(s *stuck) error { return s.b.CopyFrom(4, s.a, 8, 4) },
		"many launches": func(s *stuck) error {
			for range 1000 {
				if err := s.k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: s.a}); err != nil {
					return err
				}
				s.dispatched++
			}
			return nil
		},
	}
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		g.Shut(t, dev)
		for name, call := range calls {
			devtest.Soon(t, name, func() {
				if err := call(s); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		g.Open()
		s.want(t)
		devtest.Check(t, s.b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(s.host), Width: 8, Pitch: 8, Count: 1}))
		if string(s.host[:8]) != "\x01\x02\x03\x04\x00\x00\x00\x00" {
			t.Errorf("got % x", s.host[:8])
		}
	})
}

// TestWriteBehindWork writes from memory that is changed at once, before and after launches that are queued.
func TestWriteBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		g.Shut(t, dev)
		devtest.Soon(t, "Write", func() {
			mem := []byte{40, 0, 0, 0}
			devtest.Check(t, s.a.Write(0, gpu.HostBytes(mem)))
			mem[0] = 99
			s.dispatched = 40
			s.dispatch(t)
		})
		g.Open()
		s.want(t)
	})
}

// TestCompilerThatHangs has a caller give a compilation up. The next one need not wait for it, and the kernel is there when it is compiled.
func TestCompilerThatHangs(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		came := g.ShutCompiler()
		slow := increment
		slow.Source = "slow"
		compile := func(ctx context.Context) error {
			k, err := dev.Kernel(ctx, slow)
			return errors.Join(err, k.Close())
		}
		devtest.CalledOff(t, "Kernel", compile)
		devtest.Soon(t, "the compiler", func() { <-came })
		devtest.CalledOff(t, "Kernel again", compile)
		devtest.Soon(t, "other calls", func() {
			s.dispatch(t)
			devtest.Check(t, errors.Join(dev.Sync(t.Context()), compile2(t, dev)))
		})
		g.Open()
		devtest.Check(t, compile(t.Context()))
		s.want(t)
	})
}

// compile2 finds a kernel that was compiled before.
func compile2(t *testing.T, dev *gpu.Device) error {
	k, err := dev.Kernel(t.Context(), increment)
	return errors.Join(err, k.Close())
}

// TestCloseBehindWork closes a device whose work does not end.
func TestCloseBehindWork(t *testing.T) {
	defer gpu.SetGrace(10 * time.Millisecond)()
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		g.Shut(t, dev)
		s.dispatch(t)
		devtest.Soon(t, "Close", func() {
			if err := dev.Close(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: got error %v", err)
			}
		})
		devtest.Soon(t, "a call after Close", func() {
			for _, err := range []error{dev.Usable(), dev.Sync(t.Context()), dev.Flush(), s.a.Clear(0, 16), s.a.Sync(t.Context())} {
				if !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("after Close: got error %v", err)
				}
			}
			devtest.Check(t, errors.Join(s.a.Close(), s.k.Close(), dev.Close()))
		})
	})
}

// TestCloseEndsBehindWork opens the gate while Close waits: then it has done everything.
func TestCloseEndsBehindWork(t *testing.T) {
	defer gpu.SetGrace(time.Minute)()
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		s := newStuck(t, dev)
		g.Shut(t, dev)
		s.dispatch(t)
		time.AfterFunc(10*time.Millisecond, g.Open)
		devtest.Check(t, dev.Close())
	})
}

// TestFreeBehindWork closes buffers while work that used them has not left. They are given back when it has, and not before.
func TestFreeBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		gpu.LimitPool(dev, 0)
		s := newStuck(t, dev)
		g.Shut(t, dev)
		s.dispatch(t)
		devtest.Soon(t, "Close", func() { devtest.Check(t, errors.Join(s.b.Close(), s.mappable.Close(), s.k.Close())) })
		g.Open()
		s.want(t)
		if n := dev.Stats(); n.Buffers != 1 || n.Kernels != 0 || n.LiveBytes != 16 {
			t.Errorf("still there: %+v", n)
		}
	})
}

// TestWaitBesideFullBatch calls off calls that wait while another one has filled the batch.
func TestWaitBesideFullBatch(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		const half = 32 << 20
		a := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(16))
		b := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(half))
		devtest.Check(t, errors.Join(a.Clear(0, 16), b.Clear(0, half), dev.Sync(t.Context())))
		g.Shut(t, dev)
		wrote := make(chan error)
		go func() {
			mem := gpu.HostBytes(make([]byte, half))
			wrote <- errors.Join(b.Write(0, mem), b.Write(0, mem))
		}()
		for dev.Stats().BytesUp < 2*half {
			time.Sleep(time.Millisecond)
		}
		devtest.CalledOff(t, "Sync", func(ctx context.Context) error { return a.Sync(ctx) })
		devtest.CalledOff(t, "Read", func(ctx context.Context) error {
			return a.Read(ctx, gpu.Transfer{Width: 16, Count: 1, Host: gpu.HostBytes(make([]byte, 16))})
		})
		devtest.CalledOff(t, "Ready", dev.Ready)
		devtest.Soon(t, "Close", func() { devtest.Check(t, a.Close()) })
		g.Open()
		devtest.Check(t, errors.Join(<-wrote, dev.Ready(t.Context()), b.Close()))
	})
}
