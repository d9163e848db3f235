// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Stage is a part of a [Pipeline]: devices, kernels that run on them, and arrays. Inputs go up before the kernels run and outputs come
// back after them; hidden arrays stay on the devices, for what is kept from one push to the next. Kernels know all of them by
// their names. A stage is put together by one goroutine; once it is part of a pipeline it does not change.
//
// Inputs go up whole to each device, or with [Any.SetPartialRead] each device's part, and kernels cannot write them. Flags are
// those of the call that adds the array.
//
// It is ClPipelineStage of Cekirdekler, file ClPipeline.cs, but that hidden arrays are right on several devices, too.
type Stage struct {
	cr      *Cruncher
	runs    []launchOf
	inits   []launchOf
	inputs  []param
	hidden  []param // and scalars
	outputs []param
	prev    *Stage
	next    *Stage
	used    bool
}

// launchOf is kernels with their range.
type launchOf struct {
	names string
	r     Range
}

// NewStage makes a stage for kernels of the source on the devices, which stay the caller's. One may be there twice, and in
// several stages. The context is as for [New].
func NewStage(ctx context.Context, devices []*gpu.Device, wgsl string, opts ...Option) (*Stage, error) {
	cr, err := New(ctx, devices, wgsl, opts...)
	if err != nil {
		return nil, err
	}
	return &Stage{cr: cr}, nil
}

// Cruncher returns what computes the stage, for its statistics and to fetch hidden arrays between pushes. The pipeline closes it.
func (s *Stage) Cruncher() *Cruncher {
	if s == nil {
		return nil
	}
	return s.cr
}

// AddKernels adds kernels, named as for [Cruncher.Compute], that run at each push over the range, after those added before.
func (s *Stage) AddKernels(kernels string, r Range) error {
	return s.addKernels("AddKernels", &s.runs, kernels, r)
}

// AddInitializers adds kernels that run once, when the pipeline is made.
func (s *Stage) AddInitializers(kernels string, r Range) error {
	return s.addKernels("AddInitializers", &s.inits, kernels, r)
}

func (s *Stage) addKernels(op string, to *[]launchOf, kernels string, r Range) error {
	if err := s.open(op); err != nil {
		return err
	}
	names := kernel.SplitNames(kernels)
	if len(names) == 0 {
		return fail(op, ErrKernel, "none is named")
	}
	for _, name := range names {
		if _, err := s.cr.source.Kernel(name); err != nil {
			return err
		}
	}
	r.Inner = slices.Clone(r.Inner)
	checked := r
	if err := checked.check(); err != nil {
		return err
	}
	*to = append(*to, launchOf{kernels, r})
	return nil
}

func (s *Stage) open(op string) error {
	if s == nil || s.cr == nil {
		return fail(op, gpu.ErrInvalid, "no stage: NewStage makes one")
	}
	if s.used {
		return fail(op, gpu.ErrInvalid, "the stage is part of a pipeline")
	}
	return nil
}

// AddInputs adds arrays that get data: those of the stage before in their order, or in the first stage those that are pushed.
func (s *Stage) AddInputs(arrays ...Param) error {
	return s.addArrays("AddInputs", &s.inputs, arrays, func(p *param) error {
		if p.array == nil || p.flags.WriteOnly {
			return fail("AddInputs", gpu.ErrInvalid, p.name(), " is a scalar, or write-only")
		}
		p.flags.Read = !p.flags.PartialRead
		p.flags.ReadOnly = true
		p.flags.lock(p.flags)
		return nil
	})
}

// AddHidden adds arrays that stay on the devices, zero at first. Scalars may be among them.
func (s *Stage) AddHidden(arrays ...Param) error {
	return s.addArrays("AddHidden", &s.hidden, arrays, func(p *param) error {
		f := &p.flags
		f.Read, f.PartialRead, f.Write, f.WriteAll = false, false, false, false
		return nil
	})
}

// AddOutputs adds arrays that results come back to.
func (s *Stage) AddOutputs(arrays ...Param) error {
	return s.addArrays("AddOutputs", &s.outputs, arrays, func(p *param) error {
		if p.array == nil || p.flags.ReadOnly || p.array.host.ReadOnly {
			return fail("AddOutputs", gpu.ErrInvalid, p.name(), " is a scalar, or read-only")
		}
		p.flags.Read, p.flags.PartialRead, p.flags.Write = false, false, true
		return nil
	})
}

func (s *Stage) addArrays(op string, to *[]param, arrays []Param, fit func(*param) error) error {
	if err := s.open(op); err != nil {
		return err
	}
	added, err := gather(arrays)
	if err != nil {
		return err
	}
	for i := range added {
		if err := fit(&added[i]); err != nil {
			return err
		}
	}
	all := &Group{list: slices.Concat(s.inputs, s.hidden, s.outputs, added)}
	if _, err := gather([]Param{all}); err != nil {
		return err
	}
	*to = append(*to, added...)
	return nil
}

// PrependTo puts the stage before another one: its outputs become that one's inputs. There must be as many, or one output for
// all inputs.
func (s *Stage) PrependTo(next *Stage) error { return link("PrependTo", s, next) }

// AppendTo puts the stage after another one.
func (s *Stage) AppendTo(prev *Stage) error { return link("AppendTo", prev, s) }

func link(op string, a, b *Stage) error {
	if err := a.open(op); err != nil {
		return err
	}
	if err := b.open(op); err != nil {
		return err
	}
	if a.next != nil || b.prev != nil {
		return fail(op, gpu.ErrInvalid, "a chain has no branches")
	}
	for s := a; s != nil; s = s.prev {
		if s == b {
			return fail(op, gpu.ErrInvalid, "a chain is no ring")
		}
	}
	a.next, b.prev = b, a
	return nil
}

// bank is the inputs or the outputs of a stage, once.
type bank struct {
	arrays []*Any
	full   bool // of data, or of results
}

// own makes the arrays as kernels see them over the caller's memory, which is looked at anew when said so.
func own(list []param) bank {
	var b bank
	for i := range list {
		b.arrays = append(b.arrays, list[i].array.twin(list[i].array.host))
	}
	return b
}

// buffers makes the arrays over new memory.
func buffers(list []param) bank {
	var b bank
	for i := range list {
		a := list[i].array
		size := a.n * a.t.Size()
		b.arrays = append(b.arrays, a.twin(gpu.HostBytes(make([]byte, (size+7)/8*8)[:size])))
	}
	return b
}

// twin makes an array that kernels do not know from a, over other host memory.
func (a *Any) twin(host gpu.Host) *Any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Any{&body{
		name: a.name, t: a.t, n: a.n, host: host, record: a.record,
		flags: a.flags, tracked: true, version: 1,
	}}
}

func (b *bank) touch() {
	for _, a := range b.arrays {
		a.MarkDirty()
	}
}

// group is the parameters of the stage's kernels. Of several launches none brings outputs back, as long as that is possible.
func (s *Stage) group(in, out *bank, only bool) *Group {
	g := &Group{}
	for i, p := range s.inputs {
		p.array = in.arrays[i]
		g.list = append(g.list, p)
	}
	g.list = append(g.list, s.hidden...)
	for i, p := range s.outputs {
		p.array = out.arrays[i]
		p.flags.Write = only || p.flags.WriteAll
		g.list = append(g.list, p)
	}
	return g
}

// compute runs kernels of the stage on banks. If a device is lost with what kernels before the last ones wrote, all of them run
// again.
func (s *Stage) compute(ctx context.Context, list []launchOf, in, out *bank) error {
	launches, whole := s.launches(list), false
	kept := slices.Clone(out.arrays)
	for _, p := range s.hidden {
		if p.array != nil {
			kept = append(kept, p.array)
		}
	}
	for _, p := range s.outputs {
		whole = whole || p.flags.WriteAll // comes back each time
	}
	if len(launches) < 2 || whole {
		return s.attempt(ctx, launches, in, out)
	}
	s.cr.hold(kept)
	defer s.cr.release(kept)
	for again := false; ; again = true {
		var err error
		alive := s.cr.living()
		if again {
			err = s.cr.rewind(ctx, kept)
		}
		if err == nil {
			err = s.attempt(ctx, launches, in, out)
		}
		if err == nil || s.cr.living() >= alive {
			return err
		}
	}
}

// launches joins kernels over the same range: what goes up and comes back does so once.
func (s *Stage) launches(list []launchOf) []launchOf {
	var joined []launchOf
	for _, l := range list {
		if n := len(joined); n > 0 && sameRange(joined[n-1].r, l.r) {
			joined[n-1].names += " " + l.names
		} else {
			joined = append(joined, l)
		}
	}
	return joined
}

func (s *Stage) attempt(ctx context.Context, launches []launchOf, in, out *bank) error {
	for id, l := range launches {
		if err := s.cr.Compute(ctx, id, l.names, l.r, s.group(in, out, len(launches) == 1)); err != nil {
			return err
		}
	}
	return s.cr.Fetch(ctx, out.arrays...) // what several wrote comes back at once
}

func sameRange(a, b Range) bool {
	same := slices.Equal(a.Inner, b.Inner) && a.Repeat <= 1 && b.Repeat <= 1 && a.SyncKernel == "" && b.SyncKernel == ""
	a.Inner, b.Inner = nil, nil
	return same && a.Global == b.Global && a.Local == b.Local && a.Offset == b.Offset &&
		a.Strict == b.Strict && a.Blobs == b.Blobs && a.TransferOnly == b.TransferOnly
}

// overlaps reports whether two arrays share host memory.
func overlaps(a, b *Any) bool {
	x, y := a.host.Bytes, b.host.Bytes
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return p < q+uintptr(len(y)) && q < p+uintptr(len(x))
}
