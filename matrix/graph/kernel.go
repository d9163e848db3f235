// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Kernel runs a kernel of WGSL source on blocks where they are on the task's device. The source is that of
// [cruncher.New]: a function fn name(i: u32) over arrays that have the names of ports, or a complete module. Sticky and described
// inputs of one element are scalars; an output in place of an input goes by the input's name. items says how many
// work items there are in each dimension, the others 0 or 1; without it there is one for each element of the first output.
//
// A task with a kernel needs a device that compiles WGSL. A mistake that the text shows is a fault; one that the compiler finds
// goes to the outputs.
func Kernel(wgsl, name string, items func(d *Dispatch) [3]int) Body {
	k := &program{name: name, items: items}
	k.source, k.err = kernel.Parse(wgsl)
	return Body{kind: "kernel", needs: gpu.FeatureWGSL, run: k.run, check: k.check}
}

// program is a kernel's source. What is made of it is the task's.
type program struct {
	name   string
	source *kernel.Source
	err    error
	items  func(d *Dispatch) [3]int
}

// dropKernels drops a task's kernels at a Teardown, which leaves nothing on the devices. A task that has not returned may be about
// to launch its own: then that is for the end of the dispatch.
func (g *Graph) dropKernels(t *Task) {
	if !t.running && t.program != nil {
		g.dropped = append(g.dropped, t.program.Close)
	}
}

// scalar reports whether kernels see a port as a number.
func (p *Port) scalar() bool {
	t := p.tmpl
	return p.kind != outputPort && (p.sticky || p.kind == describedPort) && t != nil && !t.raw && !t.Records &&
		t.dtype != matrix.Float16 && t.Planes == 1 && t.rows == 1 && t.cols == 1
}

func elemType(t *Template) dtype.Type {
	switch {
	case t.raw:
		return dtype.Uint8
	case t.dtype == matrix.Int32:
		return dtype.Int32
	case t.dtype == matrix.Uint32:
		return dtype.Uint32
	case t.dtype == matrix.Float16:
		return dtype.Float16
	}
	return dtype.Float32
}

// check declares the ports to the source.
func (k *program) check(t *Task) []error {
	if k.err != nil {
		return []error{k.err}
	}
	var decls []kernel.Decl
	for _, p := range t.ports {
		switch {
		case p.meta() || p.inPlacePort != nil:
		case p.scalar():
			decls = append(decls, kernel.Decl{Name: p.name, Type: elemType(p.tmpl), Scalar: true})
		default:
			d := kernel.Decl{Name: p.name, Type: elemType(p.tmpl), ReadOnly: !p.writable()}
			if d.Type.Size() < 4 {
				d.Mode = kernel.Packed
			}
			decls = append(decls, d)
		}
	}
	p, err := k.source.Build(k.name, decls, [3]int{localSize(t.g.devices)})
	if err != nil {
		return []error{err}
	}
	t.program.Close()
	t.program = p
	return nil
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

func (k *program) run(d *Dispatch) error {
	p := d.t.program // check has made it
	if _, err := p.Compile(d.ctx, d.Device()); err != nil {
		return err
	}
	count := k.count(d)
	r := kernel.Range{Count: count, Total: count}
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
	var wrote []*buffer.Buffer
	for _, a := range p.Arrays {
		port := d.t.Port(a.Name)
		b, err := d.Buffer(a.Name)
		if err != nil {
			return err
		}
		var mem *gpu.Buffer
		if port.writable() {
			mem, err = b.Memory(buffer.Writes)
			wrote = append(wrote, b)
		} else {
			mem, err = b.Memory(buffer.Reads)
		}
		if err != nil {
			return err
		}
		args = append(args, kernel.Argument{Name: a.Name, Type: a.Type, Buffer: mem, Length: d.blocks[port.index].Size() / a.Type.Size()})
	}
	if err := p.Launch(d.ctx, d.Device(), r, args...); err != nil {
		return err
	}
	for _, b := range wrote {
		b.Wrote(b.Device(), buffer.Range(0, b.Size()))
	}
	return nil
}

// count is the number of work items.
func (k *program) count(d *Dispatch) [3]int {
	if k.items != nil {
		return k.items(d)
	}
	for i, p := range d.t.ports {
		if p.kind == outputPort {
			b := d.blocks[i]
			return [3]int{p.tmpl.Planes * b.rows * p.tmpl.Pitch, 1, 1}
		}
	}
	return [3]int{}
}
