// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
)

// binding is an array of a stage, or a scalar.
type binding struct {
	param
	slot *slot
}

// slotKind tells what an array is to a pipeline: DevicePipelineArrayType of Cekirdekler.
type slotKind uint8

const (
	inputSlot      slotKind = iota // goes up whole at each feed; kernels cannot write it
	outputSlot                     // comes back whole; two are on the device, so that one comes back while kernels write the other
	hiddenSlot                     // stays on the device, zero at first
	transitionSlot                 // stays on the device, written by one stage and read by the next; two are there, too
)

func (k slotKind) flags(f Flags) Flags {
	f = Flags{ElementsPerItem: f.ElementsPerItem, Mode: f.Mode, Struct: f.Struct}
	switch k {
	case inputSlot:
		f.Read, f.ReadOnly = true, true
	case outputSlot:
		f.Write, f.WriteAll, f.WriteOnly = true, true, true
	}
	return f
}

// slot is an array on the device, once or twice. Inputs, hidden arrays and transitions lie over the caller's memory. What comes
// back goes to memory between, so that it arrives wholly or not at all.
type slot struct {
	array    *Any
	kind     slotKind
	replicas [2]*Any
	first    int // the first stage that has it
}

// bind gives a stage the slots of its arrays.
func (p *DevicePipeline) bind(stage int, all []stageParams) error {
	has := func(k int, list func(*stageParams) []param, a *Any) bool {
		return k >= 0 && k < len(all) && slices.ContainsFunc(list(&all[k]), func(q param) bool { return q.array.body == a.body })
	}
	of := &all[stage]
	for _, q := range of.inputs {
		kind := inputSlot
		if has(stage-1, func(s *stageParams) []param { return s.outputs }, q.array) {
			kind = transitionSlot
		}
		if err := p.take(stage, kind, q); err != nil {
			return err
		}
	}
	for _, q := range of.outputs {
		kind := outputSlot
		if has(stage+1, func(s *stageParams) []param { return s.inputs }, q.array) {
			kind = transitionSlot
		}
		if err := p.take(stage, kind, q); err != nil {
			return err
		}
	}
	for _, q := range of.hidden {
		if err := p.take(stage, hiddenSlot, q); err != nil {
			return err
		}
	}
	return nil
}

// take finds or makes the slot of an array of a stage.
func (p *DevicePipeline) take(stage int, kind slotKind, q param) error {
	b := binding{param: q}
	if q.array != nil {
		for _, s := range p.slots {
			if s.array.body != q.array.body {
				continue
			}
			switch {
			case s.kind == inputSlot && kind == inputSlot, s.kind == transitionSlot && kind == transitionSlot && s.first == stage-1:
				b.slot = s
			case s.kind == inputSlot && kind == outputSlot, s.kind == outputSlot && kind == inputSlot: // by way of the host
			default:
				return fail("NewDevicePipeline", gpu.ErrInvalid, q.name(), " belongs to other stages")
			}
		}
		if b.slot == nil {
			b.slot = newSlot(q.array, kind, stage)
			p.slots = append(p.slots, b.slot)
		}
		b.as, b.flags = q.name(), kind.flags(q.flags)
	}
	s := p.stages[stage]
	s.bound = append(s.bound, b)
	return nil
}

func newSlot(a *Any, kind slotKind, stage int) *slot {
	s := &slot{array: a, kind: kind, first: stage}
	for i := range s.replicas {
		host := a.host
		if kind == outputSlot {
			host = newHost(a)
		}
		s.replicas[i] = a.over(host)
	}
	if kind == inputSlot || kind == hiddenSlot {
		s.replicas[1] = s.replicas[0]
	}
	return s
}

// group is a stage's parameters. Of a transition the stage that reads it gets what was written at the feed before, in a
// pipeline whose stages overlap.
func (p *DevicePipeline) group(stage int) *group {
	g := &group{}
	s, parity := p.stages[stage], p.count%2
	for _, b := range s.bound {
		if b.slot != nil {
			at := parity
			if p.serial {
				at = 0
			} else if b.slot.kind == transitionSlot && b.slot.first != stage {
				at = 1 - parity
			}
			b.array = b.slot.replicas[at]
			if b.slot.kind == inputSlot && s.stopped {
				b.flags.Read = false
			}
		}
		g.list = append(g.list, b.param)
	}
	return g
}

// enqueue is Compute that returns when everything is queued. Nothing comes back: the cruncher is in a batch that does not end.
func (cr *Cruncher) enqueue(ctx context.Context, id int, kernels string, r Range, ps ...Param) error {
	if err := cr.mu.enter(ctx); err != nil {
		return err
	}
	b, err := cr.batch, error(nil)
	if b == nil {
		b, err = cr.open("Feed")
	}
	cr.mu.unlock()
	if err != nil {
		return err
	}
	return cr.compute(ctx, b, id, kernels, r, ps)
}

// fetcher returns a function that brings whole arrays from the first device to their hosts' sides, while calls that use other
// arrays are queued.
func (cr *Cruncher) fetcher(arrays []*Any) func(ctx context.Context) error {
	type copied struct {
		array *body
		mem   *gpu.Buffer
	}
	var list []copied
	cr.mu.lock()
	for _, a := range arrays {
		if r := cr.arrays[a.body]; r != nil { // or nothing was computed
			list = append(list, copied{a.body, r.values.Held(0)})
		}
	}
	cr.mu.unlock()
	return func(ctx context.Context) error {
		for i := range list {
			r := &list[i]
			if r.mem == nil {
				return fail("Feed", ErrStale, r.array.name)
			}
			host := r.array.host
			cr.down.Add(int64(host.Size))
			if err := r.mem.Read(ctx, gpu.Transfer{Host: host, Width: host.Size, Pitch: host.Size, Count: 1}); err != nil {
				return err
			}
		}
		return nil
	}
}
