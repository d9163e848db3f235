// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// countKernel counts to p.n in a loop.
var countKernel = gpu.KernelDesc{
	Label: "count",
	Source: `struct Params { n: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  for (var i = 0u; i < p.n; i++) { data[id.x] += 1u; }
}`,
	Bindings: []driver.Access{driver.AccessParams, driver.AccessReadWrite},
}

// limits reports whether the device ends the loops of this file, which take 70,000 turns and a few.
func limits(dev *gpu.Device) bool {
	most := dev.Info().Limits.MaxLoopsPerInvoking
	return most > 0 && most < 70000
}

// TestLongLoops has loops that some adapters end early. Nobody gets what such a loop has made: those who ask for it, or for what
// was made of it, get an error, and others what is theirs.
func TestLongLoops(t *testing.T) {
	devtest.EachGPU(t, func(t *testing.T, dev *gpu.Device) {
		buffer, kernel := devtest.Must[*gpu.Buffer](t), devtest.Must[*gpu.Kernel](t)
		k, add := kernel(dev.Kernel(t.Context(), countKernel)), kernel(dev.Kernel(t.Context(), addKernel()))
		newBuffer := func() *gpu.Buffer {
			b := buffer(dev.NewBuffer(256))
			t.Cleanup(func() { check(t, b.Close()) })
			check(t, b.Clear(0, 256))
			return b
		}
		count := func(b *gpu.Buffer, n uint32) {
			check(t, k.Dispatch([3]uint32{1, 1, 1}, params(n, 0, 0, 0), gpu.Arg{Buffer: b}))
		}
		read := func(b *gpu.Buffer) error {
			raw := make([]byte, 4)
			err := b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(raw), Width: 4, Count: 1})
			if err != nil && (raw[0] != 0 || raw[2] != 0) {
				t.Errorf("a read that failed has changed memory: %v", raw)
			}
			return err
		}
		mine, made, theirs := newBuffer(), newBuffer(), newBuffer()
		count(theirs, 60000)
		check(t, dev.Sync(t.Context()))
		count(mine, 70000)
		check(t, add.Dispatch([3]uint32{1, 1, 1}, params(1, 64, 0, 0), gpu.Arg{Buffer: made}))
		if !limits(dev) {
			if v := words(t, mine, 1)[0]; v != 70000 {
				t.Errorf("counted to %d", v)
			}
			return
		}
		for _, b := range []*gpu.Buffer{mine, made} {
			for range 2 {
				if err := read(b); !errors.Is(err, gpu.ErrLimit) || !strings.Contains(err.Error(), "llvmpipe") || !strings.Contains(err.Error(), "count") {
					t.Errorf("read: %v", err)
				}
				if err := b.Sync(t.Context()); !errors.Is(err, gpu.ErrLimit) {
					t.Errorf("synced: %v", err)
				}
			}
		}
		if v := words(t, theirs, 64)[63]; v != 60000 {
			t.Errorf("counted to %d", v)
		}
		check(t, mine.Clear(0, 256))
		count(mine, 5)
		if v := words(t, mine, 1)[0]; v != 5 {
			t.Errorf("counted to %d", v)
		}
		count(mine, 70000)
		if err := dev.Sync(t.Context()); !errors.Is(err, gpu.ErrLimit) {
			t.Errorf("synced: %v", err)
		}
		if err := read(mine); !errors.Is(err, gpu.ErrLimit) {
			t.Errorf("read: %v", err)
		}
		check(t, dev.Sync(t.Context()))
	})
}

// TestLongLoopsMapped reads what a loop has made by mapping it.
func TestLongLoopsMapped(t *testing.T) {
	devtest.EachGPU(t, func(t *testing.T, dev *gpu.Device) {
		b, err := dev.NewMappable(256)
		if errors.Is(err, gpu.ErrUnsupported) {
			return
		}
		check(t, err)
		defer func() { check(t, b.Close()) }()
		k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), countKernel))
		check(t, b.Clear(0, 256))
		check(t, k.Dispatch([3]uint32{1, 1, 1}, params(70000, 0, 0, 0), gpu.Arg{Buffer: b}))
		for range 2 {
			err = b.Map(t.Context(), 0, 4, func([]byte) error { return nil })
			if limited := limits(dev); errors.Is(err, gpu.ErrLimit) != limited || !limited && err != nil {
				t.Errorf("mapped: %v", err)
			}
		}
	})
}

// TestLongLoopsOfMany has goroutines compute in loops, some of which are too long: each gets what is right, or an error.
func TestLongLoopsOfMany(t *testing.T) {
	devtest.EachGPU(t, func(t *testing.T, dev *gpu.Device) {
		k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), countKernel))
		limited := limits(dev)
		var all sync.WaitGroup
		for g := range 6 {
			all.Go(func() {
				b, err := dev.NewBuffer(256)
				defer func() { _ = b.Close() }() // after the error, if there is one
				for i := 0; err == nil && i < devtest.Times(25); i++ {
					n := uint32(100*g + i)
					if long := (g+i)%5 == 0; long {
						n += 70000
					}
					err = errors.Join(b.Clear(0, 256), b.Renew(), k.Dispatch([3]uint32{1, 1, 1}, params(n, 0, 0, 0), gpu.Arg{Buffer: b}))
					if err != nil && limited && errors.Is(err, gpu.ErrLimit) { // that of another goroutine's batch, between two calls
						err = nil
						continue
					}
					raw := make([]byte, 256)
					rerr := b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(raw), Width: len(raw), Count: 1})
					v := uint32(raw[252]) | uint32(raw[253])<<8 | uint32(raw[254])<<16
					if limited && errors.Is(rerr, gpu.ErrLimit) {
						continue
					}
					if rerr != nil || v != n || limited && n > 70000 {
						t.Errorf("goroutine %d, %d turns: %d, %v", g, n, v, rerr)
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
