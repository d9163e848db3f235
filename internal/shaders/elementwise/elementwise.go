// SPDX-License-Identifier: Apache-2.0

// Package elementwise holds the kernels that make one pass over a result: maps, copies between layouts, fills and
// transposes. Which one serves is a question of layout alone; see [Form].
package elementwise

import (
	_ "embed"
	"encoding/binary"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

//go:embed linear.wgsl
var linearSource string

//go:embed grid.wgsl
var gridSource string

//go:embed block.wgsl
var blockSource string

//go:embed words.wgsl
var wordsSource string

// Form is a kernel of this package.
type Form uint8

// The forms. Linear is for operands and a result that are contiguous in one order, handed over as a single row. Block is
// for results with transposed operands. Words is for binary16 results that are not aligned to vectors. Grid does the rest.
const (
	Linear Form = iota
	Grid
	Block
	Words
)

var formNames = [...]string{"linear", "grid", "block", "words"}

// Spec is what the text of a kernel depends on, beside the function.
type Spec struct {
	Form   Form
	WX, WY uint8 // Grid: the workgroup
	Each   uint8 // Block: how many an invocation computes
	Tail   bool  // Linear, Grid and Block: vectors or blocks at the end are there in part only
}

// Key tells specs apart.
func (s Spec) Key() [4]byte {
	k := [4]byte{byte(s.Form), s.WX, s.WY, s.Each << 1}
	if s.Tail {
		k[3]++
	}
	return k
}

// Size of the workgroups of the one-dimensional forms, and of a side of Block's.
const (
	linearSize = 256
	wordsSize  = 64
	blockSide  = 8

	// An invocation of a software adapter computes several blocks where there are many: a good part of its time goes into
	// reading the parameters.
	severalBlocks = 4
	manyBlocks    = 1024
)

// Plan is one launch.
type Plan struct {
	Spec   Spec
	Groups [3]uint32
	Shape  [4]uint32 // the kernel's Shape
}

// NewPlan plans a pass over rows x cols elements, at least one. store is the result's place.
func NewPlan(form Form, rows, cols int, store fuse.Place, software bool) Plan {
	r, c := uint32(rows), uint32(cols)
	switch form {
	case Linear:
		q := shaders.Ceil(cols, 4)
		return Plan{Spec{Form: Linear, Tail: cols%4 != 0}, shaders.Fold(shaders.Ceil(q, linearSize)), [4]uint32{c, uint32(q)}}
	case Block:
		each := 1
		if software && rows*cols >= manyBlocks*16 {
			each = severalBlocks
		}
		across := shaders.Ceil(cols, 4*blockSide*each)
		down := shaders.Ceil(rows, 4*blockSide)
		s := Spec{Form: Block, Each: uint8(each), Tail: rows%4 != 0 || cols%4 != 0}
		return Plan{s, shaders.Fold(across * down), [4]uint32{r, c, uint32(across)}}
	case Words:
		first := store.Offset / 2
		last := (store.Offset + (r-1)*store.Row + c - 1) / 2
		n := last - first + 1
		return Plan{Spec{Form: Words}, shaders.Fold(shaders.Ceil(int(n), wordsSize)), [4]uint32{r, c, n}} // the kernel knows where it begins
	}
	wx, wy := gridGroup(shaders.Ceil(cols, 4))
	across := shaders.Ceil(cols, 4*wx)
	s := Spec{Form: Grid, WX: uint8(wx), WY: uint8(wy), Tail: cols%4 != 0}
	return Plan{s, shaders.Fold(across * shaders.Ceil(rows, wy)), [4]uint32{r, c, uint32(across)}}
}

// gridGroup shapes a workgroup of 64 for rows of so many vectors: as wide as the rows are, up to all 64.
func gridGroup(vectors int) (wx, wy int) {
	wx = 1
	for wx < 64 && wx < vectors {
		wx *= 2
	}
	return wx, 64 / wx
}

// Build writes the kernel's text.
func Build(s Spec, f *fuse.Func) (shaders.Program, error) {
	source := [...]string{linearSource, gridSource, blockSource, wordsSource}[s.Form]
	var params []shaders.Param
	if s.Form != Words {
		params = append(params, shaders.Bool("TAIL", s.Tail))
	}
	switch s.Form {
	case Grid:
		params = append(params, shaders.Uint("WX", int(s.WX)), shaders.Uint("WY", int(s.WY)))
	case Block:
		params = append(params, shaders.Uint("EACH", max(int(s.Each), 1)))
	}
	name := "elementwise/" + formNames[s.Form]
	return plan.Program(name, source, f.Text(1, s.Form == Block), f, reference{s, f}, nil, params...)
}

// reference does what all forms do, in Go.
type reference struct {
	Spec
	f *fuse.Func
}

// Run implements [shaders.Reference].
func (t reference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	rows, cols := int(binary.LittleEndian.Uint32(params)), int(binary.LittleEndian.Uint32(params[4:]))
	if t.Form == Linear {
		rows, cols = 1, rows
	}
	switch t.f.Type {
	case fuse.F32:
		run[float32](t.f, rows, cols, params[16:], storage)
	case fuse.I32:
		run[int32](t.f, rows, cols, params[16:], storage)
	default:
		run[uint32](t.f, rows, cols, params[16:], storage)
	}
}

func run[N fuse.Num](f *fuse.Func, rows, cols int, params []byte, storage [][]byte) {
	e, ok := fuse.NewEval[N](f, params, storage)
	if !ok {
		return
	}
	const step = 1024
	row := make([]N, min(cols, step))
	for i := range rows {
		for j := 0; j < cols; j += step {
			part := row[:min(step, cols-j)]
			clear(part)
			e.Apply(i, j, part)
			e.Store(i, j, part)
		}
	}
}
