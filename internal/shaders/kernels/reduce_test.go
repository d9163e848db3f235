// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

var opNames = map[fuse.Reduction]string{fuse.ReduceSum: "sum", fuse.ReduceProd: "product", fuse.ReduceMax: "max", fuse.ReduceMin: "min"}

// matrix holds rows of elements in memory.
type matrix struct {
	typ        fuse.Type
	rows, cols int
	place      fuse.Place
	bytes      []byte
}

func newMatrix(typ fuse.Type, rows, cols, offset, stride int) matrix {
	n := (offset + rows*stride + 4) / 4 * 4
	return matrix{typ, rows, cols, fuse.Place{Offset: offset, Row: stride, Col: 1}, make([]byte, n*typ.Size())}
}

func (m *matrix) at(i, j int) []byte {
	return m.bytes[(m.place.Offset+i*m.place.Row+j)*m.typ.Size():]
}

func (m *matrix) get(i, j int) float64 {
	b := m.at(i, j)
	switch m.typ {
	case fuse.F16:
		return fuse.F16.Load(uint32(binary.LittleEndian.Uint16(b)))
	case fuse.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case fuse.I32:
		return float64(int32(binary.LittleEndian.Uint32(b)))
	}
	return float64(binary.LittleEndian.Uint32(b))
}

// fill writes random elements, small ones, so that sums and products are exact or nearly so.
func (m *matrix) fill(rng *rand.Rand) {
	for i := range m.rows {
		for j := range m.cols {
			v := 1 + rng.Float32()/64
			switch m.typ {
			case fuse.F16:
				binary.LittleEndian.PutUint16(m.at(i, j), uint16(fuse.F16.Store(float64(v))))
			case fuse.F32:
				binary.LittleEndian.PutUint32(m.at(i, j), math.Float32bits(v))
			case fuse.I32:
				binary.LittleEndian.PutUint32(m.at(i, j), uint32(int32(rng.IntN(7)-3)))
			default:
				binary.LittleEndian.PutUint32(m.at(i, j), rng.Uint32())
			}
		}
	}
}

// head loads an operand.
func head(m *matrix) *fuse.Func {
	return &fuse.Func{
		Type: m.typ.Compute(), Code: []fuse.Instr{{Op: fuse.OpLoad, Type: m.typ.Compute()}}, Loads: []fuse.View{{Type: m.typ, Class: fuse.Gather, Slot: 1}},
		Store: fuse.View{Type: m.typ.Compute(), Class: fuse.Gather}, Slots: []fuse.Slot{{Type: m.typ.Compute()}, {Type: m.typ}},
	}
}

// folders are the devices that fold in different ways.
var folders = []*Device{{}, {Software: true}, {Software: true, SIMD: SIMD}}

// perform folds by passes of references, as a caller does on a device.
func perform(t *testing.T, op fuse.Reduction, m matrix, columns bool, device *Device) matrix {
	t.Helper()
	for range 5 {
		l, parts := FoldRows(Fold{Op: op, Of: m.typ}, m.rows, m.cols, true, device)
		out := newMatrix(m.typ.Compute(), m.rows, parts, 0, parts)
		if columns {
			l, parts = FoldCols(Fold{Op: op, Of: m.typ}, m.rows, m.cols, true, device)
			out = newMatrix(m.typ.Compute(), parts, m.cols, 0, m.cols)
		}
		checkPass(t, l, parts)
		f := head(&m)
		program := l.Program(f)
		params := f.Params(shaders.Words(nil, l.Shape...), out.place, []fuse.Place{m.place}, nil)
		launched(t, program, l.Groups, params, [][]byte{out.bytes, m.bytes})
		if parts == 1 {
			return out
		}
		m = out
	}
	t.Fatal("the passes have no end")
	return m
}

func checkPass(t *testing.T, l *Launch, parts int) {
	t.Helper()
	if parts < 1 || l.Groups[0] < 1 || l.Groups[0] > shaders.MaxGroups || l.Groups[1] > shaders.MaxGroups || l.Shape[2] != parts {
		t.Errorf("not a launch: %+v", l)
	}
}

// wantFold folds in Go.
func wantFold(op fuse.Reduction, m *matrix, columns bool, x int) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	sum, product := 0.0, 1.0
	n := m.cols
	if columns {
		n = m.rows
	}
	for k := range n {
		v := 0.0
		if columns {
			v = m.get(k, x)
		} else {
			v = m.get(x, k)
		}
		lo, hi = math.Min(lo, v), math.Max(hi, v)
		sum += v
		product *= v
		switch m.typ {
		case fuse.I32:
			sum, product = float64(int32(int64(sum))), float64(int32(int64(product)))
		case fuse.U32:
			sum, product = float64(uint32(int64(sum))), wrap(product/v, v)
		}
	}
	return map[fuse.Reduction]float64{fuse.ReduceSum: sum, fuse.ReduceProd: product, fuse.ReduceMax: hi, fuse.ReduceMin: lo}[op]
}

func wrap(x, y float64) float64 { return float64(uint32(x) * uint32(y)) }

func TestFolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 129, 2000}
	for op := range opNames {
		for i, rows := range sizes {
			cols := sizes[(i*5+3)%len(sizes)]
			for _, typ := range []fuse.Type{fuse.F32, fuse.F16, fuse.I32} {
				m := newMatrix(typ, rows, cols, 3, cols+2)
				m.fill(rng)
				for bits := range 2 * len(folders) {
					columns, device := bits&1 != 0, folders[bits/2]
					got := perform(t, op, m, columns, device)
					n := rows
					if columns {
						n = cols
					}
					for x := range n {
						i, j := x, 0
						if columns {
							i, j = j, i
						}
						v := got.get(i, j)
						if w := wantFold(op, &m, columns, x); math.Abs(v-w) > 1e-5*math.Abs(w) {
							t.Fatalf("%s of %d x %d, type %d, columns %v: %d: got %v, want %v", opNames[op], rows, cols, typ, columns, x, v, w)
						}
					}
				}
			}
		}
	}
}

// TestWrap adds and multiplies beyond what 32 bits hold.
func TestWrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := newMatrix(fuse.U32, 1, 1000, 0, 1000)
	m.fill(rng)
	sum, product := uint32(0), uint32(1)
	for j := range m.cols {
		binary.LittleEndian.PutUint32(m.at(0, j), binary.LittleEndian.Uint32(m.at(0, j))|1)
		sum += binary.LittleEndian.Uint32(m.at(0, j))
		product *= binary.LittleEndian.Uint32(m.at(0, j))
	}
	for op, w := range map[fuse.Reduction]uint32{fuse.ReduceSum: sum, fuse.ReduceProd: product} {
		got := perform(t, op, m, false, folders[1])
		if v := binary.LittleEndian.Uint32(got.bytes); v != w {
			t.Errorf("%s: got %d, want %d", opNames[op], v, w)
		}
	}
}

func TestNaN(t *testing.T) {
	m := newMatrix(fuse.F32, 1, 3000, 0, 3000)
	binary.LittleEndian.PutUint32(m.at(0, 1717), 0x7fc00000)
	for op := range opNames {
		for _, device := range folders {
			if got := perform(t, op, m, false, device); !math.IsNaN(got.get(0, 0)) {
				t.Errorf("%s: NaN was lost: %v", opNames[op], got.get(0, 0))
			}
		}
	}
}

// TestAccuracy adds two million numbers.
func TestAccuracy(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m := newMatrix(fuse.F32, 1, 2_000_003, 0, 2_000_003)
	m.fill(rng)
	w := wantFold(fuse.ReduceSum, &m, false, 0)
	for _, device := range folders[1:] {
		if got := perform(t, fuse.ReduceSum, m, false, device); math.Abs(got.get(0, 0)-w) > 1e-6*w {
			t.Errorf("got %v, want %v", got.get(0, 0), w)
		}
	}
}

// TestPasses checks plans at sizes that no reference should run at.
func TestPasses(t *testing.T) {
	for _, s := range [][2]int{{1, 1 << 30}, {1 << 30, 1}, {100_000, 100_000}, {5, 70_000_000}, {1, 1}, {300, 17}} {
		for _, device := range folders {
			rows, cols := s[0], s[1]
			l, parts := FoldRows(Fold{}, rows, cols, true, device)
			checkPass(t, l, parts)
			lanes := parts
			if l.form == foldTree {
				lanes *= tree256.size
			}
			if turns := shaders.Ceil(shaders.Ceil(cols, 4), lanes); turns > shaders.LoopLimit {
				t.Errorf("rows of %d x %d: %d turns", rows, cols, turns)
			}
			l, parts = FoldCols(Fold{}, rows, cols, true, device)
			checkPass(t, l, parts)
			if turns := shaders.Ceil(rows, parts); turns > shaders.LoopLimit {
				t.Errorf("columns of %d x %d: %d turns", rows, cols, turns)
			}
		}
	}
}

func TestFoldTexts(t *testing.T) {
	seen := map[string]string{}
	for bits := range 4 {
		for op := range opNames {
			m := newMatrix(fuse.F32, 1, 1, 0, 1)
			l, _ := FoldRows(Fold{Op: op}, 1, 1, true, &Device{Software: bits&1 != 0})
			if bits&2 != 0 {
				l, _ = FoldCols(Fold{Op: op}, 300*bits, 1000, true, &Device{Software: bits&1 != 0})
			}
			p := l.Program(head(&m))
			name := p.Name + " " + opNames[op]
			if old, ok := seen[p.Source]; ok {
				t.Errorf("%s and %s have one text", old, name)
			}
			seen[p.Source] = name
			if strings.Contains(p.Source, "@fuse") || strings.Contains(p.Source, "@unroll") {
				t.Errorf("%s is not specialised", p.Name)
			}
			if barrier := strings.Contains(p.Source, "workgroupBarrier"); barrier != (l.form == foldTree) {
				t.Errorf("%s: barrier %v", p.Name, barrier)
			}
		}
	}
}
