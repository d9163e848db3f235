// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"cmp"
	"encoding/binary"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// guard watches the loops of kernels that do not say how far they go, on adapters that end them early without a word. The kernels'
// text counts those that were cut short, see [wgsl.Scan.Guarded], and every transfer to the host looks at the counter as it was
// when the transfer's turn came. It is used under the device's lock.
type guard struct {
	labels  map[driver.KernelID]string
	lists   unverified
	counted uint32 // invocations that were cut short, as far as they have been reported
	refusal error  // is returned until a submission has returned it, so that who submits knows before anything else happens
}

// unverified are lists with guarded kernels since the guard was last read.
type unverified struct {
	some        bool
	first, last uint64 // their numbers
}

func (g *guard) submitted(list uint64) {
	if !g.lists.some {
		g.lists = unverified{true, list, list}
	}
	g.lists.last = list
}

// idle reports whether there is nothing to find out.
func (g *guard) idle() bool { return !g.lists.some && g.refusal == nil }

// told returns the refusal and clears it.
func (g *guard) told() error {
	err := g.refusal
	g.refusal = nil
	return err
}

// guarded returns a kernel, whose text was read, with a guard, or nil if it needs none.
func (d *device) guarded(id driver.KernelID, k *driver.Kernel, s *wgsl.Scan) *driver.Kernel {
	if k.Bounded || d.Info().Limits.MaxLoopsPerInvoking == 0 || s == nil {
		return nil
	}
	g := *k
	if g.Source, g.Entry = s.Guarded(k.Entry, uint32(id)); g.Source == "" {
		return nil
	}
	if d.guard.labels == nil {
		d.guard.labels = map[driver.KernelID]string{}
	}
	d.guard.labels[id] = cmp.Or(k.Label, k.Entry)
	return &g
}

// verify looks at what the guard held when these lists were done.
func (d *device) verify(lists unverified, words []byte) error {
	if len(words) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &d.guard
	count, id := binary.LittleEndian.Uint32(words), driver.KernelID(binary.LittleEndian.Uint32(words[12:]))
	if int32(count-g.counted) > 0 {
		g.counted = count
		why := fault.Text("this software adapter (llvmpipe) ended loops of ", g.labels[id], " early: it stops the loops of an invocation, and ",
			"of those computed beside it, after ", uint32(llvmpipeLoops), " turns together. Divide them among several dispatches, or take ",
			"another adapter")
		g.refusal = driver.Refusal{List: lists.first, Err: d.fail("Dispatch", fault.ErrLimit, why)}
	}
	if g.lists.last == lists.last {
		g.lists = unverified{}
	} else {
		g.lists.first = max(g.lists.first, lists.last)
	}
	return g.refusal
}
