// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Program is a kernel for arrays and scalars of certain types. A device compiles it when it first needs it; [Program.Close] gives
// what was compiled back. A program may be used by several goroutines.
type Program struct {
	Name  string // the kernel's
	WGSL  string
	Entry string
	// Bindings are those of group 0, from 0 on. Those that the kernel does not use are AccessNone.
	Bindings []driver.Access
	// Arrays are those that the kernel uses, in the order of their bindings.
	Arrays []Decl
	// Scalars are those that the kernel uses.
	Scalars []Decl
	// ParamBytes is the size of the parameter block, a multiple of 16; 0 is none.
	ParamBytes int
	// Dims is how many dimensions ranges of the kernel have: 1 for fn name(i: u32), 2 and 3 for vectors. It is 0 for an entry
	// point, which says itself what it does with the workgroups.
	Dims  int
	Local [3]int // the size of a workgroup
	// Divisible is whether the kernel can compute a part of a range. An entry point can if it takes sublet_base.
	Divisible bool

	mu       sync.Mutex
	compiled map[*gpu.Device]compiled

	source *Source
	edits  []edit
	fields map[string]field // of the parameter block, by the names that kernels have for them
}

// field is a place in the parameter block, for so many numbers of 32 bits.
type field struct{ offset, lanes int }

// compiled is a program on a device, until that is lost.
type compiled struct {
	kernel     *gpu.Kernel
	generation uint32 // of the device
}

// Compile returns the kernel of a device, which it compiles if it has not done so before. The errors of compilers are about the
// lines of the source. [Program.Close] closes the kernel.
func (p *Program) Compile(ctx context.Context, dev *gpu.Device) (*gpu.Kernel, error) {
	if p == nil || p.source == nil || dev == nil {
		return nil, fail("Compile", "no program or no device")
	}
	generation := dev.Generation()
	if k := p.keep(dev, compiled{nil, generation}); k != nil {
		return k, nil
	}
	k, err := dev.Kernel(ctx, gpu.KernelDesc{Label: p.Name, Source: p.WGSL, Entry: p.Entry, Bindings: p.Bindings})
	if err != nil {
		return nil, p.translate(err)
	}
	return p.keep(dev, compiled{k, generation}), nil
}

// keep returns the kernel that a device has, or else keeps a new one, if there is one. What another goroutine has compiled first
// stays.
func (p *Program) keep(dev *gpu.Device, c compiled) *gpu.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.compiled[dev]
	if old.kernel != nil && old.generation == c.generation {
		_ = c.kernel.Close() // never fails
		return old.kernel
	}
	if c.kernel == nil {
		return nil
	}
	_ = old.kernel.Close() // went with its device
	p.compiled[dev] = c
	return c.kernel
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
	clear(p.compiled)
}
