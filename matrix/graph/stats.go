// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"time"
)

// TaskStats is what a task has done. Times are totals.
type TaskStats struct {
	Name       string
	Dispatches uint64
	Failures   uint64 // dispatches that failed, not counting those that only passed on a failure of their input
	Retries    uint64 // dispatches that began anew elsewhere when a device was lost
	Devices    []uint64
	Wait       time.Duration // from ready to a worker
	Bind       time.Duration // making blocks and reading what the graph itself is told
	Run        time.Duration // the body, transfers that it asked for included
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

// DeviceStats is what a device, or the host, has done. Busy is the time that dispatches took, one after the other: the host's, which
// runs several tasks at once, may be more than has passed. Of a device it is the time for queueing work, unless the graph has [WithSync].
type DeviceStats struct {
	Name       string
	Dispatches uint64
	Busy       time.Duration
}

// Stats is what a graph has done and has. TaskStats.Devices counts dispatches by device, in the order of [New], and at last
// those of the host.
type Stats struct {
	Tasks     []TaskStats
	Channels  []ChannelStats
	Devices   []DeviceStats // in the order of New, and at last the host
	Blocks    int           // with references, those of the caller included
	Pooled    int           // whose memory is kept for new ones
	Clones    uint64        // made for writers
	BytesUp   uint64        // moved from the host to devices
	BytesDown uint64        // and back
}

// Stats returns the counters as they are now.
func (g *Graph) Stats() Stats {
	var s Stats
	if g == nil {
		return s
	}
	g.lock()
	defer g.unlock()
	s = Stats{Blocks: int(g.live.Load()), Clones: g.clones.Load(), BytesUp: g.moved.up.Load(), BytesDown: g.moved.down.Load()}
	for _, t := range g.tasks {
		k := t.stats
		k.Name, k.Devices = t.name, slices.Clone(k.Devices)
		s.Tasks = append(s.Tasks, k)
	}
	for i := range g.stats {
		l := g.stats[i]
		l.Name = g.workerName(i)
		s.Devices = append(s.Devices, l)
	}
	for _, c := range g.channels {
		k := c.stats
		k.Name, k.Capacity, k.Len = c.name, c.Capacity, len(c.queue)
		s.Channels = append(s.Channels, k)
	}
	for _, t := range g.templates {
		s.Pooled += t.pooled()
	}
	return s
}

// record counts a dispatch that has ended.
func (d *Dispatch) record() {
	g, k := d.g, &d.t.stats
	if d.again {
		k.Retries++
	} else {
		k.Dispatches++
	}
	if d.err != nil && d.own && !d.again {
		k.Failures++
	}
	if k.Devices == nil {
		k.Devices = make([]uint64, len(g.devices)+1)
	}
	where := len(g.devices)
	if d.worker != none {
		where = min(d.worker, where)
		k.Devices[where]++
		g.stats[where].Dispatches++
		g.stats[where].Busy += d.ended - d.begun
	}
	run := d.ended - d.prepared
	k.Wait += d.waited
	k.Bind += d.prepared - d.begun
	k.Run += run
	if !g.conf.single { // where the order must not depend on how long anything takes
		d.t.busy += (run - d.t.busy) / 8
		g.works += (run - g.works) / 16
	}
	g.trace.add(d, where)
}

// workerName is what a device, or after the last one the host, is called.
func (g *Graph) workerName(i int) string {
	if i < len(g.devices) {
		return "device " + itoa(i) + ": " + g.devices[i].Info().Name
	}
	return "host"
}
