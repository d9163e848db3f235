// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestView are the rows of CreateView.
func TestView(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		a := must(ndarray.FromSlice(dev, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
		smaller := must(a.View(dtype.Float32, 0, 4))
		holds(t, "smaller", smaller, float32(1), 2, 3, 4)
		other := must(a.View(dtype.Uint16, 0, 4))
		holds(t, "of another type", other, uint16(0), 0x3f80, 0, 0x4000)
		if smaller.UseCount() != 1 || a.UseCount() != 3 {
			t.Errorf("counts %d and %d", smaller.UseCount(), a.UseCount())
		}
		is(t, "larger", second(a.View(dtype.Float32, 0, 7)), buffer.ErrShort)
		is(t, "larger type", second(a.View(dtype.Float64, 0, 4)), buffer.ErrShort)
		at := must(a.View(dtype.Float32, 8, 2, 2))
		holds(t, "from byte 8", at, float32(3), 4, 5, 6)
		deeper := must(at.View(dtype.Float32, 4, 3))
		holds(t, "from byte 4 of that", deeper, float32(4), 5, 6)
		unaligned := must(a.View(dtype.Int8, 3, 5))
		holds(t, "from byte 3", unaligned, int8(0x3f), 0, 0, 0, 0x40)
		end := must(a.View(dtype.Float32, 24, 0))
		is(t, "beyond", second(a.View(dtype.Float32, 12, 4)), buffer.ErrShort)
		is(t, "at a bad byte", second(a.View(dtype.Float32, 25, 0)), buffer.ErrIndex)
		is(t, "before", second(a.View(dtype.Float32, -4, 1)), buffer.ErrIndex)
		is(t, "far beyond", second(a.View(dtype.Float32, math.MaxInt, 1)), buffer.ErrIndex)
		turned := must(a.Transpose())
		is(t, "of what has gaps", second(turned.View(dtype.Float32, 0, 6)), buffer.ErrStride)
		is(t, "reshaped with gaps", second(turned.Reshape(6)), buffer.ErrStride)
		is(t, "reshaped to more", second(a.Reshape(4, 2)), buffer.ErrShape)
		tall := must(a.Reshape(3, 1, 2))
		holds(t, "reshaped", tall, float32(1), 2, 3, 4, 5, 6)
		column := must(a.Slice(ndarray.Region{Starts: []int{0, 1}, Ends: []int{2, 2}}))
		is(t, "of a column", second(column.View(dtype.Float32, 0, 2)), buffer.ErrStride)
		row := must(a.Slice(ndarray.Region{Starts: []int{1, 0}, Ends: []int{2, 3}}))
		view := must(row.View(dtype.Float32, 0, 3))
		holds(t, "of a row", view, float32(4), 5, 6)
		closed(t, dev, a, smaller, other, at, deeper, unaligned, end, turned, tall, column, row, view)
	})
}

// TestContiguous are DLPack's rules.
func TestContiguous(t *testing.T) {
	dev := open(t, "cpu")
	data := count(64)
	for _, c := range []struct {
		shape, strides []int
		want           bool
	}{
		{[]int{2, 3}, []int{3, 1}, true},
		{[]int{2, 3}, nil, true},
		{[]int{}, nil, true},
		{[]int{3, 2}, []int{1, 3}, false},
		{[]int{2, 3}, []int{4, 1}, false},
		{[]int{1, 3}, []int{17, 1}, true},
		{[]int{3, 1}, []int{1, -40}, true},
		{[]int{1, 1}, []int{math.MaxInt, math.MinInt}, true},
		{[]int{2, 0, 3}, []int{5, 5, 5}, true},
		{[]int{3}, []int{2}, false},
		{[]int{3}, []int{0}, false},
		{[]int{2, 1, 3, 1}, []int{3, 9, 1, 9}, true},
	} {
		a, err := ndarray.Wrap(dev, data, c.shape, ndarray.Placement{Strides: c.strides})
		check(t, err)
		if got := a.IsContiguous(); got != c.want {
			t.Errorf("%v by %v: %v", c.shape, c.strides, got)
		}
		if _, err := a.View(dtype.Int32, 0, a.Len()); (err == nil) != c.want {
			t.Errorf("view of %v by %v: %v", c.shape, c.strides, err)
		}
		check(t, a.Close())
	}
}

// model is an array in Go: what its elements are, by where they lie.
type model struct {
	shape []int
	cells []int // index into memory of each element, in C order
}

func (m model) pick(shape []int, from func(at []int) []int) model {
	out := model{shape: shape}
	at := make([]int, len(shape))
	if slices.Contains(shape, 0) {
		return out
	}
	for {
		i := 0
		for d, x := range from(at) {
			i = i*m.shape[d] + x
		}
		out.cells = append(out.cells, m.cells[i])
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return out
		}
	}
}

// change takes a random view of an array and of its model.
func change(t *testing.T, rng *rand.Rand, a *ndarray.Array, m model) (*ndarray.Array, model) {
	t.Helper()
	must := must[*ndarray.Array](t)
	n := len(m.shape)
	switch kind := rng.IntN(4); {
	case kind == 0 && n > 0: // slice, forwards or backwards
		starts, ends, steps, shape := make([]int, n), make([]int, n), make([]int, n), make([]int, n)
		for d, dim := range m.shape {
			steps[d] = 1 + rng.IntN(3)
			starts[d] = rng.IntN(dim + 1)
			ends[d] = starts[d] + rng.IntN(dim-starts[d]+1)
			if dim > 0 && rng.IntN(2) == 0 {
				steps[d] = -steps[d]
				starts[d] = rng.IntN(dim)
				ends[d] = starts[d] - rng.IntN(starts[d]+2)
			}
			for i := starts[d]; steps[d] > 0 && i < ends[d] || steps[d] < 0 && i > ends[d]; i += steps[d] {
				shape[d]++
			}
		}
		return must(a.Slice(ndarray.Region{Starts: starts, Ends: ends, Steps: steps})), m.pick(shape, func(at []int) []int {
			from := make([]int, n)
			for d := range at {
				from[d] = starts[d] + at[d]*steps[d]
			}
			return from
		})
	case kind == 1:
		axes := rng.Perm(n)
		shape := make([]int, n)
		for d, x := range axes {
			shape[d] = m.shape[x]
		}
		return must(a.Transpose(axes...)), m.pick(shape, func(at []int) []int {
			from := make([]int, n)
			for d, x := range axes {
				from[x] = at[d]
			}
			return from
		})
	case kind == 2 && n > 0 && m.shape[0] > 0:
		i := rng.IntN(m.shape[0])
		return must(a.Index(i)), m.pick(m.shape[1:], func(at []int) []int { return append([]int{i}, at...) })
	case a.IsContiguous():
		return must(a.Reshape(len(m.cells))), model{[]int{len(m.cells)}, m.cells}
	}
	return must(a.Share()), m
}

// TestViews takes random views of views in memory of every kind, and reads and writes through them.
func TestViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := rand.New(rand.NewPCG(7, 8))
		rounds := 400
		if dev.Info().Driver != "cpu" {
			rounds = 60
		}
		for range rounds {
			shape := make([]int, 1+rng.IntN(4))
			n := 1
			for d := range shape {
				shape[d] = 1 + rng.IntN(5)
				n *= shape[d]
			}
			viewsOf[int32](t, dev, rng, shape, n)
			viewsOf[int8](t, dev, rng, shape, n)
			viewsOf[int64](t, dev, rng, shape, n)
			viewsOf[int16](t, dev, rng, shape, n)
		}
		closed(t, dev)
	})
}

func viewsOf[T int8 | int16 | int32 | int64](t *testing.T, dev *gpu.Device, rng *rand.Rand, shape []int, n int) {
	t.Helper()
	memory := make([]T, n)
	m := model{shape: shape}
	for i := range memory {
		memory[i] = T(i)
		m.cells = append(m.cells, i)
	}
	for name, a := range from(t, dev, memory, shape...) {
		memory, m := slices.Clone(memory), m
		views := []*ndarray.Array{a}
		for range 3 {
			var v *ndarray.Array
			v, m = change(t, rng, views[len(views)-1], m)
			views = append(views, v)
		}
		v := views[len(views)-1]
		if !slices.Equal(v.Shape(), m.shape) {
			t.Fatalf("%s: shape %v, want %v", name, v.Shape(), m.shape)
		}
		want := make([]T, len(m.cells))
		for i, c := range m.cells {
			want[i] = memory[c]
		}
		holds(t, name, v, want...)
		for i, c := range m.cells {
			want[i] = T(rng.IntN(100))
			memory[c] = want[i]
		}
		src, err := ndarray.FromSlice(dev, want)
		check(t, err)
		check(t, v.CopyFrom(t.Context(), src))
		holds(t, name+", written", v, want...)
		holds(t, name+", all", a, memory...)
		for _, v := range append(views, src) {
			check(t, v.Close())
		}
	}
}

func TestViewMistakes(t *testing.T) {
	dev := open(t, "cpu")
	a, err := ndarray.FromSlice(dev, count(6), 2, 3)
	check(t, err)
	slice := func(s, e, st []int) error { return second(a.Slice(ndarray.Region{Starts: s, Ends: e, Steps: st})) }
	for name, c := range map[string]struct{ err, want error }{
		"too few bounds":      {slice([]int{0}, []int{1}, nil), buffer.ErrShape},
		"too few ends":        {slice([]int{0, 0}, []int{1}, nil), buffer.ErrShape},
		"too many steps":      {slice([]int{0, 0}, []int{1, 1}, []int{1, 1, 1}), buffer.ErrShape},
		"start below 0":       {slice([]int{-1, 0}, []int{1, 1}, nil), buffer.ErrIndex},
		"end beyond":          {slice([]int{0, 0}, []int{1, 4}, nil), buffer.ErrIndex},
		"end before start":    {slice([]int{0, 2}, []int{1, 1}, nil), buffer.ErrIndex},
		"step 0":              {slice([]int{0, 0}, []int{1, 1}, []int{1, 0}), buffer.ErrIndex},
		"backwards from end":  {slice([]int{0, 3}, []int{1, 0}, []int{1, -1}), buffer.ErrIndex},
		"backwards below -1":  {slice([]int{0, 2}, []int{1, -2}, []int{1, -1}), buffer.ErrIndex},
		"index beyond":        {second(a.Index(2)), buffer.ErrIndex},
		"index below 0":       {second(a.Index(0, -1)), buffer.ErrIndex},
		"too many indices":    {second(a.Index(0, 0, 0)), buffer.ErrShape},
		"axis twice":          {second(a.Transpose(1, 1)), buffer.ErrIndex},
		"axis beyond":         {second(a.Transpose(0, 2)), buffer.ErrIndex},
		"too few axes":        {second(a.Transpose(0)), buffer.ErrShape},
		"negative reshape":    {second(a.Reshape(-2, -3)), buffer.ErrSize},
		"overflowing reshape": {second(a.Reshape(1<<62, 1<<62)), buffer.ErrSize},
	} {
		is(t, name, c.err, c.want)
	}
	for _, step := range []int{math.MaxInt, math.MinInt, -math.MaxInt} { // the largest steps leave one element
		start, end := 0, 3
		if step < 0 {
			start, end = 2, -1
		}
		one, err := a.Slice(ndarray.Region{Starts: []int{0, start}, Ends: []int{1, end}, Steps: []int{1, step}})
		check(t, err)
		holds(t, "one", one, int32(start))
		check(t, one.Close())
	}
	if a.UseCount() != 1 {
		t.Errorf("count %d after views that failed", a.UseCount())
	}
	closed(t, dev, a)
}
