// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders"
)

// Program is a kernel for arrays and scalars of certain types. It is compiled for a device at its first use there; [Program.Close]
// releases the compiled kernels. A program may be used by several goroutines.
type Program struct {
	Name  string // the kernel's
	WGSL  string
	Entry string
	// Bindings lists the bindings of group 0, from 0 on. Those that the kernel does not use are AccessNone.
	Bindings []driver.Access
	// Arrays lists the arrays that the kernel uses, in the order of their bindings.
	Arrays []Decl
	// Scalars lists the scalars that the kernel uses.
	Scalars []Decl
	// ParamBytes is the size of the parameter block, a multiple of 16; 0 is none.
	ParamBytes int
	// Dims is the number of dimensions of the kernel's ranges: 1 for fn name(i: u32), 2 and 3 for vectors. It is 0 for an entry point,
	// which may use any.
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

// keep returns the program's kernel on a device. If there is none it keeps c's kernel, which may be nil.
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

// Close releases the kernels of all devices. They are compiled again if the program is used again.
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

// Argument is a named argument of a launch: a buffer for an array, or the bits of a scalar.
type Argument struct {
	Name string
	Type dtype.Type // that of the declaration

	// Buffer holds an array of Length elements from element First on, which is 0 unless the array is declared with a window.
	Buffer        *gpu.Buffer
	First, Length int

	Bits []uint32 // of the components of a scalar
}

// Range says which items of a range a launch computes. For a kernel of one dimension only the first numbers count, the
// others may be 0 or 1.
type Range struct {
	Base  [3]int // the first item
	Count [3]int // how many items from there on
	Total [3]int // how many items the whole range has
}

// Launch queues the kernel on a device. Arguments that the kernel does not use are passed over. A range of more workgroups than
// one dispatch of an entry point can have is divided if the program is Divisible. It is [ErrKernel] for arguments that are
// missing or not of the types declared, and for ranges that are negative, beyond 2^32 items, or for which the kernel lacks a
// parameter, such as an offset.
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
	if err := dev.Ready(ctx); err != nil {
		return err
	}
	return p.dispatch(k, block, r, buffers)
}

// bind writes the arguments into a parameter block and returns the buffers in the order of the bindings.
func (p *Program) bind(block []byte, arguments []Argument) ([]gpu.Arg, error) {
	const op = "Launch"
	find := func(d *Decl) (a Argument, err error) {
		i := slices.IndexFunc(arguments, func(a Argument) bool { return a.Name == d.Name })
		if i < 0 {
			return a, fail(op, "no argument ", quote(d.Name))
		}
		if a = arguments[i]; a.Type != d.Type {
			err = fail(op, quote(d.Name), " is declared as ", d.Type.String(), ", the argument is ", a.Type.String())
		}
		return a, err
	}
	for i := range p.Scalars {
		d := &p.Scalars[i]
		a, err := find(d)
		if err != nil {
			return nil, err
		}
		if len(a.Bits) != int(d.Type.Lanes) {
			return nil, fail(op, quote(d.Name), " is a ", wide(d.Type))
		}
		for j, bits := range a.Bits {
			binary.LittleEndian.PutUint32(block[p.fields[d.Name].offset+4*j:], bits)
		}
	}
	buffers := make([]gpu.Arg, len(p.Arrays))
	for i := range p.Arrays {
		d := &p.Arrays[i]
		a, err := find(d)
		if err != nil {
			return nil, err
		}
		per := max(d.Unit/d.stored(), 1) // elements that an index counts
		switch {
		case a.Buffer == nil:
			return nil, fail(op, "no buffer for ", quote(d.Name))
		case a.First < 0 || a.Length < a.First || int64(a.Length/per) > math.MaxUint32:
			return nil, fail(op, quote(d.Name), " cannot begin at its first element, or has too many")
		case a.First >= per && !d.Window:
			return nil, fail(op, quote(d.Name), " is not declared with a window")
		}
		p.put(block, nameOffset+d.Name, [3]int{a.First / per})
		p.put(block, nameLength+d.Name, [3]int{a.Length / per})
		buffers[i] = gpu.Arg{Buffer: a.Buffer}
	}
	return buffers, nil
}

// dispatch queues a range, in halves as long as an entry point has too many workgroups.
func (p *Program) dispatch(k *gpu.Kernel, block []byte, r Range, buffers []gpu.Arg) error {
	tiles, err := p.tiles(&r)
	if err != nil || slices.Contains(tiles[:], 0) {
		return err
	}
	groups, fits := p.groups(tiles)
	if !fits {
		longest := slices.Index(tiles[:], slices.Max(tiles[:]))
		if p.Dims > 0 || longest >= p.fields[nameBase].lanes {
			return fail("Launch", "more workgroups than one dispatch can have")
		}
		low, high, half := r, r, tiles[longest]/2*p.Local[longest]
		low.Count[longest] = half
		high.Base[longest] += half
		high.Count[longest] -= half
		if err := p.dispatch(k, block, low, buffers); err != nil {
			return err
		}
		return p.dispatch(k, block, high, buffers)
	}
	p.put(block, nameBase, r.Base)
	p.put(block, nameCount, r.Count)
	p.put(block, nameTotal, r.Total)
	p.put(block, nameTiles, tiles)
	p.put(block, nameGroups, [3]int{int(groups[0])})
	return k.Dispatch(groups, block, buffers...)
}

// tiles checks a range, makes its dimensions those of the kernel, and returns how many workgroups it takes in each.
func (p *Program) tiles(r *Range) (tiles [3]int, err error) {
	const (
		op   = "Launch"
		most = min(math.MaxUint32, math.MaxInt-4095) // where an int has 32 bits, workgroups are rounded up
	)
	for d := range tiles {
		base, count, total := r.Base[d], &r.Count[d], &r.Total[d]
		if beyond := p.Dims > 0 && d >= p.Dims; beyond && (base != 0 || min(*count, *total) < 0 || max(*count, *total) > 1) {
			return tiles, fail(op, "a range of more dimensions than the kernel has")
		} else if beyond || p.Dims == 0 && d > 0 && *count == 0 && *total == 0 { // an entry point may have fewer than three
			*count, *total = 1, 1
		}
		if base < 0 || *count < 0 || *total < 0 || int64(*count) > most || int64(*total) > most || int64(base) > most+1-int64(*count) {
			return tiles, fail(op, "a range with negative numbers or beyond 2^32 items")
		}
		if base != 0 && !p.Divisible {
			return tiles, fail(op, "the entry point ", p.Name, " does not take sublet_base, so that its range begins at 0")
		}
		tiles[d] = (*count + p.Local[d] - 1) / p.Local[d]
	}
	return tiles, nil
}

// groups lays workgroups out so that no dimension has more than devices allow, and reports whether that is possible.
func (p *Program) groups(tiles [3]int) (groups [3]uint32, fits bool) {
	if p.Dims == 0 && (tiles[1] != 1 || tiles[2] != 1 || !p.has(nameGroups)) {
		return [3]uint32{uint32(tiles[0]), uint32(tiles[1]), uint32(tiles[2])}, slices.Max(tiles[:]) <= shaders.MaxGroups
	}
	const most = min(shaders.MaxGroups*shaders.MaxGroups, math.MaxInt)
	n := uint64(tiles[0]) * uint64(tiles[1]) // below 2^64
	if n > most || n*uint64(tiles[2]) > most {
		return groups, false
	}
	return shaders.Fold(int(n * uint64(tiles[2]))), true
}

func (p *Program) has(name string) bool {
	_, ok := p.fields[name]
	return ok
}

// put writes as many numbers as a field of that name takes, if there is one.
func (p *Program) put(block []byte, name string, v [3]int) {
	f := p.fields[name]
	for i := range f.lanes {
		binary.LittleEndian.PutUint32(block[f.offset+4*i:], uint32(v[i]))
	}
}
