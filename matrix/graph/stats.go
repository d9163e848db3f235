// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"time"
)

// Work is what a task has done, or a device. Times are totals. Run is what dispatches took, transfers included: of a device
// the time for queueing work, unless the graph has [Config].Sync, and of the host, which runs several tasks at once, maybe
// more than has passed.
type Work struct {
	Name       string
	Dispatches uint64
	Failures   uint64        // dispatches that failed, not counting those that only passed on a failure of their input
	Retries    uint64        // dispatches that began anew elsewhere when a device was lost
	Devices    []uint64      // a task's dispatches by device, in the order of New, and at last those of the host
	Wait       time.Duration // from ready to a worker
	Run        time.Duration // making blocks and the body
}

// ChannelStats is what a channel has seen.
type ChannelStats struct {
	Name     string
	Capacity int
	Len      int
	Peak     int    // the most blocks that there ever were
	Pushed   uint64 // blocks that came in
	Dropped  uint64 // blocks that its predicates refused
}

// Stats is what a graph has done and has.
type Stats struct {
	Tasks     []Work
	Devices   []Work // in the order of New, and at last the host
	Channels  []ChannelStats
	Blocks    int    // with references, those of the caller included
	Pooled    int    // whose memory is kept for new ones
	Clones    uint64 // made for writers
	BytesUp   uint64 // moved from the host to devices
	BytesDown uint64 // and back
}

// Stats returns the counters as they are now.
func (g *Graph) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	g.lock()
	defer g.unlock()
	s := Stats{
		Devices: slices.Clone(g.work), Blocks: int(g.live.Load()), Clones: g.clones.Load(),
		BytesUp: g.moved.up.Load(), BytesDown: g.moved.down.Load(),
	}
	for _, t := range g.tasks {
		k := t.work
		k.Name, k.Devices = t.name, slices.Clone(k.Devices)
		s.Tasks = append(s.Tasks, k)
	}
	for i := range s.Devices {
		s.Devices[i].Name = g.workerName(i)
	}
	for _, c := range g.channels {
		k := c.stats
		k.Name, k.Capacity, k.Len = c.name, c.Capacity, c.queue.len()
		s.Channels = append(s.Channels, k)
	}
	for _, t := range g.templates {
		t.mu.Lock()
		s.Pooled += len(t.free)
		t.mu.Unlock()
	}
	return s
}

// record counts a dispatch that has ended.
func (d *Dispatch) record() {
	g, t := d.g, d.t
	if t.work.Devices == nil {
		t.work.Devices = make([]uint64, len(g.work))
	}
	d.count(&t.work)
	if d.worker != none {
		t.work.Devices[d.where()]++
		d.count(&g.work[d.where()])
	}
	if !g.conf.Deterministic { // where the order must not depend on how long anything takes
		run := d.ended - d.begun
		t.busy += (run - t.busy) / 8
		g.works += (run - g.works) / 16
	}
	if g.trace.push(d); g.trace.len() > g.conf.Trace {
		g.trace.pop()
	}
}

func (d *Dispatch) count(w *Work) {
	if d.again {
		w.Retries++
	} else if w.Dispatches++; d.err != nil && !d.passed {
		w.Failures++
	}
	w.Wait += d.waited
	w.Run += d.ended - d.begun
}

// workerName is what a device, or after the last one the host, is called.
func (g *Graph) workerName(i int) string {
	if i < len(g.devices) {
		return "device " + itoa(i) + ": " + g.devices[i].Info().Name
	}
	return "host"
}
