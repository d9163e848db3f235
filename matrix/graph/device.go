// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// A device that is lost is out of the graph until it is reopened. Nothing has to be undone then: a loss is that of one of the
// device's generations, as is all memory there.

// watch schedules when a device is lost, and when it comes back.
func (g *Graph) watch(i int, quit <-chan struct{}) {
	dev := g.devices[i]
	back, lost := dev.Reopened(), dev.Lost() // in this order: see gpu.Device.Reopened
	for {
		g.reschedule()
		select {
		case <-lost: // tasks that wait for the device can run elsewhere
			g.noteLost(i)
			lost = nil
		case <-back:
			back, lost = dev.Reopened(), dev.Lost()
		case <-quit:
			return
		}
	}
}

// noteLost reports whether a device is lost or closed, and takes it out of the graph if it is.
func (g *Graph) noteLost(device int) bool {
	generation := uint64(g.devices[device].Generation())
	err := g.devices[device].Usable()
	if !errors.Is(err, gpu.ErrDeviceLost) && !errors.Is(err, gpu.ErrClosed) {
		return false
	}
	for d := &g.lostIn[device]; ; {
		if old := d.Load(); old > generation || d.CompareAndSwap(old, generation+1) {
			return true
		}
	}
}

// lostSince reports whether a device has been lost since it had that generation, also if it is back.
func (g *Graph) lostSince(device int, generation uint32) bool {
	return g.noteLost(device) || g.devices[device].Generation() != generation
}

// alive reports whether a device is not known to be lost. It does not wait for the device.
func (g *Graph) alive(device int) bool {
	return g.lostIn[device].Load() <= uint64(g.devices[device].Generation())
}

// device returns a worker's device, nil for the host's.
func (g *Graph) device(worker int) *gpu.Device {
	if worker < 0 || worker >= len(g.devices) {
		return nil
	}
	return g.devices[worker]
}

// hostWorkers returns the bits of the workers that run tasks of the host.
func (g *Graph) hostWorkers() uint64 { return (1<<g.hosts - 1) << len(g.devices) }

// workers returns the workers whose devices are not lost.
func (g *Graph) workers() uint64 {
	w := g.hostWorkers()
	for i := range g.devices {
		if g.alive(i) {
			w |= 1 << i
		}
	}
	return w
}

// strongest returns the best of some workers: the one that the task prefers, else by the sort of processor.
func (g *Graph) strongest(t *Task, of uint64) int {
	if t.preferred&of != 0 {
		return bits.TrailingZeros64(t.preferred)
	}
	best, fastest := none, -2
	for m := of; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if r := speed(g.device(i)); r > fastest {
			best, fastest = i, r
		}
	}
	return best
}

// slowestFirst orders processors.
var slowestFirst = []driver.Kind{driver.KindCPU, driver.KindUnknown, driver.KindVirtual, driver.KindIntegrated, driver.KindDiscrete}

// speed is a processor's place in that order. A device that compiles no WGSL is the reference implementation.
func speed(d *gpu.Device) int {
	if d == nil || !d.Info().Features.Has(driver.FeatureWGSL) {
		return -1
	}
	return slices.Index(slowestFirst, d.Info().Kind)
}
