// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The element types and the modes of arrays, in the order of web/src/crunch-array.mjs.
var (
	types = []dtype.Type{
		dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, cruncher.Bytes,
	}
	modes = []kernel.Mode{kernel.Widened, kernel.Packed, kernel.Atomic}
)

// fields returns the flags of an array in the order of web/src/crunch-array.mjs.
func fields(f *cruncher.Flags) []any {
	return []any{
		&f.Read, &f.PartialRead, &f.Write, &f.WriteAll, &f.ReadOnly, &f.WriteOnly, &f.ZeroCopy, &f.ElementsPerItem, &f.Halo, &f.Mode, &f.Struct,
	}
}

// change reads a flag and its value and sets it, as far as others let it be changed. After the flags comes whether to track the
// array.
func change(x *cruncher.Any, r *page.Reader) {
	f := x.Flags()
	all := append(fields(&f), nil)
	switch p := all[r.Index(len(all))].(type) {
	case *bool:
		*p = r.Int() != 0
	case *int:
		*p = r.Int()
	case *kernel.Mode:
		*p = modes[r.Index(len(modes))]
		r.Word()
	case *string:
		*p = r.Text()
		r.Word()
	default:
		if r.Int() != 0 {
			x.Track()
		}
		return
	}
	page.Check(x.SetFlags(f))
}

// array makes one of memory and of properties with their values.
func (s *server) array(r *page.Reader) any {
	h, name, t := r.Word(), r.Text(), types[r.Index(len(types))]
	x := page.Must(cruncher.WrapHost(name, t, gpu.Host{Foreign: r.Object(), Size: int(r.Word())}, nil))
	err := page.Guard(func() {
		for r.Left() {
			change(x, r)
		}
	})
	if err != nil {
		_ = x.Close()
		page.Check(err)
	}
	s.arrays[h] = x
	return nil
}

func (s *server) arrayOf(r *page.Reader) *cruncher.Any { return page.Handle(r, "the array", s.arrays) }

// get returns a flag of an array.
func (s *server) get(r *page.Reader) any {
	f := s.arrayOf(r).Flags()
	all := fields(&f)
	switch p := all[r.Index(len(all))].(type) {
	case *bool:
		return *p
	case *int:
		return *p
	case *kernel.Mode:
		return slices.Index(modes, *p)
	case *string:
		return *p
	}
	return nil
}

// set changes a flag.
func (s *server) set(r *page.Reader) any {
	change(s.arrayOf(r), r)
	return nil
}

// dirty says that the page wrote into the memory of an array.
func (s *server) dirty(r *page.Reader) any {
	s.arrayOf(r).MarkDirty()
	return nil
}

// closeArray waits for calls that use it.
func (s *server) closeArray(r *page.Reader) page.Work {
	h := r.Word()
	x := s.arrays[h]
	delete(s.arrays, h)
	return func(context.Context) (any, error) { return nil, x.Close() }
}

// params reads parameters. A word says what each is: 0 an array, whose handle follows, or 1 + the element type of a scalar,
// whose name and bits follow.
func (s *server) params(r *page.Reader) cruncher.Param {
	var list []cruncher.Param
	for r.Left() {
		kind := r.Word()
		if kind == 0 {
			list = append(list, s.arrayOf(r))
			continue
		}
		switch name, bits := r.Text(), r.Word(); kind {
		case 1:
			list = append(list, cruncher.NewScalar(name, math.Float32frombits(bits)))
		case 2:
			list = append(list, cruncher.NewScalar(name, int32(bits)))
		default:
			list = append(list, cruncher.NewScalar(name, bits))
		}
	}
	return cruncher.Params(list...)
}
