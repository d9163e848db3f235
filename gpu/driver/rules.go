// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/sublet-gpu/sublet/internal/fault"

// CheckBindings checks what a kernel of the layout is to see of buffers of the given sizes. Package gpu calls it when a launch is
// recorded, [Objects] when the list is submitted. op begins the error's text.
//
// WebGPU refuses a buffer that is bound for reading and for writing, whatever the ranges, and ranges that overlap and are
// both writable: https://www.w3.org/TR/webgpu/#programming-model-resource-usages
func (l *Limits) CheckBindings(op string, layout Layout, entries []Binding, sizes []uint64) error {
	switch {
	case len(entries) != layout.Storage():
		return fault.Fail(op, fault.ErrInvalid, num(uint64(len(entries))), " entries for ", num(uint64(layout.Storage())), " storage bindings")
	case layout.params() > 1:
		return fault.Fail(op, fault.ErrInvalid, "more than one parameter block")
	case len(entries) > int(l.MaxStorageBuffers):
		return fault.Fail(op, fault.ErrLimit, num(uint64(len(entries))), " storage bindings")
	}
	var access [MaxBindings]Access
	binding := -1
	for i, e := range entries {
		for binding++; layout.At(binding) != AccessRead && layout.At(binding) != AccessReadWrite; binding++ {
		}
		access[i] = layout.At(binding)
		if err := l.checkBinding(op, e, sizes[i]); err != nil {
			return err
		}
		for j, f := range entries[:i] {
			if f.Buffer == e.Buffer && (access[i] != access[j] ||
				access[i] == AccessReadWrite && e.Offset < f.Offset+f.Size && f.Offset < e.Offset+e.Size) {
				return fault.Fail(op, fault.ErrInvalid, "one buffer bound for reading and for writing")
			}
		}
	}
	return nil
}

func (l *Limits) checkBinding(op string, e Binding, buffer uint64) error {
	switch {
	case e.Size == 0 || e.Size%4 != 0:
		return fault.Fail(op, fault.ErrInvalid, "size ", num(e.Size), " is not a positive multiple of 4")
	case l.BindingOffsetAlign > 0 && e.Offset%uint64(l.BindingOffsetAlign) != 0:
		return fault.Fail(op, fault.ErrInvalid, "offset ", num(e.Offset), " is not a multiple of ", num(uint64(l.BindingOffsetAlign)))
	case e.Offset > buffer || e.Size > buffer-e.Offset:
		return fault.Fail(op, fault.ErrInvalid, "beyond the end of the buffer")
	case e.Size > l.MaxBindingSize:
		return fault.Fail(op, fault.ErrLimit, num(e.Size), " bytes, the largest binding has ", num(l.MaxBindingSize))
	}
	return nil
}
