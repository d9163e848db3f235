// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Kernel runs a kernel of WGSL source on blocks where they are on the task's device. The source is that of
// [cruncher.New]: a function fn name(i: u32) over arrays that have the names of ports, or a complete module. Sticky and described
// inputs of one element are scalars; an output in place of an input goes by the input's name. items says how many
// work items there are in each dimension, the others 0 or 1; without it there is one for each element of the first output.
//
// A task with a kernel needs a device that compiles WGSL. A mistake that the text shows is a fault; one that the compiler finds
// goes to the outputs.
func Kernel(wgsl, name string, items func(d *Dispatch) [3]int) Body {
	source, err := kernel.Parse(wgsl)
	return Body{
		kind: "kernel", needs: driver.FeatureWGSL,
		run: func(d *Dispatch) error { return d.launch(items) },
		check: func(t *Task) []error {
			err := err
			if t.program == nil && err == nil {
				t.program, err = t.build(source, name)
			}
			if err != nil {
				return []error{err}
			}
			return nil
		},
	}
}

// dropKernels drops a task's kernels at a Teardown, which leaves nothing on the devices. A task that has not returned may be about
// to launch its own: then that is for the end of the dispatch.
func (g *Graph) dropKernels(t *Task) {
	if !t.running && t.program != nil {
		g.dropped = append(g.dropped, t.program.Close)
	}
}

// operand reports whether kernels see a port's block.
func (p *Port) operand() bool { return !p.meta() && p.inPlacePort == nil }

// scalar reports whether kernels see a port as a number.
func (p *Port) scalar() bool {
	t := p.tmpl
	return (p.kind == stickyPort || p.kind == describedPort) && !t.Records && t.dtype.Size() == 4 && t.Planes*t.rows*t.cols == 1
}

// build declares the ports to the source.
func (t *Task) build(source *kernel.Source, name string) (*kernel.Program, error) {
	var decls []kernel.Decl
	for _, p := range t.ports {
		switch {
		case !p.operand():
		case p.scalar():
			decls = append(decls, kernel.Decl{Name: p.name, Type: p.tmpl.dtype, Scalar: true})
		default:
			d := kernel.Decl{Name: p.name, Type: p.tmpl.dtype, ReadOnly: !p.writable()}
			if d.Type.Size() < 4 {
				d.Mode = kernel.Packed
			}
			decls = append(decls, d)
		}
	}
	return source.Build(name, decls, [3]int{localSize(t.g.devices)})
}

// localSize is a workgroup that all devices allow.
func localSize(devices []*gpu.Device) int {
	n := 256
	for _, d := range devices {
		l := d.Info().Limits
		n = min(n, int(l.MaxInvocations), int(l.MaxGroupSize[0]))
	}
	return max(n, 1)
}

// launch runs the task's kernel.
func (d *Dispatch) launch(items func(d *Dispatch) [3]int) error {
	p := d.t.program
	if _, err := p.Compile(d.ctx, d.Device()); err != nil {
		return err
	}
	count := [3]int{}
	if items != nil {
		count = items(d)
	} else if outs := d.t.outs; len(outs) > 0 {
		t := outs[0].tmpl
		count = [3]int{t.sizeOf(d.blocks[outs[0].index].rows) / t.dtype.Size(), 1, 1}
	}
	if slices.Contains(count[:max(p.Dims, 1)], 0) {
		return nil
	}
	var args []kernel.Argument
	for _, s := range p.Scalars {
		n, err := d.word(d.t.Port(s.Name))
		if err != nil {
			return err
		}
		args = append(args, kernel.Argument{Name: s.Name, Type: s.Type, Bits: []uint32{uint32(n)}})
	}
	var results []*buffer.Buffer
	for _, a := range p.Arrays {
		port := d.t.Port(a.Name)
		s, in := d.blocks[port.index].s, port.intent()
		b, err := s.acquire(d.ctx, d.worker, in)
		if err != nil {
			return err
		}
		mem, err := b.Memory(in)
		if err != nil {
			return err
		}
		if in != buffer.Reads {
			results = append(results, b)
		}
		args = append(args, kernel.Argument{Name: a.Name, Type: a.Type, Buffer: mem, Length: s.size / a.Type.Size()})
	}
	if err := p.Launch(d.ctx, d.Device(), kernel.Range{Count: count, Total: count}, args...); err != nil {
		return err
	}
	for _, b := range results {
		wrote(b)
	}
	return nil
}
