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

// softRows holds rows of float32, each followed by elements that belong to nobody. Rows begin with vectors.
type softRows struct {
	n, cols, stride int
	bytes           []byte
}

func newRows(n, cols int) softRows {
	stride := 4 * quads(cols+1)
	return softRows{n, cols, stride, make([]byte, 4*n*stride)}
}

func (r *softRows) at(i, j int) []byte { return r.bytes[4*(i*r.stride+j):] }

func (r *softRows) get(i, j int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(r.at(i, j))))
}

func (r *softRows) set(i, j int, v float64) {
	binary.LittleEndian.PutUint32(r.at(i, j), math.Float32bits(float32(v)))
}

// normalise computes the softmax in place.
func normalise(t *testing.T, r *softRows, l *Launch) {
	t.Helper()
	view := fuse.View{Type: fuse.F32, Class: fuse.Gather}
	if l.form == softmaxHeld {
		view.Class = fuse.Vector
	}
	f := &fuse.Func{Code: []fuse.Instr{{Op: fuse.OpLoad}}, Loads: []fuse.View{view}, Store: view, Slots: []fuse.Slot{{Vec: view.Class == fuse.Vector}}}
	program := l.Program(f)
	place := fuse.Place{Row: r.stride, Col: 1}
	launched(t, program, l.Groups, f.Params(shaders.Words(nil, l.Shape...), place, []fuse.Place{place}, nil), [][]byte{r.bytes})
}

// wantSoftmax is the softmax of a row in float64.
func wantSoftmax(r *softRows, i int, log bool) []float64 {
	top, sum := math.Inf(-1), 0.0
	for j := range r.cols {
		top = math.Max(top, r.get(i, j))
	}
	for j := range r.cols {
		sum += math.Exp(r.get(i, j) - top)
	}
	w := make([]float64, r.cols)
	for j := range w {
		w[j] = math.Exp(r.get(i, j)-top) / sum
		if log {
			w[j] = r.get(i, j) - top - math.Log(sum)
		}
	}
	return w
}

func TestSoftmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cols := range []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 129, 3000} {
		for bits := range 2 * len(folders) {
			log, device := bits&1 != 0, folders[bits/2]
			r := newRows(6, cols)
			for i := range r.n {
				for j := range cols {
					r.set(i, j, rng.NormFloat64()*10)
				}
				binary.LittleEndian.PutUint32(r.at(i, cols), 0xdeadbeef)
			}
			r.set(0, cols/2, math.Inf(-1))
			r.set(1, cols/2, 1e30)
			r.set(2, cols/2, math.NaN())
			for j := range cols {
				r.set(3, j, math.Inf(-1))
			}
			var w [][]float64
			for i := range r.n {
				w = append(w, wantSoftmax(&r, i, log))
			}
			normalise(t, &r, Softmax(r.n, cols, log, true, device))
			for i := range r.n {
				for j, v := range w[i] {
					got := r.get(i, j)
					if !(math.Abs(got-v) <= 1e-6*max(1, math.Abs(v))) && !(math.IsNaN(got) && math.IsNaN(v)) && got != v {
						t.Fatalf("%d columns, log %v: element %d, %d: got %v, want %v", cols, log, i, j, got, v)
					}
				}
				if binary.LittleEndian.Uint32(r.at(i, cols)) != 0xdeadbeef {
					t.Fatalf("%d columns: wrote beyond row %d", cols, i)
				}
			}
		}
	}
}

func TestSoftmaxLaunches(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {1024, 1024}, {1, longestRow}, {1, longestRow + 1}, {1 << 20, 3}, {200_000, 100}, {50, 32}, {50, 33}} {
		for _, software := range []bool{true, false} {
			n, cols := s[0], s[1]
			l := Softmax(n, cols, false, true, &Device{Software: software})
			group := l.form == softmaxGroup
			if group != (!software || cols > longestRow) {
				t.Errorf("%d x %d, software %v: %s", n, cols, software, l.Name())
			}
			if short := l.form == softmaxShort; short != (software && cols <= 4*keptRow) || short && l.params[2] != quads(cols) {
				t.Errorf("%d x %d, software %v: %s", n, cols, software, l.Name())
			}
			size := l.params[1]
			done := int(l.Groups[0]) * int(l.Groups[1])
			if !group {
				done *= size
			}
			if done < n || l.Groups[0] > shaders.MaxGroups || size < 8 || size > 256 {
				t.Errorf("%d x %d: %+v does not cover the rows", n, cols, l)
			}
			// a turn for sixteen elements and for each of the rest, and one for each four
			if turns := cols/16 + 4 + cols/4 + 1; !group && turns > shaders.LoopLimit {
				t.Errorf("%d columns: %d turns", cols, turns)
			}
		}
	}
}

func TestSoftmaxTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, cols := range []int{10, 10_000} {
		for bits := range 4 {
			l := Softmax(5, cols, bits&1 != 0, true, &Device{Software: bits&2 != 0})
			p := l.Program(identity(fuse.View{Type: fuse.F32, Class: fuse.Vector}))
			seen[p.Source] = true
			if strings.Contains(p.Source, "@fuse") || strings.Contains(p.Source, "@unroll") {
				t.Errorf("%s is not specialised", p.Name)
			}
			if barrier := strings.Contains(p.Source, "workgroupBarrier"); barrier != (l.form == softmaxGroup) {
				t.Errorf("%s: barrier %v", p.Name, barrier)
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d texts", len(seen))
	}
}
