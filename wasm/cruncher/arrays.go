// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// types are the element types by name.
var types = map[string]dtype.Type{
	"float32": dtype.Float32, "int32": dtype.Int32, "uint32": dtype.Uint32, "int8": dtype.Int8,
	"uint8": dtype.Uint8, "int16": dtype.Int16, "uint16": dtype.Uint16, "bytes": cruncher.Bytes,
}

// modes are those of arrays of small elements.
var modes = map[string]kernel.Mode{"widened": kernel.Widened, "packed": kernel.Packed, "atomic": kernel.Atomic}

// property is a flag of an array that the page sees and changes. set reads its value.
type property struct {
	get func(f cruncher.Flags) any
	set func(f *cruncher.Flags, a *arguments)
}

func flag(field func(f *cruncher.Flags) *bool) property {
	return property{
		func(f cruncher.Flags) any { return *field(&f) },
		func(f *cruncher.Flags, a *arguments) { *field(f) = a.bool() },
	}
}

func count(field func(f *cruncher.Flags) *int) property {
	return property{
		func(f cruncher.Flags) any { return *field(&f) },
		func(f *cruncher.Flags, a *arguments) { *field(f) = a.int() },
	}
}

// properties by name.
var properties = map[string]property{
	"read":            flag(func(f *cruncher.Flags) *bool { return &f.Read }),
	"partialRead":     flag(func(f *cruncher.Flags) *bool { return &f.PartialRead }),
	"write":           flag(func(f *cruncher.Flags) *bool { return &f.Write }),
	"writeAll":        flag(func(f *cruncher.Flags) *bool { return &f.WriteAll }),
	"readOnly":        flag(func(f *cruncher.Flags) *bool { return &f.ReadOnly }),
	"writeOnly":       flag(func(f *cruncher.Flags) *bool { return &f.WriteOnly }),
	"zeroCopy":        flag(func(f *cruncher.Flags) *bool { return &f.ZeroCopy }),
	"elementsPerItem": count(func(f *cruncher.Flags) *int { return &f.ElementsPerItem }),
	"halo":            count(func(f *cruncher.Flags) *int { return &f.Halo }),
	"mode": {
		func(f cruncher.Flags) any {
			for name, mode := range modes {
				if mode == f.Mode {
					return name
				}
			}
			return nil
		},
		func(f *cruncher.Flags, a *arguments) { f.Mode = named(a, "mode", modes) },
	},
	"struct": {
		func(f cruncher.Flags) any { return f.Struct },
		func(f *cruncher.Flags, a *arguments) { f.Struct = a.text() },
	},
}

// change sets the property that comes next, as far as others let it be changed.
func change(x *cruncher.Any, a *arguments) {
	name := a.text()
	if name == "tracked" {
		if a.bool() {
			x.Track()
		}
		return
	}
	p, ok := properties[name]
	if !ok {
		a.fail(fault.Fail("cruncher", gpu.ErrInvalid, "property ", name))
		return
	}
	f := x.Flags()
	if p.set(&f, a); a.err == nil {
		a.fail(x.SetFlags(f))
	}
}

// array makes one of a name, an element type, a Uint8Array, and properties with their values; it returns the handle.
func (s *server) array(a *arguments) any {
	name, t, memory := a.text(), named(a, "element type", types), a.object()
	set := a.more()
	if a.err != nil {
		return nil
	}
	x, err := cruncher.WrapHost(name, t, gpu.Host{Foreign: memory, Size: memory.Get("byteLength").Int()}, nil)
	if err != nil {
		a.fail(err)
		return nil
	}
	for set.left() {
		change(x, set)
	}
	if set.err != nil {
		_ = x.Close()
		a.fail(set.err)
		return nil
	}
	h := s.handle()
	s.arrays[h] = x
	return h
}

// get returns a property of an array.
func (s *server) get(a *arguments) any {
	x, p := known(a, "the array", s.arrays), named(a, "property", properties)
	if a.err != nil {
		return nil
	}
	return p.get(x.Flags())
}

// set changes it, as far as other properties let it be changed.
func (s *server) set(a *arguments) any {
	if x := known(a, "the array", s.arrays); a.err == nil {
		change(x, a)
	}
	return nil
}

// touch says that the page wrote into the memory of an array.
func (s *server) touch(a *arguments) any {
	if x := known(a, "the array", s.arrays); a.err == nil {
		x.MarkDirty()
	}
	return nil
}

// closeArray waits for calls that use it.
func (s *server) closeArray(a *arguments) work {
	h := a.int()
	x := s.arrays[h]
	delete(s.arrays, h)
	return func(context.Context) (any, error) { return nil, x.Close() }
}

// handles reads those of arrays.
func (s *server) handles(a *arguments) []*cruncher.Any {
	var list []*cruncher.Any
	for a.left() {
		list = append(list, known(a, "the array", s.arrays))
	}
	return list
}

// scalars make those of the element types that they may have, of their bits.
var scalars = map[string]func(name string, bits uint32) cruncher.Param{
	"float32": func(name string, bits uint32) cruncher.Param {
		return cruncher.NewScalar(name, math.Float32frombits(bits))
	},
	"int32":  func(name string, bits uint32) cruncher.Param { return cruncher.NewScalar(name, int32(bits)) },
	"uint32": cruncher.NewScalar[uint32],
}

// params reads parameters: of each a name, "" for an array, whose handle follows. Of a scalar its type and its bits do.
func (s *server) params(a *arguments) cruncher.Param {
	var list []cruncher.Param
	for a.left() {
		name := a.text()
		if name == "" {
			list = append(list, known(a, "the array", s.arrays))
			continue
		}
		if scalar := named(a, "element type", scalars); a.err == nil {
			list = append(list, scalar(name, uint32(a.int())))
		}
	}
	return cruncher.Params(list...)
}
