// SPDX-License-Identifier: Apache-2.0

//go:build !js && cgo

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// owners open a device of the library's, and one that a program has opened with all limits, as the library does.
var owners = []struct {
	name string
	open func(t testing.TB) *gpu.Device
}{
	{"own", func(t testing.TB) *gpu.Device { return devtest.Open(t, devtest.Native()) }},
	{"adopted", func(t testing.TB) *gpu.Device {
		dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDevice(devtest.UserDevice(t, true))))
		t.Cleanup(func() { check(t, dev.Close()) })
		return dev
	}},
}

// TestAdoptedDevice plans for a device that a program has opened as for one of the library's own.
func TestAdoptedDevice(t *testing.T) {
	var infos [2]gpu.AdapterInfo
	for i, o := range owners {
		infos[i] = o.open(t).Info()
		infos[i].Features, infos[i].Limits.TimestampPeriod = 0, 0 // the program has asked for none
	}
	if infos[0] != infos[1] {
		t.Errorf("own: %+v, adopted: %+v", infos[0], infos[1])
	}
}

// BenchmarkAdopted compares a device that a program has opened with one of the library's own.
func BenchmarkAdopted(b *testing.B) {
	const n = 512
	for _, o := range owners {
		b.Run("product/"+o.name, func(b *testing.B) {
			dev := o.open(b)
			x, y, z := square(b, dev, n), square(b, dev, n), square(b, dev, n)
			for b.Loop() {
				check(b, z.Mul(x, y))
				check(b, dev.Sync(background))
			}
		})
		b.Run("softmax/"+o.name, func(b *testing.B) {
			dev := o.open(b)
			x, z := square(b, dev, 2*n), square(b, dev, 2*n)
			for b.Loop() {
				check(b, z.Assign(matrix.Softmax(x)))
				check(b, dev.Sync(background))
			}
		})
		b.Run("first/"+o.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dev := o.open(b)
				b.StartTimer()
				x, y, z := square(b, dev, n), square(b, dev, n), square(b, dev, n)
				check(b, z.Mul(x, y))
				check(b, dev.Sync(background))
			}
		})
	}
}

func square(t testing.TB, dev *gpu.Device, n int) *dense {
	return must[*dense](t)(matrix.New[float32](dev, n, n))
}
