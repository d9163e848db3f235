// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

func openAll(t *testing.T, s gpu.Selection) []*gpu.Device {
	t.Helper()
	devices, err := s.Open(t.Context())
	check(t, err)
	for _, d := range devices {
		t.Cleanup(func() { check(t, d.Close()) })
	}
	return devices
}

// count returns how many adapters a selection has.
func count(s gpu.Selection) int {
	list, _ := s.Adapters()
	return len(list)
}

// TestSelect opens the adapters of this machine that compile WGSL, the first twice, and runs a kernel on each.
func TestSelect(t *testing.T) {
	all := gpu.Select(t.Context())
	kernels := all.Kernels()
	if count(all) <= count(kernels) {
		t.Errorf("%d adapters, %d of them compile WGSL; the oracle does not", count(all), count(kernels))
	}
	devices := openAll(t, kernels.Plus(kernels.At(0)))
	if len(devices) != count(kernels)+1 || devices[0].Info() != devices[len(devices)-1].Info() {
		t.Errorf("%d devices of %d adapters", len(devices), count(kernels))
	}
	for _, d := range devices {
		k, err := d.Kernel(t.Context(), addKernel())
		check(t, err)
		b, err := d.NewBuffer(400)
		check(t, err)
		check(t, b.Clear(0, b.Size()))
		check(t, k.Dispatch([3]uint32{2, 1, 1}, params(7, 100, 0, 0), gpu.Arg{Buffer: b}))
		if v := words(t, b, 100); v[0] != 7 || v[99] != 7 {
			t.Errorf("%s: %d, %d", d.Info().Name, v[0], v[99])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gpu.Select(ctx).Plus(all).Adapters(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var none context.Context
	if _, err := gpu.Open(none); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("nil context: %v", err)
	}
	if _, err := all.Rank(none, nil).Adapters(); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("ranked without a context: %v", err)
	}
}

func TestNBody(t *testing.T) {
	ctx := t.Context()
	for _, d := range openAll(t, gpu.Select(ctx)) {
		v, err := gpu.NBody(ctx, d)
		if d.Info().Features.Has(driver.FeatureWGSL) == (err != nil) || err != nil && !errors.Is(err, gpu.ErrUnsupported) || err == nil && v <= 0 {
			t.Errorf("%s: %g, %v", d.Info().Name, v, err)
		}
		if s := d.Stats(); s.Buffers != 0 {
			t.Errorf("%s: %d buffers are left", d.Info().Name, s.Buffers)
		}
		check(t, d.Close())
		if _, err := gpu.NBody(ctx, d); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}
