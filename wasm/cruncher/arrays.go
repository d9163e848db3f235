// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// types are the element types by name.
var types = map[string]cruncher.Type{
	"float32": cruncher.Float32, "int32": cruncher.Int32, "uint32": cruncher.Uint32, "int8": cruncher.Int8,
	"uint8": cruncher.Uint8, "int16": cruncher.Int16, "uint16": cruncher.Uint16, "bytes": cruncher.Bytes,
}

// modes are those of arrays of small elements.
var modes = map[string]cruncher.Mode{"widened": cruncher.Widened, "packed": cruncher.Packed, "atomic": cruncher.Atomic}

// property is something of an array that the page sees and, unless set is nil, changes.
type property struct {
	get func(x *cruncher.Any) any
	set func(x *cruncher.Any, a *arguments)
}

func flag(get func(x *cruncher.Any) bool, set func(x *cruncher.Any, on bool) *cruncher.Any) property {
	return property{
		func(x *cruncher.Any) any { return get(x) },
		func(x *cruncher.Any, a *arguments) {
			if on := a.bool(); a.err == nil {
				set(x, on)
			}
		},
	}
}

func count(get func(x *cruncher.Any) int, set func(x *cruncher.Any, n int) *cruncher.Any) property {
	return property{
		func(x *cruncher.Any) any { return get(x) },
		func(x *cruncher.Any, a *arguments) {
			if n := a.int(); a.err == nil {
				set(x, n)
			}
		},
	}
}

// properties by name.
var properties = map[string]property{
	"read":            flag((*cruncher.Any).Read, (*cruncher.Any).SetRead),
	"partialRead":     flag((*cruncher.Any).PartialRead, (*cruncher.Any).SetPartialRead),
	"write":           flag((*cruncher.Any).Write, (*cruncher.Any).SetWrite),
	"writeAll":        flag((*cruncher.Any).WriteAll, (*cruncher.Any).SetWriteAll),
	"readOnly":        flag((*cruncher.Any).ReadOnly, (*cruncher.Any).SetReadOnly),
	"writeOnly":       flag((*cruncher.Any).WriteOnly, (*cruncher.Any).SetWriteOnly),
	"zeroCopy":        flag((*cruncher.Any).ZeroCopy, (*cruncher.Any).SetZeroCopy),
	"elementsPerItem": count((*cruncher.Any).ElementsPerItem, (*cruncher.Any).SetElementsPerItem),
	"halo":            count((*cruncher.Any).Halo, (*cruncher.Any).SetHalo),
	"mode": {
		func(x *cruncher.Any) any {
			for name, mode := range modes {
				if mode == x.Mode() {
					return name
				}
			}
			return nil
		},
		func(x *cruncher.Any, a *arguments) {
			if mode := named(a, "mode", modes); a.err == nil {
				x.SetMode(mode)
			}
		},
	},
	"struct": {
		func(x *cruncher.Any) any { return x.Struct() },
		func(x *cruncher.Any, a *arguments) {
			if name := a.text(); a.err == nil {
				x.SetStruct(name)
			}
		},
	},
	"tracked": {nil, func(x *cruncher.Any, a *arguments) {
		if a.bool() {
			x.Track()
		}
	}},
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
		named(set, "property", properties).set(x, set)
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
	return p.get(x)
}

// set changes it, as far as other properties let it be changed.
func (s *server) set(a *arguments) any {
	x, p := known(a, "the array", s.arrays), named(a, "property", properties)
	if a.err == nil {
		p.set(x, a)
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
var scalars = map[string]func(name string, bits uint32) cruncher.Scalar{
	"float32": func(name string, bits uint32) cruncher.Scalar {
		return cruncher.NewScalar(name, math.Float32frombits(bits))
	},
	"int32":  func(name string, bits uint32) cruncher.Scalar { return cruncher.NewScalar(name, int32(bits)) },
	"uint32": cruncher.NewScalar[uint32],
}

// params reads parameters: of each a name, "" for an array, whose handle follows. Of a scalar its type and its bits do.
func (s *server) params(a *arguments) *cruncher.Group {
	g := cruncher.Params()
	for a.left() {
		name := a.text()
		if name == "" {
			g = g.Next(known(a, "the array", s.arrays))
			continue
		}
		if scalar := named(a, "element type", scalars); a.err == nil {
			g = g.Next(scalar(name, uint32(a.int())))
		}
	}
	return g
}
