// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var (
	onDevices = devtest.Each
	check     = devtest.Check
)

func read(t testing.TB, b *buffer.Buffer) []byte {
	t.Helper()
	out := make([]byte, b.Size())
	check(t, b.Read(t.Context(), buffer.Range(0, len(out)), gpu.HostBytes(out), 0))
	return out
}

func at(t testing.TB, b *buffer.Buffer, want buffer.Location) {
	t.Helper()
	if l := b.Location(); l != want {
		t.Errorf("bits are on %v, want %v", l, want)
	}
}

// TestStates follows the bits of wrapped memory from side to side.
func TestStates(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		host := []byte("abcdefghijklmnop")
		b, err := buffer.Wrap(dev, gpu.HostBytes(host), nil)
		check(t, err)
		at(t, b, buffer.Host)
		mem, err := b.Memory(buffer.Reads)
		check(t, err)
		at(t, b, buffer.Both)
		_, err = b.Memory(buffer.Reads)
		check(t, err)
		if n := dev.Stats().BytesUp; n != 16 {
			t.Errorf("%d bytes up, want 16", n)
		}
		_, err = b.Memory(buffer.Writes)
		check(t, err)
		check(t, mem.Clear(4, 4))
		b.Wrote(b.Device(), buffer.Range(4, 4))
		at(t, b, buffer.Device)
		if string(host) != "abcdefghijklmnop" {
			t.Error("the caller's memory changed before Sync")
		}
		check(t, b.Sync(t.Context()))
		at(t, b, buffer.Both)
		if string(host) != "abcd\x00\x00\x00\x00ijklmnop" {
			t.Errorf("after Sync: %q", host)
		}
		if n := dev.Stats().BytesDown; n != 4 {
			t.Errorf("%d bytes down, want 4", n)
		}
		copy(host, "ABCD")
		check(t, b.Touch())
		at(t, b, buffer.Host)
		if got := read(t, b); string(got[:4]) != "ABCD" {
			t.Errorf("after Touch: %q", got)
		}
		check(t, b.Close())
	})
}

func TestOwned(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		z, err := buffer.New(dev, 10)
		check(t, err)
		at(t, z, buffer.None)
		if got := read(t, z); !bytes.Equal(got, make([]byte, 10)) {
			t.Errorf("new memory holds %v", got)
		}
		src := []byte{1, 2, 3, 4, 5, 6, 7}
		b, err := buffer.FromHost(dev, gpu.HostBytes(src))
		check(t, err)
		src[0] = 99
		if got := read(t, b); !bytes.Equal(got, []byte{1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("a copy holds %v", got)
		}
		check(t, b.Write(4, gpu.HostBytes([]byte{50, 60, 70})))
		if got := read(t, b); !bytes.Equal(got, []byte{1, 2, 3, 4, 50, 60, 70}) {
			t.Errorf("after Write: %v", got)
		}
		check(t, b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Writes, func(m []byte) error { m[1] = 20; return nil }))
		stop := errors.New("stop")
		if err := b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Writes, func(m []byte) error { m[2] = 30; return stop }); !errors.Is(err, stop) {
			t.Errorf("Access: %v", err)
		}
		if got := read(t, b); !bytes.Equal(got, []byte{1, 20, 3, 4, 50, 60, 70}) {
			t.Errorf("after Access: %v", got)
		}
		check(t, errors.Join(z.Close(), b.Close()))
		if s := dev.Stats(); s.LiveBytes != 0 {
			t.Errorf("%d bytes live", s.LiveBytes)
		}
	})
}

// TestRelease shares a buffer among goroutines: the release function runs once, when the last of them is done.
func TestRelease(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 100 {
			var released atomic.Int32
			b, err := buffer.Wrap(dev, gpu.HostBytes(make([]byte, 64)), func() { released.Add(1) })
			check(t, err)
			var wg sync.WaitGroup
			for range 8 {
				s := b.Share()
				wg.Go(func() {
					if _, err := s.Memory(buffer.Reads); err != nil {
						t.Error(err)
					}
					_ = s.Close()
				})
			}
			wg.Wait()
			if n := released.Load(); n != 0 {
				t.Fatalf("released %d times while shared", n)
			}
			check(t, b.Close())
			check(t, b.Close())
			if n := released.Load(); n != 1 {
				t.Fatalf("released %d times", n)
			}
		}
	})
}

func TestMap(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		b, err := buffer.Map(dev, 100)
		check(t, err)
		if b.InPlace() != dev.Info().Features.Has(driver.FeatureMappable) {
			t.Errorf("in place: %v", b.InPlace())
		}
		check(t, b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Writes, func(m []byte) error {
			if len(m) != 100 {
				t.Errorf("%d bytes", len(m))
			}
			copy(m, "hello")
			return nil
		}))
		mem, err := b.Memory(buffer.Writes)
		check(t, err)
		check(t, mem.Clear(0, 4))
		b.Wrote(b.Device(), buffer.Range(0, 4))
		check(t, b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Reads, func(m []byte) error {
			if string(m[:5]) != "\x00\x00\x00\x00o" {
				t.Errorf("mapped memory holds %q", m[:5])
			}
			return nil
		}))
		check(t, b.Close())
	})
}

// TestCloseDeviceAccessed closes a device while a function has memory of it.
func TestCloseDeviceAccessed(t *testing.T) {
	for _, in := range []buffer.Intent{buffer.Reads, buffer.Writes, buffer.Replaces} {
		onDevices(t, func(t *testing.T, dev *gpu.Device) {
			const size = 1 << 20 // memory which the system takes back when it is freed
			b, err := buffer.Map(dev, size)
			check(t, err)
			err = b.Access(t.Context(), buffer.Range(0, size), in, func(m []byte) error {
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
				if in == buffer.Reads {
					_ = bytes.Clone(m)
				} else {
					clear(m)
				}
				return nil
			})
			if err != nil && !errors.Is(err, gpu.ErrClosed) || err == nil && in != buffer.Reads && dev.Info().Features.Has(driver.FeatureMappable) { // else a copy is written back by then
				t.Errorf("Access with %v: %v, want %v", in, err, gpu.ErrClosed)
			}
			check(t, b.Close())
		})
	}
}

func TestMistakes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		second := func(_ any, err error) error { return err }
		b, err := buffer.New(dev, 16)
		check(t, err)
		closed, err := buffer.New(dev, 16)
		check(t, err)
		check(t, closed.Close())
		for _, c := range []struct {
			name string
			err  error
			want error
		}{
			{"nil device", second(buffer.New(nil, 4)), gpu.ErrInvalid},
			{"negative size", second(buffer.New(dev, -1)), buffer.ErrSize},
			{"huge size", second(buffer.New(dev, 1<<62)), gpu.ErrLimit},
			{"lying host", second(buffer.Wrap(dev, gpu.Host{Size: 8}, nil)), buffer.ErrShort},
			{"nil handle", second(buffer.WrapDevice(dev, nil, nil)), buffer.ErrNil},
			{"nil device to wrap on", second(buffer.WrapDevice(nil, 1, nil)), gpu.ErrInvalid},
			{"write beyond", b.Write(8, gpu.HostBytes(make([]byte, 9))), gpu.ErrInvalid},
			{"negative write", b.Write(-4, gpu.HostBytes(make([]byte, 4))), gpu.ErrInvalid},
			{"read beyond", b.Read(t.Context(), buffer.Range(8, 9), gpu.HostBytes(make([]byte, 16)), 0), gpu.ErrInvalid},
			{"read into too little", b.Read(t.Context(), buffer.Range(0, 16), gpu.HostBytes(make([]byte, 8)), 0), buffer.ErrShort},
			{"nil function", b.Access(t.Context(), buffer.Range(0, b.Size()), buffer.Reads, nil), gpu.ErrInvalid},
			{"closed read", second(closed.Memory(buffer.Reads)), gpu.ErrClosed},
			{"closed write", closed.Write(0, gpu.HostBytes(make([]byte, 4))), gpu.ErrClosed},
			{"closed sync", closed.Sync(t.Context()), gpu.ErrClosed},
			{"closed touch", closed.Touch(), gpu.ErrClosed},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
		check(t, b.Close())
	})
}

// TestHostOffset wraps memory that begins within what holds it.
func TestHostOffset(t *testing.T) { onDevices(t, hostOffset) }

func hostOffset(t *testing.T, dev *gpu.Device) {
	t.Helper()
	mem := make([]byte, 32)
	for i := range mem {
		mem[i] = byte(i)
	}
	b, err := buffer.Wrap(dev, gpu.Host{Bytes: mem, Offset: 5, Size: 16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := make([]byte, 20)
	if err := b.Read(t.Context(), buffer.Range(1, 4), gpu.Host{Bytes: got, Offset: 3, Size: 8}, 2); err != nil {
		t.Fatal(err)
	}
	if want := []byte{0, 0, 0, 0, 0, 6, 7, 8, 9, 0}; !bytes.Equal(got[:10], want) {
		t.Errorf("read %v, want %v", got[:10], want)
	}
	if err := b.Write(0, gpu.Host{Bytes: mem, Offset: 1, Size: 16}); err != nil {
		t.Fatal(err)
	}
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mem[4] != 4 || mem[5] != 1 || mem[20] != 16 || mem[21] != 21 {
		t.Errorf("wrote %v", mem)
	}
	for _, h := range []gpu.Host{{Bytes: mem, Offset: 20, Size: 16}, {Bytes: mem, Offset: -1, Size: 4}} {
		if _, err := buffer.Wrap(dev, h, nil); !errors.Is(err, buffer.ErrShort) {
			t.Errorf("wrapped %d bytes from %d: %v", h.Size, h.Offset, err)
		}
	}
}

// TestNoFiller fills with nothing, and without anything, and makes a buffer of one that is in use.
func TestNoFiller(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	read := func([]byte) error { return nil }
	_, noFiller := (*buffer.Filler)(nil).New(t.Context(), dev, 4, read)
	_, noContext := new(buffer.Filler).New(context.Context(nil), dev, 4, read)
	_, noFunction := new(buffer.Filler).New(t.Context(), dev, 4, nil)
	used := devtest.Must[*buffer.Buffer](t)(buffer.New(dev, 4))
	mem := gpu.HostBytes(make([]byte, 8))
	for i, err := range []error{noFiller, noContext, noFunction, (*buffer.Buffer)(nil).InitWrap(dev, mem, nil), used.InitWrap(dev, mem, nil)} {
		if !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%d: %v, want %v", i, err, gpu.ErrInvalid)
		}
	}
	if used.Size() != 4 || used.Mode() != buffer.Owned {
		t.Errorf("%d bytes, %v", used.Size(), used.Mode())
	}
	devtest.Check(t, used.Close())
	if n := dev.Stats().LiveBytes; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
