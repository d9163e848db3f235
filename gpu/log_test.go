// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var _ gpu.Logger = (*slog.Logger)(nil)

// records is a slog.Handler that collects what it gets as text.
type records struct {
	mu   sync.Mutex
	list []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *records) WithGroup(string) slog.Handler { return r }

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	r.mu.Lock()
	r.list = append(r.list, line)
	r.mu.Unlock()
	return nil
}

// with counts the records that begin with a text.
func (r *records) with(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.list {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

// noted is a kernel of a name.
func noted(label string) gpu.KernelDesc {
	return gpu.KernelDesc{
		Label: label, Source: "// " + label, Bindings: []driver.Access{driver.AccessReadWrite},
		Reference: func(_ [3]uint32, _ []byte, storage [][]byte) { storage[0][0]++ },
	}
}

// busy does everything that is logged once, and two launches.
func busy(t testing.TB, dev *gpu.Device) {
	t.Helper()
	buf := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(64))
	devtest.Check(t, buf.Write(0, gpu.HostBytes(make([]byte, 64))))
	for range 2 {
		k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), noted("mine")))
		defer func() { devtest.Check(t, k.Close()) }()
		devtest.Check(t, k.Dispatch([3]uint32{1, 2, 3}, nil, gpu.Arg{Buffer: buf}))
	}
	devtest.Check(t, buf.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(make([]byte, 64)), Width: 64, Count: 1}))
	devtest.Check(t, buf.Close())
}

// TestLogger looks at what a Logger gets: no more than it was asked for.
func TestLogger(t *testing.T) {
	calls := []string{
		"DEBUG sublet: device opened adapter=", "DEBUG sublet: buffer made bytes=64 live=64", "DEBUG sublet: write bytes=64 offset=0",
		"DEBUG sublet: batch sent commands=2 kernels=2", "DEBUG sublet: read bytes=64 offset=0", "DEBUG sublet: buffer closed bytes=64 live=0",
		"DEBUG sublet: device closed bytes=0 submissions=",
	}
	kernels := []string{"DEBUG sublet: kernel compiled kernel=mine ms=", "DEBUG sublet: kernel found kernel=mine"}
	wgsl := "DEBUG sublet: wgsl kernel=mine source=// mine"
	for word, rung := range map[string]int{"": 1, "calls": 1, "kernels": 2, "wgsl": 3} {
		t.Run(word, func(t *testing.T) {
			var r records
			dev := devtest.Must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu"), gpu.WithLogger(slog.New(&r)), gpu.WithDebug(word)))
			busy(t, dev)
			devtest.Check(t, dev.Close())
			want := func(text string, n int) {
				t.Helper()
				if got := r.with(text); got != n {
					t.Errorf("%d times %q, want %d, in\n%s", got, text, n, strings.Join(r.list, "\n"))
				}
			}
			for _, text := range calls {
				want(text, 1)
			}
			for _, text := range kernels {
				want(text, min(1, max(0, rung-1)))
			}
			want("DEBUG sublet: dispatch kernel=mine groups=1x2x3", 2*min(1, max(0, rung-1)))
			want(wgsl, max(0, rung-2))
			want("WARN", 0)
		})
	}
}

// TestNoLogger has devices that nobody asked to log.
func TestNoLogger(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	if dev.Logger() != nil || (*gpu.Device)(nil).Logger() != nil {
		t.Error("a device logs that nobody asked to")
	}
	for name, opt := range map[string]gpu.Option{"a word that is none": gpu.WithDebug("all"), "no logger": gpu.WithLogger(nil)} {
		if _, err := gpu.Open(t.Context(), gpu.WithDriver("cpu"), opt); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// refusing is a driver's device that refuses lists when told to.
type refusing struct {
	losable
	refuse *error
}

func (r refusing) Submit(l *driver.CommandList) error {
	if *r.refuse != nil {
		return *r.refuse
	}
	return r.losable.Submit(l)
}

func (r refusing) LostReason() string {
	select {
	case <-r.lost:
		return "unplugged"
	default:
		return ""
	}
}

// TestLastKernels has a batch refused and a device lost: the errors name the last kernels, in bounded text, and a Logger hears of both.
func TestLastKernels(t *testing.T) {
	var r records
	var refuse error
	drv := refusing{newLosable(t), &refuse}
	dev := devtest.Must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDevice(drv), gpu.WithLogger(slog.New(&r))))
	defer func() { _ = dev.Close() }()
	buf := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(64))
	long := strings.Repeat("ä", 1000)
	for _, label := range []string{"first", "second", long, "fourth", "last"} {
		k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), noted(label)))
		devtest.Check(t, k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf}))
	}
	refuse = gpu.ErrNoMemory
	err := dev.Flush()
	const want = "gpu: Flush: out of device memory: last kernels: second, ääääääääääääääääääääääääääääää..., fourth, last"
	if !errors.Is(err, gpu.ErrNoMemory) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	refuse = nil
	devtest.Check(t, buf.Renew())
	k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), noted("fatal")))
	devtest.Check(t, k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf}))
	devtest.Check(t, dev.Flush())
	close(drv.lost)
	for range 2 {
		if err := dev.Usable(); !errors.Is(err, gpu.ErrDeviceLost) || !strings.HasSuffix(err.Error(), "unplugged; last kernels: fatal") {
			t.Errorf("got %v", err)
		}
	}
	if r.with("WARN sublet: batch failed") != 1 || r.with("WARN sublet: device lost") != 1 {
		t.Errorf("got\n%s", strings.Join(r.list, "\n"))
	}
}
