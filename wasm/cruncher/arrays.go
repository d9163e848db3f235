// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"math"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// types are the element types in the order of web/src/crunch-array.mjs.
var types = []dtype.Type{
	dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, cruncher.Bytes,
}

// property reads which flag is meant, in the order of web/src/crunch-array.mjs. It is nil for the one after the flags, which says
// whether to track the array.
func property(f *cruncher.Flags, r *page.Reader) any {
	list := []any{
		&f.Read, &f.PartialRead, &f.Write, &f.WriteAll, &f.ReadOnly, &f.WriteOnly, &f.ZeroCopy, &f.ElementsPerItem, &f.Halo, &f.Mode, &f.Struct, nil,
	}
	return list[r.Index(len(list))]
}

// change reads a flag and its value and sets it, as far as others let it be changed.
func (s *server) change(x *cruncher.Any, r *page.Reader) {
	f := x.Flags()
	flag, value := property(&f, r), r.Int()
	switch p := flag.(type) {
	case *bool:
		*p = value != 0
	case *int:
		*p = value
	case *kernel.Mode:
		*p = kernel.Mode(value)
	case *string:
		*p = s.Text(uint32(value))
	default:
		if value != 0 {
			x.Track()
		}
	}
	page.Check(x.SetFlags(f))
}

// array makes one of memory and of properties with their values.
func (s *server) array(r *page.Reader) any {
	h, name, t := r.Word(), r.Text(), types[r.Index(len(types))]
	x := page.Must(cruncher.WrapHost(name, t, gpu.Host{Foreign: r.Object(), Size: int(r.Word())}, nil))
	err := page.Guard(func() {
		for r.Left() {
			s.change(x, r)
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
	switch p := property(&f, r).(type) {
	case *bool:
		return *p
	case *int:
		return *p
	case *kernel.Mode:
		return int(*p)
	case *string:
		return *p
	}
	return nil
}

// params reads parameters. A word says what each is: 0 an array, whose handle follows, or 1 + the element type of a scalar,
// whose name and bits follow.
func (s *server) params(r *page.Reader) (list []cruncher.Param) {
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
	return list
}
