// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"errors"
	"slices"
	"sort"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// WithMemory limits how many bytes the arrays have on each device, beside the words that those of 8 and 16 bits are unpacked to during a
// call. 0 is no limit but the device's own. A device that is there twice has it twice.
//
// Where a call needs more, here or on a device that is out of memory, the arrays used longest ago leave: those that are not part of the
// call, or of an open batch, if the host or other devices have the same elements. What they need they get again with their next call.
// Should the caller write into the host's side meanwhile, that counts, even if it does not go up. If the room is not enough, the call is
// [gpu.ErrNoMemory].
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// inRoom makes memory on a device, where others leave if need be.
func (cr *Cruncher) inRoom(dev *gpu.Device, allocate func() error) error {
	for {
		err := allocate()
		if !errors.Is(err, gpu.ErrNoMemory) || !cr.makeRoom(dev) {
			return err
		}
	}
}

// makeRoom has the array used longest ago leave a device, and reports whether there was one that may.
func (cr *Cruncher) makeRoom(dev *gpu.Device) bool {
	cr.room.Lock()
	defer cr.room.Unlock()
	var old []*residency
	for _, r := range cr.arrays {
		if r.used <= cr.mark {
			old = append(old, r)
		}
	}
	sort.Slice(old, func(i, j int) bool { return old[i].used < old[j].used })
	return slices.ContainsFunc(old, func(r *residency) bool {
		r.array.mu.Lock()
		known := r.array.tracked && r.array.version == r.version
		r.array.mu.Unlock()
		if !known && !r.goesUp {
			r.values.HostChanged(r.array.all(), memory.Apart)
		}
		return r.values.Leave(dev, r.goesUp)
	})
}
