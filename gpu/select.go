// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Selection is a list of adapters in an order. Its methods return others and leave it as it is, so calls chain:
//
//	devices, err := gpu.Select(ctx).Kernels().Kind(gpu.KindDiscrete).Rank(ctx, nil).Best(2).Open(ctx)
//
// Nothing needs to be checked on the way: [Selection.Adapters] and [Selection.Open] report what went wrong. A selection
// without adapters is [ErrNoAdapter] there, with what there was and what was asked for, unless Plus joins it to another.
type Selection struct {
	list  []*Adapter
	found *findings
	asked string // of what there was
	err   error
}

// findings is what a selection began with.
type findings struct {
	names []string
	errs  []error // of drivers and measurements that failed
}

// Select selects every adapter of every linked driver, in the order of [Adapters]: best first within a driver.
func Select(ctx context.Context) Selection {
	s := Selection{found: new(findings)}
	for a, err := range Adapters(ctx) {
		if err != nil {
			s.found.errs = append(s.found.errs, err)
			continue
		}
		s.list = append(s.list, a)
		s.found.names = append(s.found.names, a.Info.Driver+" "+a.Info.Name)
	}
	s.err = ctx.Err()
	return s
}

// Where keeps the adapters that the function is true for.
func (s Selection) Where(ok func(AdapterInfo) bool) Selection {
	if ok == nil {
		return s.mistake("Where", ErrInvalid, "nil function")
	}
	return s.where("Where(...)", ok)
}

func (s Selection) where(what string, ok func(AdapterInfo) bool) Selection {
	s.asked += " " + what
	all := s.list
	s.list = nil
	for _, a := range all {
		if ok(a.Info) {
			s.list = append(s.list, a)
		}
	}
	return s
}

// Kernels keeps the adapters that compile WGSL. The driver written in Go does not.
func (s Selection) Kernels() Selection {
	return s.where("Kernels()", func(i AdapterInfo) bool { return i.Features.Has(FeatureWGSL) })
}

// Has keeps the adapters with all of the features.
func (s Selection) Has(f Features) Selection {
	return s.where("Has("+strings.Join(f.Names(), ", ")+")", func(i AdapterInfo) bool { return i.Features.Has(f) })
}

// Kind keeps the adapters of one of the kinds. Software adapters are of [KindCPU].
func (s Selection) Kind(kinds ...driver.Kind) Selection {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return s.where("Kind("+strings.Join(names, ", ")+")", func(i AdapterInfo) bool { return slices.Contains(kinds, i.Kind) })
}

// Vendor keeps the adapters whose vendor contains the text, in any case.
func (s Selection) Vendor(text string) Selection {
	return s.contains("Vendor", text, func(i AdapterInfo) string { return i.Vendor })
}

// Name keeps the adapters whose name contains the text, in any case.
func (s Selection) Name(text string) Selection {
	return s.contains("Name", text, func(i AdapterInfo) string { return i.Name })
}

func (s Selection) contains(what, text string, of func(AdapterInfo) string) Selection {
	lower := strings.ToLower(text)
	return s.where(what+"("+strconv.Quote(text)+")", func(i AdapterInfo) bool {
		return strings.Contains(strings.ToLower(of(i)), lower)
	})
}

// Driver keeps the adapters of the driver of this name; see [Drivers].
func (s Selection) Driver(name string) Selection {
	return s.where("Driver("+strconv.Quote(name)+")", func(i AdapterInfo) bool { return i.Driver == name })
}

// ByMemory puts the adapters with the largest buffers first. WebGPU does not tell how much memory an adapter has.
func (s Selection) ByMemory() Selection {
	s.list = slices.Clone(s.list)
	slices.SortStableFunc(s.list, func(a, b *Adapter) int {
		return cmp.Compare(b.Info.Limits.MaxBufferSize, a.Info.Limits.MaxBufferSize)
	})
	return s
}

// Best keeps the first n adapters, or all if there are fewer. A negative n is [ErrInvalid].
func (s Selection) Best(n int) Selection {
	if n < 0 {
		return s.mistake("Best", ErrInvalid, strconv.Itoa(n), " adapters")
	}
	s.asked += " Best(" + strconv.Itoa(n) + ")"
	s.list = s.list[:min(n, len(s.list))]
	return s
}

// At selects the adapters with these numbers, from 0 on, in this order. One may be there several times, and is then opened as
// often. A number that there is no adapter for is [ErrNoAdapter].
func (s Selection) At(numbers ...int) Selection {
	all := s.list
	s.list = nil
	for _, n := range numbers {
		if n < 0 || n >= len(all) {
			var names []string
			for i, a := range all {
				names = append(names, strconv.Itoa(i)+" "+a.Info.Name)
			}
			return s.mistake("At", ErrNoAdapter, strconv.Itoa(n), "; there are: ", strings.Join(names, "; "))
		}
		s.list = append(s.list, all[n])
	}
	s.asked += " At(...)"
	return s
}

// Plus appends the adapters of another selection. What is in both is then there twice.
func (s Selection) Plus(other Selection) Selection {
	if s.err == nil {
		s.err = other.err
	}
	s.list = slices.Concat(s.list, other.list)
	if s.found == nil {
		s.found = other.found
	}
	s.asked += " Plus(" + strings.TrimSpace(other.asked) + ")"
	return s
}

// Adapters returns the adapters, of which there is at least one.
func (s Selection) Adapters() ([]*Adapter, error) {
	if s.err != nil {
		return nil, s.err
	}
	if len(s.list) > 0 {
		return slices.Clone(s.list), nil
	}
	var why []string
	if s.found != nil && len(s.found.names) > 0 {
		why = append(why, "nothing fits"+s.asked+"; there are: "+strings.Join(s.found.names, "; "))
	}
	if s.found != nil && len(s.found.errs) > 0 {
		why = append(why, errors.Join(s.found.errs...).Error())
	}
	return nil, fail("Select", ErrNoAdapter, strings.Join(why, "; "))
}

// Open opens a device of each adapter, in the order of the selection. Of the options, those that choose an adapter have no
// effect. If one cannot be opened, those that were are closed.
func (s Selection) Open(ctx context.Context, opts ...Option) ([]*Device, error) {
	list, err := s.Adapters()
	if err != nil {
		return nil, err
	}
	var devices []*Device
	for _, a := range list {
		d, err := a.Open(ctx, opts...)
		if err != nil {
			for _, d := range devices {
				_ = d.Close() // nothing was done with it
			}
			return nil, err
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// mistake makes the selection an error, unless it is one already.
func (s Selection) mistake(op string, err error, detail ...string) Selection {
	if s.err == nil {
		s.err = fail(op, err, detail...)
	}
	s.list = nil
	return s
}
