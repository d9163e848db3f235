// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Stage describes a stage of a [Pipeline] or of a [DevicePipeline]: kernels and arrays, which the kernels use by name. The pipeline
// uses the flags that the arrays have when it is made.
type Stage struct {
	// Kernels run at each step of the pipeline, one after the other.
	Kernels []Step
	// Inputs get data before the kernels run. Kernels cannot write them.
	Inputs []Param
	// Hidden arrays keep values on the devices from one step to the next, zeros at first. Scalars belong here, too.
	Hidden []Param
	// Outputs are the arrays of the results.
	Outputs []Param

	// Devices compute the stage of a Pipeline, with kernels of the source WGSL; see [New]. The pipeline does not close them. A device
	// may be listed twice, and in several stages.
	Devices []*gpu.Device
	WGSL    string
	Options []Option
	// Initializers run once, when a Pipeline is made.
	Initializers []Step
}

// Step is kernels, named as for [Cruncher.Compute], with their range.
type Step struct {
	Kernels string
	Range   Range
}

// stage is a stage of a pipeline with its double buffers: of two banks it works on one while the other moves.
type stage struct {
	cr                      *Cruncher
	inits, runs             []Step
	inputs, hidden, outputs []param // with the flags that follow from what they are
	in, out                 [2]*bank
	stopped                 bool // inputs do not go up
}

// fill checks what the stage is to be, and sets it.
func (l *stage) fill(op string, s *Stage) error {
	if _, err := gather(slices.Concat(s.Inputs, s.Hidden, s.Outputs)); err != nil {
		return err
	}
	l.inputs, _ = gather(s.Inputs)
	l.hidden, _ = gather(s.Hidden)
	l.outputs, _ = gather(s.Outputs)
	for i := range l.inputs {
		in := &l.inputs[i]
		if in.array == nil || in.flags.WriteOnly {
			return fail(op, gpu.ErrInvalid, in.name, " is a scalar, or write-only")
		}
		in.flags.Read, in.flags.ReadOnly = !in.flags.PartialRead, true
		in.flags.lock(in.flags)
	}
	for i := range l.hidden {
		f := &l.hidden[i].flags
		f.Read, f.PartialRead, f.Write, f.WriteAll = false, false, false, false
	}
	for i := range l.outputs {
		out := &l.outputs[i]
		switch {
		case out.array == nil:
			return fail(op, gpu.ErrInvalid, out.name, " is a scalar")
		case out.array.host.ReadOnly:
			return fail(op, gpu.ErrReadOnly, out.name)
		case out.flags.ReadOnly:
			return fail(op, gpu.ErrInvalid, out.name, " is read-only")
		}
		out.flags.Read, out.flags.PartialRead, out.flags.Write = false, false, true
	}
	var err error
	if l.inits, err = steps(op, l.cr.source, s.Initializers); err != nil {
		return err
	}
	if l.runs, err = steps(op, l.cr.source, s.Kernels); err == nil && len(l.runs) == 0 {
		err = fail(op, kernel.ErrKernel, "a stage without kernels")
	}
	return err
}

// steps checks steps against a source and copies them.
func steps(op string, source *kernel.Source, list []Step) ([]Step, error) {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		names := splitNames(s.Kernels)
		if len(names) == 0 {
			return nil, fail(op, kernel.ErrKernel, "none is named")
		}
		for _, name := range names {
			if _, err := source.Local(name); err != nil {
				return nil, err
			}
		}
		s.Range.Inner = slices.Clone(s.Range.Inner)
		if err := s.Range.check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// bank is the inputs or the outputs of a stage, once.
type bank struct {
	arrays []*Any
	full   bool // of data, or of results
}

// newBank makes a bank of arrays like those of a list: over the same host memory, or over zeros of their own.
func newBank(list []param, own bool) *bank {
	b := new(bank)
	for i := range list {
		a := list[i].array
		host := a.host
		if own {
			host = gpu.HostBytes(make([]byte, (host.Size+7)/8*8)[:host.Size])
		}
		b.arrays = append(b.arrays, &Any{&body{name: a.name, t: a.t, n: a.n, host: host, record: a.record, tracked: true, version: 1}})
	}
	return b
}

// touch says that the memory of the arrays has changed.
func (b *bank) touch() {
	for _, a := range b.arrays {
		a.MarkDirty()
	}
}

// receive copies data into the arrays, from others or from one for all.
func (b *bank) receive(from []*Any) {
	for i, a := range b.arrays {
		copy(a.host.Bytes, from[min(i, len(from)-1)].host.Bytes)
	}
	b.touch()
	b.full = true
}

// deliver copies results to arrays: to all or to none.
func (b *bank) deliver(to []*Any) (err error) {
	write := make([]func([]byte), len(to))
	for i, a := range to {
		if write[i], err = a.host.Writer(); err != nil {
			return err
		}
	}
	for i, a := range to {
		write[i](b.arrays[i].host.Bytes)
		a.MarkDirty() // for other crunchers
	}
	b.full = false
	return nil
}

// group is the parameters of the stage's kernels.
func (l *stage) group(in, out *bank) *group {
	g := &group{}
	for i, p := range l.inputs {
		p.array = in.arrays[i]
		p.flags.Read = p.flags.Read && !l.stopped
		g.list = append(g.list, p)
	}
	g.list = append(g.list, l.hidden...)
	for i, p := range l.outputs {
		p.array, p.ifChanged = out.arrays[i], true
		g.list = append(g.list, p)
	}
	return g
}

// compute runs steps of the stage on banks. Outputs come back after each step that may change them, so that nothing depends on what
// only one device has.
func (l *stage) compute(ctx context.Context, list []Step, in, out *bank) error {
	for id, s := range list {
		if err := l.cr.Compute(ctx, id, s.Kernels, s.Range, l.group(in, out)); err != nil {
			return err
		}
	}
	return nil
}
