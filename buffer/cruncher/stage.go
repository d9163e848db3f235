// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Stage describes a stage of a [Pipeline] or of a [DevicePipeline]: kernels and arrays, which the kernels know by their names. The
// flags of the arrays are those that they have when the pipeline is made.
type Stage struct {
	// Kernels run at each step of the pipeline, one after the other.
	Kernels []Step
	// Inputs get data before the kernels run, which cannot write them.
	Inputs []Param
	// Hidden arrays stay on the devices, zero at first, for what is kept from one step to the next. Scalars are among them.
	Hidden []Param
	// Outputs are the arrays of the results.
	Outputs []Param

	// Devices compute the stage, in a Pipeline, with kernels of WGSL; see [New]. They stay the caller's. One may be there
	// twice, and in several stages.
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

// stageParams are the parameters of a stage's kernels, with the flags that follow from what they are there.
type stageParams struct {
	inputs, hidden, outputs []param
}

func (s *Stage) params(op string) (p stageParams, err error) {
	if _, err := gather(slices.Concat(s.Inputs, s.Hidden, s.Outputs)); err != nil {
		return p, err
	}
	p.inputs, _ = gather(s.Inputs)
	p.hidden, _ = gather(s.Hidden)
	p.outputs, _ = gather(s.Outputs)
	for i := range p.inputs {
		in := &p.inputs[i]
		if in.array == nil || in.flags.WriteOnly {
			return p, fail(op, gpu.ErrInvalid, in.name(), " is a scalar, or write-only")
		}
		in.flags.Read, in.flags.ReadOnly = !in.flags.PartialRead, true
		in.flags.lock(in.flags)
	}
	for i := range p.hidden {
		f := &p.hidden[i].flags
		f.Read, f.PartialRead, f.Write, f.WriteAll = false, false, false, false
	}
	for i := range p.outputs {
		out := &p.outputs[i]
		switch {
		case out.array == nil:
			return p, fail(op, gpu.ErrInvalid, out.name(), " is a scalar")
		case out.array.host.ReadOnly:
			return p, fail(op, gpu.ErrReadOnly, out.name())
		case out.flags.ReadOnly:
			return p, fail(op, gpu.ErrInvalid, out.name(), " is read-only")
		}
		out.flags.Read, out.flags.PartialRead, out.flags.Write = false, false, true
	}
	return p, nil
}

// steps checks steps against a source and joins those over the same range: what moves for them does so once.
func steps(op string, source *kernel.Source, list []Step) ([]Step, error) {
	var joined []Step
	for _, s := range list {
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
		checked := s.Range
		if err := checked.check(); err != nil {
			return nil, err
		}
		if n := len(joined); n > 0 && sameRange(joined[n-1].Range, s.Range) {
			joined[n-1].Kernels += " " + s.Kernels
		} else {
			joined = append(joined, s)
		}
	}
	return joined, nil
}

func sameRange(a, b Range) bool {
	same := slices.Equal(a.Inner, b.Inner) && a.Repeat <= 1 && b.Repeat <= 1 && a.SyncKernel == "" && b.SyncKernel == ""
	return same && a.Global == b.Global && a.Local == b.Local && a.Offset == b.Offset &&
		a.Strict == b.Strict && a.Blobs == b.Blobs && a.TransferOnly == b.TransferOnly
}

// bank is the inputs or the outputs of a stage, once.
type bank struct {
	arrays []*Any
	full   bool // of data, or of results
}

// over makes a bank over the arrays' own memory.
func over(list []param) *bank {
	b := new(bank)
	for i := range list {
		b.arrays = append(b.arrays, list[i].array.over(list[i].array.host))
	}
	return b
}

// buffers makes a bank over new memory.
func buffers(list []param) *bank {
	b := new(bank)
	for i := range list {
		b.arrays = append(b.arrays, list[i].array.over(newHost(list[i].array)))
	}
	return b
}

func newHost(a *Any) gpu.Host {
	size := a.n * a.t.Size()
	return gpu.HostBytes(make([]byte, (size+7)/8*8)[:size])
}

// over makes an array like a over other host memory.
func (a *Any) over(host gpu.Host) *Any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Any{&body{name: a.name, t: a.t, n: a.n, host: host, record: a.record, flags: a.flags, tracked: true, version: 1}}
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

// segment is a stage of a pipeline with its double buffers: what it works on, and what moves meanwhile.
type segment struct {
	stageParams
	cr          *Cruncher
	runs, inits []Step
	in, out     [2]*bank // front, back
	ran, sent   bool     // in this step
}

func newSegment(ctx context.Context, s *Stage) (*segment, error) {
	const op = "NewPipeline"
	cr, err := New(ctx, s.Devices, s.WGSL, s.Options...)
	if err != nil {
		return nil, err
	}
	l := &segment{cr: cr}
	if l.stageParams, err = s.params(op); err == nil {
		l.inits, err = steps(op, cr.source, s.Initializers)
	}
	if err == nil {
		l.runs, err = steps(op, cr.source, s.Kernels)
	}
	if err == nil && len(l.runs) == 0 {
		err = fail(op, kernel.ErrKernel, "a stage without kernels")
	}
	if err != nil {
		_ = cr.Close() // the first error says more
		return nil, err
	}
	for i := range l.in {
		l.in[i], l.out[i] = buffers(l.inputs), buffers(l.outputs)
	}
	return l, nil
}

// group is the parameters of the stage's kernels.
func (l *segment) group(in, out *bank) *group {
	g := &group{}
	for i, p := range l.inputs {
		p.as, p.array = p.name(), in.arrays[i]
		g.list = append(g.list, p)
	}
	g.list = append(g.list, l.hidden...)
	for i, p := range l.outputs {
		p.as, p.array, p.ifChanged = p.name(), out.arrays[i], true
		g.list = append(g.list, p)
	}
	return g
}

// compute runs steps of the stage on banks. Outputs come back after each step that may change them, so that nothing depends on what
// only one device has.
func (l *segment) compute(ctx context.Context, list []Step, in, out *bank) error {
	for id, s := range list {
		if err := l.cr.Compute(ctx, id, s.Kernels, s.Range, l.group(in, out)); err != nil {
			return err
		}
	}
	return nil
}
