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
	var lost <-chan struct{}
	if w.dev != nil {
		lost = w.dev.Lost()
	}
	for {
		select {
		case d := <-w.slot:
			d.execute()
		case <-lost:
			lost = nil
			w.g.bury(w.index)
			w.g.lock()
			w.g.schedule() // its work is for others
			w.g.unlock()
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
		if w.run.live == 0 {
			w.run.cancel()
		}
		w.g.quiet.ring()
		w.g.unlock()
	}()
	select {
	case d := <-w.slot:
		d.execute()
	default:
	}
}

// bury reports whether a device is lost or closed, and sees to it that nothing is expected of it any more.
func (g *Graph) bury(device int) bool {
	err := g.devices[device].Usable()
	if !errors.Is(err, gpu.ErrDeviceLost) && !errors.Is(err, gpu.ErrClosed) {
		return false
	}
	g.alive.And(^bit(device + 1))
	return true
}
