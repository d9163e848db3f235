// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"encoding/binary"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

// Scatter describes a launch that writes entries to a dense matrix of zeros. "Major" is what the pointers or block ids
// count: columns, or the rows of CSR. Numbers are in elements.
type Scatter struct {
	Blocks bool // entries are whole columns
	Count  int  // entries
	Begin  int  // what the pointers call the first of them
	Base   int  // where its value and its index lie in what is bound
	First  int  // where the first major's pointer lies in what is bound

	Majors, Minors       int
	Offset               int // of the dense matrix
	MajorStep, MinorStep int
}

// Groups returns the workgroup counts.
func (s *Scatter) Groups() [3]uint32 { return groups(s.Count) }

// Shape returns the parameter block.
func (s *Scatter) Shape() []uint32 {
	return []uint32{
		uint32(s.Count), uint32(s.Begin), uint32(s.Base), uint32(s.First), uint32(s.Majors), uint32(s.Minors),
		uint32(s.Offset), uint32(s.MajorStep), uint32(s.MinorStep), 0, 0, 0,
	}
}

// BuildScatter writes the kernel's text. Its storage bindings are the values, the indices or block ids, the pointers (which
// blocks do not read), and the dense matrix.
func BuildScatter(blocks bool) (shaders.Program, error) {
	text, err := shaders.Expand(scatterSource, "", shaders.Bool("BLOCKS", blocks))
	if err != nil {
		return shaders.Program{}, err
	}
	return shaders.Program{
		Name: "sparse/scatter", Source: text,
		Access:    []shaders.Access{shaders.Params, shaders.Read, shaders.Read, shaders.Read, shaders.ReadWrite},
		Reference: scatterReference{blocks},
	}, nil
}

type scatterReference struct{ blocks bool }

// Run implements [shaders.Reference].
func (b scatterReference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	w := decode(params)
	s := Scatter{Count: int(w[0]), Begin: int(w[1]), Base: int(w[2]), First: int(w[3]), Majors: int(w[4]), Minors: int(w[5])}
	values, indices, pointers, dense := storage[0], storage[1], storage[2], storage[3]
	for t := range s.Count {
		var major, minor int
		if b.blocks {
			major, minor = int(word(indices, t/s.Minors)), t%s.Minors
		} else {
			major, minor = s.owner(pointers, uint32(s.Begin+t)), int(word(indices, s.Base+t))
		}
		if major >= s.Majors || minor >= s.Minors {
			continue
		}
		at := int(w[6]) + major*int(w[7]) + minor*int(w[8])
		binary.LittleEndian.PutUint32(dense[4*at:], word(values, s.Base+t))
	}
}

// owner returns the last of the majors that begins at entry q or before it.
func (s *Scatter) owner(pointers []byte, q uint32) int {
	lo, hi := 0, s.Majors
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if word(pointers, s.First+mid) <= q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
