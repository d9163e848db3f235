// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders"
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
	Arrays []Array
	// Scalars are those that the kernel uses.
	Scalars []Scalar
	// ParamBytes is the size of the parameter block, a multiple of 16; 0 is none.
	ParamBytes int
	Dims       int // as in [Info]
	Local      [3]int
	// Reference does the same in Go for kernels of the library's own. It is nil for a user's.
	Reference func(groups [3]uint32, params []byte, storage [][]byte)

	mu       sync.Mutex
	compiled map[*gpu.Device]compiled

	source  *Source
	edits   []edit
	fields  map[string]field // of the parameter block, by the names that kernels have for them
	entries map[string]int   // which array has which name
}

// Array is an array that a kernel uses.
type Array struct {
	Decl
	Binding int
	// Unit is how many bytes the kernel's index counts: 4 for widened, packed and atomic arrays, the element's size
	// otherwise, or the size of a struct with its padding.
	Unit int
	// Written is whether the kernel may change it, as far as its text tells: a kernel that takes its address may.
	Written bool
}

// field is a place in the parameter block.
type field struct {
	offset int
	typ    elemType
}

// Names of what the library tells a kernel. Those of windows are followed by the name of an array.
const (
	nameBase   = prefix + "base"
	nameCount  = prefix + "count"
	nameTotal  = prefix + "total"
	nameGroups = prefix + "groups"
	nameTiles  = prefix + "tiles"
	nameOffset = prefix + "off_"
	nameLength = prefix + "len_"
	nameLoad   = prefix + "load_"
	nameStore  = prefix + "store_"
	nameFloat  = prefix + "float"
	nameHalf   = prefix + "half"
)

// Range says which items of a range a launch computes. For a kernel of one dimension only the first numbers count, the
// others may be 0 or 1.
type Range struct {
	Base  [3]int // the first item
	Count [3]int // how many items from there on
	Total [3]int // how many items the whole range has
}

// putRange writes a range into a parameter block and returns the workgroup counts of the launch, which are 0 where there
// is nothing to do: such a launch can be left out.
//
// It is [ErrKernel] if the block has not ParamBytes bytes, if numbers are negative or items are beyond 2^32, if there are too
// many workgroups, and if an entry point does not take what it would have to know: a base other than 0 needs sublet_base.
func (p *Program) putRange(block []byte, r Range) (groups [3]uint32, err error) {
	const op = "Launch"
	if err := p.checkBlock(op, block); err != nil {
		return groups, err
	}
	dims := p.Dims
	if dims == 0 {
		dims = 3
	}
	var tiles, base, count, total [3]uint32
	for d := range 3 {
		b, n, all := r.Base[d], r.Count[d], r.Total[d]
		if d >= dims {
			if b != 0 || n < 0 || n > 1 || all < 0 || all > 1 {
				return groups, fail(op, "a range of more dimensions than the kernel has")
			}
			n, all = 1, 1
		} else if d > 0 && p.Dims == 0 && n == 0 && all == 0 {
			n, all = 1, 1 // an entry point may have fewer dimensions than three
		}
		const most = math.MaxUint32
		if b < 0 || n < 0 || all < 0 || int64(n) > most || int64(all) > most || int64(b) > most+1-int64(n) {
			return groups, fail(op, "a range with negative numbers or beyond 2^32 items")
		}
		base[d], count[d], total[d] = uint32(b), uint32(n), uint32(all)
		tiles[d] = uint32((int64(n) + int64(p.Local[d]) - 1) / int64(p.Local[d]))
	}
	var fits bool
	if groups, fits = p.groups(tiles); !fits {
		return groups, fail(op, "more workgroups than one dispatch can have")
	}
	if base != [3]uint32{} && !p.Divisible() {
		return [3]uint32{}, fail(op, "the entry point ", p.Name, " does not take sublet_base, so that its range begins at 0")
	}
	p.put(block, nameBase, base)
	p.put(block, nameCount, count)
	p.put(block, nameTotal, total)
	p.put(block, nameTiles, tiles)
	p.put(block, nameGroups, groups)
	return groups, nil
}

// groups lays workgroups out so that no dimension has more than devices allow, and reports whether that is possible.
func (p *Program) groups(tiles [3]uint32) (groups [3]uint32, fits bool) {
	if tiles[0] == 0 || tiles[1] == 0 || tiles[2] == 0 {
		return [3]uint32{}, true
	}
	if p.Dims == 0 && (tiles[1] != 1 || tiles[2] != 1 || !p.has(nameGroups)) {
		return tiles, slices.Max(tiles[:]) <= shaders.MaxGroups
	}
	const most = shaders.MaxGroups * shaders.MaxGroups
	n := uint64(tiles[0]) * uint64(tiles[1]) // below 2^64
	if n > most || n*uint64(tiles[2]) > most {
		return groups, false
	}
	return shaders.Fold(int(n * uint64(tiles[2]))), true
}

// putScalar writes the bits of a scalar's components into a parameter block. A scalar that the kernel does not use is passed
// over. It is [ErrKernel] if their number is wrong or the block has not ParamBytes bytes.
func (p *Program) putScalar(block []byte, name string, bits ...uint32) error {
	const op = "Launch"
	if err := p.checkBlock(op, block); err != nil {
		return err
	}
	i := slices.IndexFunc(p.Scalars, func(s Scalar) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	f := p.fields[name]
	if len(bits) != f.typ.lanes() {
		return fail(op, quote(name), " is a ", f.typ.name())
	}
	for j, b := range bits {
		binary.LittleEndian.PutUint32(block[f.offset+4*j:], b)
	}
	return nil
}

// putArray tells a kernel about an array that it uses: which unit the binding begins with, which must be 0 for one without
// Window, and how many units the array has. An array that the kernel does not use is passed over. It is [ErrKernel] if the
// numbers are wrong or the block has not ParamBytes bytes.
func (p *Program) putArray(block []byte, name string, offset, length int) error {
	const op = "Launch"
	if err := p.checkBlock(op, block); err != nil {
		return err
	}
	i, ok := p.entries[name]
	if !ok {
		return nil
	}
	if offset < 0 || length < 0 || int64(offset) > math.MaxUint32 || int64(length) > math.MaxUint32 || offset > length {
		return fail(op, quote(name), " cannot begin at ", strconv.Itoa(offset), " of ", strconv.Itoa(length))
	}
	if offset != 0 && !p.Arrays[i].Window {
		return fail(op, quote(name), " is not declared with a window")
	}
	p.put(block, nameOffset+name, [3]uint32{uint32(offset)})
	p.put(block, nameLength+name, [3]uint32{uint32(length)})
	return nil
}

func (p *Program) checkBlock(op string, block []byte) error {
	if p == nil || len(block) != p.ParamBytes {
		return fail(op, "a parameter block of the wrong size")
	}
	return nil
}

func (p *Program) has(name string) bool {
	_, ok := p.fields[name]
	return ok
}

// put writes as many numbers as a field of that name takes, if there is one.
func (p *Program) put(block []byte, name string, v [3]uint32) {
	f, ok := p.fields[name]
	if !ok {
		return
	}
	for i := range f.typ.lanes() {
		binary.LittleEndian.PutUint32(block[f.offset+4*i:], v[i])
	}
}
