// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// ArrayKind says what an array is to a stage of a [DevicePipeline].
type ArrayKind uint8

// The kinds, Cekirdekler's DevicePipelineArrayType.
const (
	Input      ArrayKind = iota // goes up whole at each feed; kernels cannot write it
	Output                      // comes back whole; two are on the device, so that one comes back while kernels write the other
	Internal                    // stays on the device, zero at first: for what a stage keeps from one feed to the next
	Transition                  // stays on the device and is what one stage writes and the next one reads; two are there, too
)

// DeviceStage is kernels of a [DevicePipeline] with their range and arrays. It is put together by one goroutine; once it is
// part of a pipeline its arrays do not change.
//
// It is DevicePipelineStage of Cekirdekler's namespace SingleGPUPipeline.
type DeviceStage struct {
	kernels string
	r       Range
	bound   []binding
	stopped atomic.Bool
	owner   *DevicePipeline
}

// binding is an array of a stage, or a scalar.
type binding struct {
	param
	kind ArrayKind
	slot *slot
}

// NewDeviceStage makes a stage without arrays. The kernels are named as for [Cruncher.Compute].
func NewDeviceStage(kernels string, r Range) (*DeviceStage, error) {
	if len(kernel.SplitNames(kernels)) == 0 {
		return nil, fail("NewDeviceStage", ErrKernel, "none is named")
	}
	r.Inner = slices.Clone(r.Inner)
	checked := r
	if err := checked.check(); err != nil {
		return nil, err
	}
	r.Blobs = 1 // what is resident or whole does not move by pieces
	return &DeviceStage{kernels: kernels, r: r}, nil
}

// Bind adds arrays of a kind. Scalars may be among them. Elements per item are those of the call; other flags follow from the
// kind.
func (s *DeviceStage) Bind(kind ArrayKind, arrays ...Param) error {
	const op = "Bind"
	if s == nil || s.kernels == "" || s.owner != nil || kind > Transition {
		return fail(op, gpu.ErrInvalid, "no stage, one that is part of a pipeline, or an unknown kind")
	}
	added, err := gather(arrays)
	if err != nil {
		return err
	}
	all := &Group{list: slices.Clone(added)}
	list := slices.Clone(s.bound)
	for _, b := range s.bound {
		all.list = append(all.list, b.param)
	}
	if _, err := gather([]Param{all}); err != nil {
		return err
	}
	for _, p := range added {
		if p.array != nil && kind == Output && p.array.host.ReadOnly {
			return fail(op, gpu.ErrReadOnly, p.array.name)
		}
		p.flags = kind.flags(p.flags)
		list = append(list, binding{param: p, kind: kind})
	}
	s.bound = list
	return nil
}

func (k ArrayKind) flags(f Flags) Flags {
	f = Flags{ElementsPerItem: f.ElementsPerItem, Mode: f.Mode, Struct: f.Struct}
	switch k {
	case Input:
		f.Read, f.ReadOnly = true, true
	case Output:
		f.Write, f.WriteAll, f.WriteOnly = true, true, true
	}
	return f
}

// StopTransmission says whether the stage's inputs stay what they are on the device and its outputs stay there, at later feeds.
func (s *DeviceStage) StopTransmission(stop bool) {
	if s != nil {
		s.stopped.Store(stop)
	}
}

// slot is an array of a pipeline on the device, once or twice. Input, Internal and Transition arrays lie over the caller's
// memory. What comes back goes to memory between, so that it arrives wholly or not at all.
type slot struct {
	array  *Any
	twins  [2]*Any
	stages []int // of a transition
}

func newSlot(a *Any, kind ArrayKind) *slot {
	s := &slot{array: a}
	for i := range s.twins {
		host := a.host
		if kind == Output {
			host = gpu.HostBytes(make([]byte, host.Size))
		}
		s.twins[i] = a.twin(host)
	}
	if kind == Input || kind == Internal {
		s.twins[1] = s.twins[0]
	}
	return s
}

// commit gives the caller what came back.
func (s *slot) commit(parity int, write func([]byte)) {
	write(s.twins[parity].host.Bytes)
	s.array.MarkDirty()
}

// group is the stage's parameters. Of a transition the stage that reads it gets what was written at the feed before, in a
// pipeline whose stages overlap.
func (s *DeviceStage) group(number, parity int, serial bool) *Group {
	g := &Group{}
	for _, b := range s.bound {
		if b.slot != nil {
			at := parity
			if serial {
				at = 0
			} else if b.kind == Transition && b.slot.stages[0] != number {
				at = 1 - parity
			}
			b.array = b.slot.twins[at]
			if b.kind == Input && s.stopped.Load() {
				b.flags.Read = false
			}
		}
		g.list = append(g.list, b.param)
	}
	return g
}
