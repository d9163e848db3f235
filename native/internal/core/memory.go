// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/memory"
)

// A software adapter's memory is the process's own. wgpu-native ends the process where it gets no memory for itself, and takes what it
// cannot map for a write for the loss of the device. It maps blocks of up to 128 MiB for writes, and of 256 MiB for buffers, and keeps some
// of them when what was in them is freed.
const (
	writeBlock  = 128 << 20
	bufferBlock = 256 << 20
	leastSpace  = 96 << 20 // addresses for all else
)

// space is what is known of such memory.
type space struct {
	buffers, work memory.Meter

	live, peak uint64 // bytes of buffers, now and at most
	written    uint64 // the most that was written by one list
}

func (s *space) taken(size uint64) {
	s.live += size
	s.peak = max(s.peak, s.live)
}

// spare sees to it that a new buffer leaves enough for work, and returns what ends that. Where there were twice as many buffers before, it is
// enough that there is space for all else.
func (d *device) spare(op string, size uint64) (end func(), err error) {
	if d.Info().Kind != driver.KindCPU {
		return func() {}, nil
	}
	least := uint64(bufferBlock + leastSpace)
	if d.memory.live+size <= d.memory.peak/2 {
		least = leastSpace
	}
	return d.confine(op, size, least)
}

func (d *device) confine(op string, size, least uint64) (end func(), err error) {
	if d.Info().Kind != driver.KindCPU {
		return func() {}, nil
	}
	end, ok := d.memory.buffers.Confine(size, memory.Reserve, bufferBlock+2*writeBlock, least)
	if !ok {
		return nil, d.short(op, size)
	}
	return end, nil
}

// afford refuses work that the system cannot give memory for. Work that writes no more than other work did before finds the blocks there.
func (d *device) afford(op string, size uint64) error {
	if d.Info().Kind != driver.KindCPU {
		return nil
	}
	addresses := uint64(writeBlock)
	if size <= d.memory.written {
		addresses = 0
	}
	if !d.memory.work.Affords(size, memory.Reserve/2, addresses) {
		return d.short(op, size)
	}
	d.memory.written = max(d.memory.written, size)
	return nil
}

func (d *device) short(op string, size uint64) error {
	return d.fail(op, fault.ErrNoMemory, fault.Text(size, " bytes, which the system does not have"))
}
