// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/gogpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/matrix"
)

// users makes a device as a user of the library does.
func users(t *testing.T) *wgpu.Device {
	t.Helper()
	i, err := wgpu.CreateInstance(&wgpu.InstanceDescriptor{Backends: wgpu.BackendsVulkan})
	check(t, err)
	a, err := i.RequestAdapter(nil)
	check(t, err)
	d, err := a.RequestDevice(nil)
	check(t, err)
	t.Cleanup(i.Release)
	return d
}

func usersBuffer(t *testing.T, d *wgpu.Device, size int) *wgpu.Buffer {
	t.Helper()
	b, err := d.CreateBuffer(&wgpu.BufferDescriptor{Size: uint64(size), Usage: usage})
	check(t, err)
	return b
}

func TestAdoptConformance(t *testing.T) {
	gputest.Run(t, func(ctx context.Context) (driver.Device, error) { return New().Adopt(ctx, users(t)) })
}

// TestAdopted computes in a buffer of a user's device, which is open afterwards.
func TestAdopted(t *testing.T) {
	own := users(t)
	dev, err := gpu.Open(t.Context(), gpu.WithDevice(own))
	check(t, err)
	if dev.Info().Driver != name || dev.Handle() != any(own) {
		t.Errorf("a device of %s with the handle %v", dev.Info().Driver, dev.Handle())
	}
	b := usersBuffer(t, own, 16)
	check(t, own.Queue().WriteBuffer(b, 0, gputest.PutF32(nil, 1, 2, 3, 4)))
	m, err := matrix.WrapBuffer[float32](dev, 2, 2, b)
	check(t, err)
	check(t, m.Assign(matrix.Mul(m, m)))
	v, err := m.Read(t.Context())
	check(t, err)
	if !slices.Equal(v, []float32{7, 10, 15, 22}) {
		t.Errorf("the square is %v", v)
	}
	check(t, m.Close())
	check(t, dev.Close())
	again := usersBuffer(t, own, 16) // fails if the device was released
	again.Release()
	b.Release()
}

func TestForeign(t *testing.T) {
	ctx, own := t.Context(), users(t)
	dev, err := New().Adopt(ctx, own)
	check(t, err)
	gputest.OddSizes(t, dev, func(size int) any { return usersBuffer(t, own, size) })
	unusable, err := own.CreateBuffer(&wgpu.BufferDescriptor{Size: 16, Usage: wgpu.BufferUsageStorage})
	check(t, err)
	for what, c := range map[string]struct {
		handle any
		want   error
	}{
		"of another device": {usersBuffer(t, users(t), 16), gpu.ErrForeign},
		"nil":               {(*wgpu.Buffer)(nil), gpu.ErrForeign},
		"zero":              {&wgpu.Buffer{}, gpu.ErrForeign},
		"not for copies":    {unusable, gpu.ErrInvalid},
	} {
		if _, _, err := dev.ImportBuffer(1, c.handle); !errors.Is(err, c.want) {
			t.Errorf("a buffer %s: %v", what, err)
		}
	}
	check(t, dev.Close())
	for what, h := range map[string]any{"nil": (*wgpu.Device)(nil), "zero": &wgpu.Device{}} {
		if d, err := New().Adopt(ctx, h); err == nil {
			t.Errorf("%s device: adopted as %v", what, d)
		}
	}
	own.Release()
	if d, err := New().Adopt(ctx, own); err == nil {
		t.Errorf("a released device: adopted as %v", d)
	}
}

// TestOpen wants the driver only where it is asked for, or where nothing but the oracle is beside it, as without cgo.
func TestOpen(t *testing.T) {
	t.Setenv("SUBLET_DRIVER", "")
	dev, err := gpu.Open(t.Context())
	check(t, err)
	want := name
	for a, err := range gpu.Adapters(t.Context()) {
		check(t, err)
		if !a.Experimental && a.Info.Features.Has(driver.FeatureWGSL) {
			want = a.Info.Driver
		}
	}
	if got := dev.Info().Driver; got != want {
		t.Errorf("a device of %s is opened, want %s", got, want)
	}
	check(t, dev.Close())
}
