// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// Argument is what a launch gives a kernel under a name: a buffer for an array, or the bits of a scalar.
type Argument struct {
	Name string
	Type dtype.Type // that of the declaration

	// Buffer holds an array of Length elements from element First on, which is 0 unless the array is declared with a window.
	Buffer        *gpu.Buffer
	First, Length int

	Bits []uint32 // of the components of a scalar
}

// compiled is a program on a device, until that is lost.
type compiled struct {
	kernel     *gpu.Kernel
	generation uint32 // of the device
}

// Divisible reports whether the kernel can compute a part of a range. An entry point can if it takes sublet_base.
func (p *Program) Divisible() bool { return p != nil && (p.Dims > 0 || p.has(nameBase)) }

// Ready reports whether the program is compiled for a device.
func (p *Program) Ready(dev *gpu.Device) bool { return p != nil && dev != nil && p.find(dev) != nil }

func (p *Program) find(dev *gpu.Device) *gpu.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.compiled[dev]; c.generation == dev.Generation() {
		return c.kernel
	}
	return nil
}

// Compile returns the kernel of a device, which it compiles if it has not done so before. The errors of compilers are about the
// lines of the source. [Program.Close] closes the kernel.
func (p *Program) Compile(ctx context.Context, dev *gpu.Device) (*gpu.Kernel, error) {
	if p == nil || dev == nil {
		return nil, fail("Compile", "no program or no device")
	}
	if k := p.find(dev); k != nil {
		return k, nil
	}
	generation := dev.Generation()
	k, err := dev.Kernel(ctx, gpu.KernelDesc{Label: p.Name, Source: p.WGSL, Entry: p.Entry, Bindings: p.Bindings, Reference: p.Reference})
	if err != nil {
		return nil, p.translate(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.compiled[dev]
	if old.kernel != nil && old.generation == generation { // another goroutine was faster
		_ = k.Close() // never fails
		return old.kernel, nil
	}
	_ = old.kernel.Close() // went with its device
	if p.compiled == nil {
		p.compiled = map[*gpu.Device]compiled{}
	}
	p.compiled[dev] = compiled{k, generation}
	return k, nil
}

// Close gives the kernels of all devices back. A program that is used again compiles them anew.
func (p *Program) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.compiled {
		_ = c.kernel.Close() // never fails
	}
	p.compiled = nil
}

// Launch queues the kernel on a device. Arguments that the kernel does not use are passed over. A range of more workgroups than
// one dispatch can have is divided, if the kernel is [Program.Divisible]. It is [ErrKernel] for arguments that are missing or
// not of the types declared, and for ranges that are negative, beyond 2^32 items, or that the kernel cannot be told of.
func (p *Program) Launch(ctx context.Context, dev *gpu.Device, r Range, arguments ...Argument) error {
	k, err := p.Compile(ctx, dev)
	if err != nil {
		return err
	}
	block := make([]byte, p.ParamBytes)
	buffers, err := p.bind(block, arguments)
	if err != nil {
		return err
	}
	return p.dispatch(k, block, r, buffers)
}

// bind writes the arguments into a parameter block and returns the buffers in the order of the bindings.
func (p *Program) bind(block []byte, arguments []Argument) ([]gpu.Arg, error) {
	const op = "Launch"
	find := func(name string, t dtype.Type) (*Argument, error) {
		i := slices.IndexFunc(arguments, func(a Argument) bool { return a.Name == name })
		if i < 0 {
			return nil, fail(op, "no argument ", quote(name))
		}
		if arguments[i].Type != t {
			return nil, fail(op, quote(name), " is declared as ", t.String(), ", the argument is ", arguments[i].Type.String())
		}
		return &arguments[i], nil
	}
	for _, s := range p.Scalars {
		a, err := find(s.Name, s.Type)
		if err == nil {
			err = p.putScalar(block, s.Name, a.Bits...)
		}
		if err != nil {
			return nil, err
		}
	}
	buffers := make([]gpu.Arg, len(p.Arrays))
	for i := range p.Arrays {
		array := &p.Arrays[i]
		a, err := find(array.Name, array.Type)
		if err != nil {
			return nil, err
		}
		if a.Buffer == nil {
			return nil, fail(op, "no buffer for ", quote(a.Name))
		}
		per := max(array.Unit/array.stored(), 1) // elements that an index counts
		if err := p.putArray(block, array.Name, a.First/per, a.Length/per); err != nil {
			return nil, err
		}
		buffers[i] = gpu.Arg{Buffer: a.Buffer}
	}
	return buffers, nil
}

// stored returns how many bytes an element has where the kernel sees it.
func (d *Decl) stored() int {
	if d.Mode == Widened && d.elem.narrow() {
		return 4
	}
	return d.elem.size()
}

// dispatch queues a range, in halves as long as it has too many workgroups.
func (p *Program) dispatch(k *gpu.Kernel, block []byte, r Range, buffers []gpu.Arg) error {
	if low, high, ok := p.halves(r); ok {
		if err := p.dispatch(k, block, low, buffers); err != nil {
			return err
		}
		return p.dispatch(k, block, high, buffers)
	}
	groups, err := p.putRange(block, r)
	if err != nil || groups[0] == 0 {
		return err
	}
	return k.Dispatch(groups, block, buffers...)
}

// halves divides a range of too many workgroups along its longest dimension that the kernel is told the beginning of.
func (p *Program) halves(r Range) (low, high Range, ok bool) {
	dims := p.Dims
	if dims == 0 && p.has(nameBase) {
		dims = p.fields[nameBase].typ.lanes()
	}
	tiles, longest := [3]uint32{1, 1, 1}, 0
	for d := range tiles {
		n := (int64(r.Count[d]) + int64(p.Local[d]) - 1) / int64(p.Local[d])
		if n < 0 || n > 1<<32-1 {
			return r, r, false // putRange says what is wrong
		}
		if d < max(p.Dims, 1) || r.Count[d] > 0 {
			tiles[d] = uint32(n)
		}
		if d < dims && tiles[d] > tiles[longest] {
			longest = d
		}
	}
	if _, fits := p.groups(tiles); fits || dims == 0 || tiles[longest] < 2 {
		return r, r, false
	}
	half := int(tiles[longest]/2) * p.Local[longest]
	low, high = r, r
	low.Count[longest] = half
	high.Base[longest] += half
	high.Count[longest] -= half
	return low, high, true
}
