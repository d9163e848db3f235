// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// odd is work of sizes that no vector, tile or workgroup divides.
var odd = []Work{
	{"product", 67, 45, 131, 0},
	{"product", 37, 53, 129, 3},
	{"vector", 1, 301, 131, 0},
	{"vector", 1, 77, 515, 2},
	{"sparse", 301, 37, 7, 0},
	{"reduce-rows", 1, 70001, 0, 0},
	{"reduce-rows", 33, 4099, 0, 0},
	{"reduce-columns", 5001, 37, 0, 0},
	{"reduce-columns", 301, 299, 0, 0},
	{"softmax", 21, 1233, 0, 0},
	{"transpose", 204, 86, 0, 0},
	{"elementwise", 37, 331, 0, 0},
	{"grid", 35, 333, 0, 0},
}

// reference computes what the work does in float64, and how far each result may be off.
func (w *Work) reference(a, b []float32) (want []float64, slack float64) {
	x := func(i, j, rows, cols int, turned bool, data []float32) float64 {
		if turned {
			i, j, cols = j, i, rows
		}
		return float64(data[i*cols+j])
	}
	at := func(i, j int) float64 { return float64(a[i*w.Cols+j]) }
	switch w.Family {
	case "product", "vector":
		for i := range w.Rows {
			for j := range w.Cols {
				sum := 0.0
				for k := range w.Inner {
					sum += x(i, k, w.Rows, w.Inner, w.Layout&1 != 0, a) * x(k, j, w.Inner, w.Cols, w.Layout&2 != 0, b)
				}
				want = append(want, sum)
			}
		}
		return want, float64(w.Inner) * 0x1p-24
	case "sparse":
		want = make([]float64, w.Rows*w.Cols)
		values := numbers(w.Rows, w.Inner)
		indices, pointers := w.structure()
		for i := range w.Rows {
			for q := pointers[i]; q < pointers[i+1]; q++ {
				for j := range w.Cols {
					want[i*w.Cols+j] += float64(math.Float32frombits(binary.LittleEndian.Uint32(values[4*q:]))) * at(int(indices[q]), j)
				}
			}
		}
		return want, float64(w.Inner) * 0x1p-24
	case "reduce-rows", "reduce-columns":
		want = make([]float64, w.Rows)
		if w.Family == "reduce-columns" {
			want = make([]float64, w.Cols)
		}
		for i := range w.Rows {
			for j := range w.Cols {
				if w.Family == "reduce-columns" {
					want[j] += at(i, j)
				} else {
					want[i] += at(i, j)
				}
			}
		}
		return want, float64(w.Rows*w.Cols/len(want)) * 0x1p-24
	case "softmax":
		for i := range w.Rows {
			sum := 0.0
			for j := range w.Cols {
				sum += math.Exp(at(i, j))
			}
			for j := range w.Cols {
				want = append(want, math.Exp(at(i, j))/sum)
			}
		}
		return want, 1e-7
	}
	for i := range w.Rows {
		for j := range w.Cols {
			switch w.Family {
			case "transpose":
				want = append(want, float64(a[j*w.Rows+i]))
			case "grid":
				want = append(want, math.Exp(float64(a[i*(w.Cols+4)+j+4])))
			default:
				want = append(want, at(i, j)/2+float64(b[i*w.Cols+j]))
			}
		}
	}
	return want, 1e-6
}

// TestEveryVariant compares the results of variants on devices with float64. Each has to be compiled, so that short tests try a few of
// each family.
func TestEveryVariant(t *testing.T) {
	for _, driver := range []string{"simd", devtest.Native()} {
		dev := devtest.Open(t, driver)
		tuner := &tuner{dev: dev}
		tried := 0
		for _, w := range odd {
			step := 1
			if !devtest.Long() {
				step = map[bool]int{false: 5, true: 25}[w.multiplies() && w.Family != "sparse"]
			}
			tried += everyVariant(t, tuner, &w, step)
		}
		if tried < 12 {
			t.Errorf("%s: tried %d variants", driver, tried)
		}
	}
}

func everyVariant(t *testing.T, tuner *tuner, w *Work, step int) (tried int) {
	t.Helper()
	must := devtest.Must[[]float32](t)
	b, err := w.build(tuner.dev)
	devtest.Check(t, err)
	defer func() { devtest.Check(t, b.close()) }()
	first, second := must(elements(t.Context(), b.owned[0])), []float32(nil)
	if len(b.owned) > 2 {
		second = must(elements(t.Context(), b.owned[1]))
	}
	want, slack := w.reference(first, second)
	o, ok, err := tuner.offered(t.Context(), w, b)
	devtest.Check(t, err)
	if !ok && (w.Family != "softmax" || tuner.dev.Info().Driver != "simd") {
		t.Errorf("%v has one variant", w)
	}
	for i := len(o.names) - 1; i >= 0; i -= step {
		force(tuner.dev, only(o.class, o.names[i]))
		devtest.Check(t, b.dst.Fill(matrix.Any(math.NaN()))) // nothing of the variant before
		devtest.Check(t, b.dst.Assign(b.expr))
		got := must(elements(t.Context(), b.dst))
		for k, v := range want {
			if !(math.Abs(float64(got[k])-v) <= slack*(1+math.Abs(v))) {
				t.Errorf("%s, %v by %s: element %d is %v, want %v", tuner.dev.Info().Driver, w, o.names[i], k, got[k], v)
				break
			}
		}
		tried++
	}
	force(tuner.dev, nil)
	return tried
}
