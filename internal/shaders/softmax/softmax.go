// SPDX-License-Identifier: Apache-2.0

// Package softmax holds the kernels of the softmax of rows: exp(x - max) divided by its sum, and its logarithm.
package softmax

import (
	_ "embed"
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

//go:embed rows.wgsl
var rowsSource string

//go:embed group.wgsl
var groupSource string

// Spec is what the text of a kernel depends on, beside the function.
type Spec struct {
	Group bool   // a workgroup per row, with workgroup memory
	Log   bool   // the logarithm
	Size  uint16 // invocations of a workgroup
}

const (
	rowsSize = 16   // leaves enough workgroups for all cores
	rowsMany = 64   // starts fewer
	manyRows = 2048 // that are worth it
	held     = 4    // vectors of a row that an invocation of a group keeps
	// MaxCols is the longest row of the software family, whose invocations go along a row alone.
	MaxCols = 3 * shaders.LoopLimit
)

// Plan is one launch.
type Plan struct {
	Spec   Spec
	Groups [3]uint32
	Shape  [4]uint32
}

// NewPlan plans the softmax of rows x cols elements, at least one, or its logarithm. software avoids workgroup memory,
// unless rows are longer than [MaxCols].
func NewPlan(rows, cols int, log, software bool) Plan {
	shape := [4]uint32{uint32(rows), uint32(cols), 0x7fc00000}
	if software && cols <= MaxCols {
		size := rowsSize
		if rows >= manyRows {
			size = rowsMany
		}
		return Plan{Spec{Log: log, Size: uint16(size)}, shaders.Fold(shaders.Ceil(rows, size)), shape}
	}
	size := 32
	for size < 256 && 4*held*size < cols {
		size *= 2
	}
	return Plan{Spec{Group: true, Log: log, Size: uint16(size)}, shaders.Fold(rows), shape}
}

// Build writes the kernel's text.
func Build(s Spec, f *fuse.Func) (shaders.Program, error) {
	source, name := rowsSource, "rows"
	if s.Group {
		source, name = groupSource, "group"
	}
	fused := f.Text(1, false) + fuse.Helper(fuse.OpLog, f)
	return plan.Program("softmax/"+name, source, fused, f, reference{s, f}, nil,
		shaders.Bool("LOG", s.Log), shaders.Uint("SIZE", int(s.Size)))
}

type reference struct {
	s Spec
	f *fuse.Func
}

// Run implements [shaders.Reference].
func (t reference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	rows, cols := int(binary.LittleEndian.Uint32(params)), int(binary.LittleEndian.Uint32(params[4:]))
	e, ok := fuse.NewEval[float32](t.f, params[16:], storage)
	if !ok {
		return
	}
	row := make([]float32, cols)
	for i := range rows {
		clear(row)
		e.Apply(i, 0, row)
		softmax(row, t.s.Log)
		e.Store(i, 0, row)
	}
}

func softmax(row []float32, log bool) {
	top, sum := math.Inf(-1), 0.0
	for _, x := range row {
		top = math.Max(top, float64(x))
	}
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	for j, x := range row {
		if log {
			row[j] = float32(float64(x) - top - math.Log(sum))
		} else {
			row[j] = float32(math.Exp(float64(x)-top) / sum)
		}
	}
}
