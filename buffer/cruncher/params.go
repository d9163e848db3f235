// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Param is what a kernel can be called with: an [Array], an [Any], a scalar of [NewScalar], or several of them, see [Params].
type Param interface {
	// params appends the parameters, with the flags that arrays have now.
	params(list []param) ([]param, error)
}

// param is an array with the flags it was named with, or a scalar.
type param struct {
	name      string // what the kernels call it
	array     *Any   // nil of a scalar
	flags     Flags
	ifChanged bool // the array comes back from kernels only that may change it
	scalar    kernel.Argument
}

func (a *Array[T]) params(list []param) ([]param, error) { return a.any().params(list) }

func (a *Any) params(list []param) ([]param, error) {
	if err := a.usable("Params"); err != nil {
		return nil, err
	}
	return append(list, param{name: a.name, array: a, flags: a.Flags()}), nil
}

// As is the array under another name, for calls that exchange arrays:
//
//	err := cr.Compute(ctx, 1, "step", r, a.As("src"), b.As("dst"))
//	err = cr.Compute(ctx, 1, "step", r, b.As("src"), a.As("dst"))
func (a *Any) As(name string) Param { return alias{a, name} }

type alias struct {
	array *Any
	name  string
}

func (a alias) params(list []param) ([]param, error) {
	if !identifier(a.name) {
		return nil, fail("As", ErrName, fault.Short(a.name))
	}
	list, err := a.array.params(list)
	if err == nil {
		list[len(list)-1].name = a.name
	}
	return list, err
}

// NewScalar makes a number that kernels know under a name. It goes to the devices with each call.
func NewScalar[T float32 | int32 | uint32](name string, v T) Param {
	if !identifier(name) {
		return &group{err: fail("NewScalar", ErrName, fault.Short(name))}
	}
	bits := *(*uint32)(unsafe.Pointer(&v))
	return &group{list: []param{{name: name, scalar: kernel.Argument{Name: name, Type: typeOf[T](), Bits: []uint32{bits}}}}}
}

// group is a list of parameters.
type group struct {
	list []param
	err  error
}

// Params joins parameters to one; groups among them are taken apart. The flags of arrays are those that they have now. Kernels, those
// of complete modules too, know the parameters by their names; the order decides no more than which device computes where an array
// has WriteAll.
func Params(ps ...Param) Param { return newGroup(ps...) }

func newGroup(ps ...Param) *group {
	g := new(group)
	for _, p := range ps {
		if p == nil {
			return &group{err: fail("Params", gpu.ErrInvalid, "nil parameter")}
		}
		if g.list, g.err = p.params(g.list); g.err != nil {
			return g
		}
	}
	return g
}

func (g *group) params(list []param) ([]param, error) {
	return append(list, g.list...), g.err
}

// Compute is [Cruncher.Compute] with the array alone.
func (a *Any) Compute(ctx context.Context, cr *Cruncher, id int, kernels string, r Range) error {
	return cr.Compute(ctx, id, kernels, r, a)
}

// gather checks that every name and every array is there once.
func gather(ps []Param) ([]param, error) {
	g := newGroup(ps...)
	if g.err != nil {
		return nil, g.err
	}
	seen, arrays := map[string]bool{}, map[*body]bool{}
	for _, p := range g.list {
		if seen[p.name] {
			return nil, fail("Compute", ErrName, p.name, " is there twice")
		}
		seen[p.name] = true
		if p.array != nil {
			if arrays[p.array.body] {
				return nil, fail("Compute", ErrName, p.array.name, " is there under two names")
			}
			arrays[p.array.body] = true
			if err := p.array.usable("Compute"); err != nil { // closed since it was put into a group
				return nil, err
			}
		}
	}
	return g.list, nil
}
