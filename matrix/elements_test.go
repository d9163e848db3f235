// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestElements puts elements to places and adds to them, of which some are named often and some are outside.
func TestElements(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(120)
		for turn, size := range [][4]int{{1, 1, 1, 1}, {5, 7, 3, 4}, {9, 4, 1, 70}, {30, 31, 20, 21}, {3, 5, 0, 4}} {
			rows, cols, m, n := size[0], size[1], size[2], size[3]
			x, values := random(rng, rows*cols), random(rng, m*n)
			is, js := make([]int32, m*n), make([]int32, m*n)
			put, added := append([]float32{}, x...), float64s(x)
			for k := range is {
				is[k], js[k] = int32(rng.IntN(rows+2)-1), int32(rng.IntN(cols+2)-1)
				if i, j := int(is[k]), int(js[k]); i >= 0 && i < rows && j >= 0 && j < cols {
					put[i*cols+j] = values[k]
					added[i*cols+j] += float64(values[k])
				}
			}
			a, _ := wrapped(t, dev, forms[turn%len(forms)], rows, cols, x)
			i, j := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, m, n, is)), must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, m, n, js))
			b := must[*dense](t)(matrix.FromSlice(dev, m, n, values))
			same(t, name("put", size), must[[]float32](t)(matrix.PutElements[float32](a, i, j, b).Read(background)), put)
			alikeTo(t, name("add", size), must[[]float32](t)(matrix.AddToElements[float32](a, i, j, b).Read(background)), ref(added), 1e-5)
			one := must[[]float32](t)(matrix.AddToElements[float32](matrix.Fill[float32](rows, cols, 0), i, j, matrix.Fill[float32](1, 1, 1)).On(dev).Read(background))
			count := make([]float32, rows*cols)
			for k := range is {
				if i, j := int(is[k]), int(js[k]); i >= 0 && i < rows && j >= 0 && j < cols {
					count[i*cols+j]++
				}
			}
			same(t, name("count", size), one, count)
			check(t, a.Assign(matrix.PutElements[float32](a, i, j, b)))
			same(t, name("in place", size), must[[]float32](t)(a.Read(background)), put)
			for _, m := range []interface{ Close() error }{a, i, j, b} {
				check(t, m.Close())
			}
		}
		nothingLeft(t, dev)
	})
}

func ref(x []float64) []float32 {
	v := make([]float32, len(x))
	for i := range x {
		v[i] = float32(x[i])
	}
	return v
}

// TestElementsErrors has places and values of sizes that do not fit.
func TestElementsErrors(t *testing.T) {
	a, b := matrix.Fill[float32](3, 3, 0), matrix.Fill[float32](2, 2, 1)
	i, j := matrix.RowIndex(2, 2), matrix.ColIndex(2, 3)
	for what, e := range map[string]*expr{
		"places": matrix.PutElements[float32](a, i, j, b), "values": matrix.AddToElements[float32](a, j, j, b),
	} {
		if !errors.Is(e.Err(), buffer.ErrShape) {
			t.Errorf("%s: error %v", what, e.Err())
		}
	}
}
