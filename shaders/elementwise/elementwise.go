// SPDX-License-Identifier: Apache-2.0

// Package elementwise holds the kernels that make one pass over a result: maps, copies between layouts, fills and
// transposes. Which one serves is a question of layout alone; see [Form].
package elementwise

import (
	_ "embed"
	"encoding/binary"
	"strconv"

	"github.com/sublet-gpu/sublet/shaders"
	"github.com/sublet-gpu/sublet/shaders/fuse"
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
// for results with crossed operands. Words is for binary16 results that are not aligned to vectors. Grid does the rest.
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
	WX, WY uint8 // workgroup of Grid
	Tail   bool  // of Linear: the number of elements is no multiple of 4
}

// Size of the workgroups of the one-dimensional forms, and of a side of Block's.
const (
	linearSize = 256
	wordsSize  = 64
	blockSide  = 8
)

// Plan is one launch.
type Plan struct {
	Spec   Spec
	Groups [3]uint32
	Shape  [4]uint32 // the kernel's Shape
}

// NewPlan plans a pass over rows x cols elements, at least one. store is the result's place.
func NewPlan(form Form, rows, cols int, store fuse.Place) Plan {
	r, c := uint32(rows), uint32(cols)
	switch form {
	case Linear:
		q := shaders.Ceil(cols, 4)
		return Plan{Spec{Form: Linear, Tail: cols%4 != 0}, shaders.Fold(shaders.Ceil(q, linearSize)), [4]uint32{c, uint32(q)}}
	case Block:
		across := shaders.Ceil(cols, 4*blockSide)
		down := shaders.Ceil(rows, 4*blockSide)
		return Plan{Spec{Form: Block}, shaders.Fold(across * down), [4]uint32{r, c, uint32(across)}}
	case Words:
		first := store.Offset / 2
		last := (store.Offset + (r-1)*store.Row + c - 1) / 2
		n := last - first + 1
		return Plan{Spec{Form: Words}, shaders.Fold(shaders.Ceil(int(n), wordsSize)), [4]uint32{r, c, first, n}}
	}
	wx, wy := gridGroup(shaders.Ceil(cols, 4))
	across := shaders.Ceil(cols, 4*wx)
	return Plan{Spec{Form: Grid, WX: uint8(wx), WY: uint8(wy)}, shaders.Fold(across * shaders.Ceil(rows, wy)), [4]uint32{r, c, uint32(across)}}
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
	var source string
	var params []shaders.Param
	u := func(n uint8) string { return strconv.Itoa(int(n)) + "u" }
	switch s.Form {
	case Linear:
		source, params = linearSource, []shaders.Param{{Name: "TAIL", Value: strconv.FormatBool(s.Tail)}}
	case Block:
		source = blockSource
	case Words:
		source = wordsSource
	default:
		source, params = gridSource, []shaders.Param{{Name: "WX", Value: u(s.WX)}, {Name: "WY", Value: u(s.WY)}}
	}
	text, err := shaders.Expand(source, f.Text(1, s.Form == Block), params...)
	if err != nil {
		return shaders.Program{}, err
	}
	p := shaders.Program{Name: "elementwise/" + formNames[s.Form], Source: text, Access: f.Access()}
	if len(f.Calls) == 0 {
		p.Twin = twin(s, f)
	}
	return p, nil
}

// twin does what all forms do, in Go.
func twin(s Spec, f *fuse.Func) func([3]uint32, []byte, [][]byte) {
	return func(_ [3]uint32, params []byte, storage [][]byte) {
		rows, cols := int(binary.LittleEndian.Uint32(params)), int(binary.LittleEndian.Uint32(params[4:]))
		if s.Form == Linear {
			rows, cols = 1, rows
		}
		switch f.Type {
		case fuse.F32:
			run[float32](f, rows, cols, params[16:], storage)
		case fuse.I32:
			run[int32](f, rows, cols, params[16:], storage)
		default:
			run[uint32](f, rows, cols, params[16:], storage)
		}
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
