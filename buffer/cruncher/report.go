// SPDX-License-Identifier: Apache-2.0

package cruncher

import "slices"

// Report tells what a call did.
type Report struct {
	// Shares has one entry for each device, also where that got nothing, in their order.
	Shares []Share
	// Traffic is what the call moved, in bytes.
	Traffic Traffic
}

// Share is a part of a call's range that one device computed.
type Share struct {
	Device  int     // its number among those given to [New]
	Offset  int     // the first item; in two and three dimensions, of the slowest one
	Count   int     // how many from there on
	Seconds float64 // with its transfers and without waiting for others
}

// Last reports on the last call that computed something and did not fail. Before the first one it is empty. It never waits
// for a call in progress.
func (cr *Cruncher) Last() Report {
	if cr == nil {
		return Report{}
	}
	r := cr.last.Load()
	if r == nil {
		return Report{}
	}
	return Report{slices.Clone(r.Shares), r.Traffic}
}

// publish reports on a call that began with so much traffic.
func (cr *Cruncher) publish(pieces []*piece, before Traffic) {
	now := cr.Traffic()
	r := &Report{Traffic: Traffic{now.Up - before.Up, now.Down - before.Down, now.Migrated - before.Migrated}}
	for _, p := range pieces {
		r.Shares = append(r.Shares, Share{p.worker.index, p.part.base, p.part.count, p.took.Seconds()})
	}
	cr.last.Store(r)
}
