// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
)

// Param is what a kernel can be called with: an [Array], an [Any], a scalar, or a [Group] of them.
type Param interface {
	// params appends the parameters, with the flags that arrays have now.
	params(list []param) ([]param, error)
}

// param is an array with the flags it was named with, or a scalar.
type param struct {
	array *Any
	as    string // what the kernels call the array, where it is not its name
	flags Flags
	value Scalar
}

func (a *Array[T]) params(list []param) ([]param, error) {
	if a == nil {
		return nil, fail("Params", gpu.ErrInvalid, "nil array")
	}
	return a.Any.params(list)
}

func (a *Any) params(list []param) ([]param, error) {
	if err := a.usable("Params"); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(list, param{array: a, flags: a.flags}), nil
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
		return nil, fail("As", ErrName, a.name)
	}
	list, err := a.array.params(list)
	if err == nil {
		list[len(list)-1].as = a.name
	}
	return list, err
}

// Scalar is a number that kernels know under a name. It goes to the devices with each call.
type Scalar struct {
	name string
	t    Type
	bits uint32
}

// NewScalar makes a scalar.
func NewScalar[T float32 | int32 | uint32](name string, v T) Scalar {
	s := Scalar{name: name, t: typeOf[T]()}
	switch v := any(v).(type) {
	case float32:
		s.bits = math.Float32bits(v)
	case int32:
		s.bits = uint32(v)
	case uint32:
		s.bits = v
	}
	return s
}

func (s Scalar) params(list []param) ([]param, error) {
	if !identifier(s.name) {
		return nil, fail("Params", ErrName, s.name)
	}
	return append(list, param{value: s}), nil
}

// Group is a list of parameters. The flags of its arrays are those that they had when they were put into it.
type Group struct {
	list []param
	err  error
}

// Params makes a group. Kernels, those of complete modules too, know its members by their names; the order decides no more than
// which device computes where an array has [Any.SetWriteAll].
func Params(ps ...Param) *Group { return new(Group).Next(ps...) }

// Next returns a group with more parameters; groups among them are taken apart.
func (g *Group) Next(ps ...Param) *Group {
	next := &Group{}
	if g != nil {
		next.list, next.err = append(next.list, g.list...), g.err
	}
	for _, p := range ps {
		if next.err != nil {
			break
		}
		if p == nil {
			next.err = fail("Params", gpu.ErrInvalid, "nil parameter")
			break
		}
		var list []param
		if list, next.err = p.params(next.list); next.err == nil {
			next.list = list
		}
	}
	return next
}

func (g *Group) params(list []param) ([]param, error) {
	if g == nil {
		return nil, fail("Params", gpu.ErrInvalid, "nil group")
	}
	return append(list, g.list...), g.err
}

// arrays lists the arrays of a group that holds nothing else.
func (g *Group) arrays() []*Any {
	var list []*Any
	for i := range g.list {
		list = append(list, g.list[i].array)
	}
	return list
}

// Compute is [Cruncher.Compute] with the group.
func (g *Group) Compute(ctx context.Context, cr *Cruncher, id int, kernels string, r Range) error {
	return cr.Compute(ctx, id, kernels, r, g)
}

// Compute is [Cruncher.Compute] with the array alone.
func (a *Any) Compute(ctx context.Context, cr *Cruncher, id int, kernels string, r Range) error {
	return cr.Compute(ctx, id, kernels, r, a)
}

// Next returns a group of the array and more parameters.
func (a *Any) Next(ps ...Param) *Group { return Params(a).Next(ps...) }

// gather checks that every name and every array is there once.
func gather(ps []Param) ([]param, error) {
	g := Params(ps...)
	if g.err != nil {
		return nil, g.err
	}
	seen, arrays := map[string]bool{}, map[*body]bool{}
	for _, p := range g.list {
		name := p.name()
		if seen[name] {
			return nil, fail("Compute", ErrName, name, " is there twice")
		}
		seen[name] = true
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

// name returns what kernels call the parameter.
func (p *param) name() string {
	if p.as != "" {
		return p.as
	}
	if p.array != nil {
		return p.array.name
	}
	return p.value.name
}
