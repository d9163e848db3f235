// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"

	"github.com/sublet-gpu/sublet/gpu"
)

// worker runs tasks on one device, or those that need none.
type worker struct {
	g     *Graph
	run   *run
	index int
	dev   *gpu.Device // nil for the host
	slot  chan *Dispatch
}

// loop runs what is put into the slot. A task that ends its goroutine does not take the worker with it.
func (w *worker) loop() {
	home := false
	defer func() {
		if !home {
			go w.loop()
		}
	}()
	lost, back := w.watch()
	for {
		select {
		case d := <-w.slot:
			d.execute()
		case <-lost:
			lost = nil
			w.g.bury(w.index)
			w.g.look() // its work is for others
		case <-back:
			lost, back = w.watch()
		case <-w.run.quit:
			home = true
			w.leave()
			return
		}
	}
}

// leave runs what was put into the slot last, and signs off.
func (w *worker) leave() {
	defer func() { // also when a task ends the goroutine
		w.g.lock()
		w.run.live--
		w.g.settlePast()
		w.g.quiet.ring()
		w.g.unlock()
	}()
	select {
	case d := <-w.slot:
		d.execute()
	default:
	}
}

// watch returns channels that are closed when the device is lost, and when it comes back. The order matters; see
// [gpu.Device.Reopened]. If it came back before, there is work for it again.
func (w *worker) watch() (lost, back <-chan struct{}) {
	if w.dev == nil {
		return nil, nil
	}
	back = w.dev.Reopened()
	lost = w.dev.Lost()
	w.g.look()
	return lost, back
}

// A device that is lost is out of the graph until it is reopened. Nothing has to be undone then: a death is that of one of the
// device's lives, and so is all memory there.

// bury reports whether a device is lost or closed, and sees to it that nothing is expected of it any more.
func (g *Graph) bury(device int) bool {
	life := uint64(g.devices[device].Generation())
	err := g.devices[device].Usable()
	if !errors.Is(err, gpu.ErrDeviceLost) && !errors.Is(err, gpu.ErrClosed) {
		return false
	}
	for d := &g.deaths[device]; ; {
		if old := d.Load(); old > life || d.CompareAndSwap(old, life+1) {
			return true
		}
	}
}

// ended reports whether a device has been lost since it had that life, also if it is back.
func (g *Graph) ended(device int, life uint32) bool {
	return g.bury(device) || g.devices[device].Generation() != life
}

// alive reports whether a device is not known to be lost.
func (g *Graph) alive(device int) bool {
	return g.deaths[device].Load() <= uint64(g.devices[device].Generation())
}
