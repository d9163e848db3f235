// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"
)

// Functions that pages have no use for are no methods: those are in the tables of a page's program, whether it calls them or not.

// Try begins a trial: what is written to a backing that is used in ranges is in new replicas until [Keep] or [Undo]. Those with earlier
// results are sources only meanwhile, and the others are given back.
func Try(m *Memory, k *Backing) error {
	err := giveBack(m, k)
	k.trial, k.shown = err == nil, false
	return err
}

// giveBack gives back the replicas that nothing is needed of.
func giveBack(m *Memory, k *Backing) error {
	for _, r := range slices.Clone(k.replicas) {
		if m.handOver(r) {
			if err := m.drop(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keep ends a trial whose results are wanted.
func Keep(m *Memory, k *Backing) {
	older := slices.ContainsFunc(k.replicas, func(r *Replica) bool { return !r.trial })
	for _, r := range k.replicas {
		r.trial = false
	}
	if k.trial = false; !older {
		return
	}
	m.lists(func(list []write) (rest []write) {
		for _, w := range list {
			if w.of == nil {
				rest = slices.DeleteFunc(rest, func(o write) bool { return w.Contains(o.Region) })
			}
			rest = append(rest, w)
		}
		return rest
	})
	_ = giveBack(m, k) // which matters to later calls only
}

// Undo ends a trial whose results are not wanted, and reports whether the memory is what it was before: whether none of them were copied
// elsewhere.
func Undo(m *Memory, k *Backing) bool {
	k.trial = false
	for _, r := range slices.Clone(k.replicas) {
		if r.trial {
			m.giveUp(r)
			_ = m.drop(r) // nothing of it is wanted
		}
	}
	return !k.shown
}

// Discard gives back the replicas of a backing, with results that are only there.
func Discard(m *Memory, k *Backing) {
	for _, r := range slices.Clone(k.replicas) {
		m.handOver(r)
		m.giveUp(r)
		_ = m.drop(r) // nothing of it is wanted
	}
}

// Evict gives back the replicas of a backing that contain none of the regions to keep. Those with results that the host lacks are
// copied there before, or stay: during a trial without results, the earlier ones are copied and those of the trial stay.
func Evict(ctx context.Context, m *Memory, k *Backing, results bool, keep []Region) error {
	for _, r := range slices.Clone(k.replicas) {
		if slices.ContainsFunc(keep, func(w Region) bool { return r.Lo <= w.Offset && w.End() <= r.Hi }) && r.trial == k.trial {
			continue
		}
		clean := m.handOver(r)
		if !clean && (results || k.trial && !r.trial) {
			if err := land(ctx, m, k, r, results); err != nil {
				return err
			}
			clean = m.handOver(r)
		}
		if clean {
			if err := m.drop(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// land copies to the host what it lacks of the bytes of a replica: all of it, or what is not on trial.
func land(ctx context.Context, m *Memory, k *Backing, r *Replica, all bool) error {
	var newer []write
	if !all {
		older := m.log[:0]
		for _, w := range m.log {
			if w.trial() {
				newer = append(newer, w)
			} else {
				older = append(older, w)
			}
		}
		m.log = older
	}
	err := m.Download(ctx, k, Between(r.Lo, r.Hi))
	m.log = append(m.log, newer...)
	return err
}
