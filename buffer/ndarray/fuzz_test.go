// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
)

// extremes are numbers at which sums, products and conversions go wrong.
var extremes = []int{
	math.MinInt, math.MaxInt, math.MinInt + 1, math.MaxInt - 1, 1 << 31, 1 << 32, -1 << 31, 1 << 62, 1 << 61, -1 << 62, math.MaxInt / 2,
	math.MaxInt / 64, math.MaxInt/64 + 1, 1 << 40,
}

// numbers reads a fuzzer's bytes as numbers, most of them small.
type numbers []byte

func (n *numbers) byte() byte {
	if len(*n) == 0 {
		return 0
	}
	b := (*n)[0]
	*n = (*n)[1:]
	return b
}

func (n *numbers) int() int {
	b := int(n.byte())
	if b >= 256-len(extremes) {
		return extremes[b-256+len(extremes)]
	}
	return b%9 - 2
}

// list reads up to 4 numbers.
func (n *numbers) list() []int {
	v := make([]int, n.byte()%5)
	for i := range v {
		v[i] = n.int()
	}
	return v
}

// viewModel is an array of uint16 as the documentation says: an element lies at offset, in bytes, plus twice the sum of indices times
// strides.
type viewModel struct {
	shape, strides []int
	offset         int
}

const (
	fuzzBytes = 200 // of the wrapped memory; as many guards lie on both sides of it
	maxShown  = 4096
)

// fits reports whether all elements lie in the memory, counted without overflow, and how many there are.
func (m viewModel) fits() (n int, ok bool) {
	all, lo, hi := big.NewInt(1), big.NewInt(int64(m.offset)), big.NewInt(int64(m.offset))
	for _, d := range m.shape {
		if d < 0 {
			return 0, false
		}
		all.Mul(all, big.NewInt(int64(d)))
	}
	if all.Sign() == 0 {
		return 0, m.offset >= 0 && m.offset <= fuzzBytes
	}
	for i, d := range m.shape {
		far := new(big.Int).Mul(big.NewInt(2*int64(d-1)), big.NewInt(int64(m.strides[i])))
		if far.Sign() < 0 {
			lo.Add(lo, far)
		} else {
			hi.Add(hi, far)
		}
	}
	hi.Add(hi, big.NewInt(2))
	ok = lo.Sign() >= 0 && hi.Cmp(big.NewInt(fuzzBytes)) <= 0
	if all.Cmp(big.NewInt(maxShown)) > 0 { // elements that repeat
		return maxShown + 1, ok
	}
	return int(all.Int64()), ok
}

// places returns where the elements lie, in C order.
func (m viewModel) places() (list []int) {
	var walk func(d, at int)
	walk = func(d, at int) {
		if d == len(m.shape) {
			list = append(list, at)
			return
		}
		for i := range m.shape[d] {
			walk(d+1, at+2*i*m.strides[d])
		}
	}
	if !m.empty() {
		walk(0, m.offset)
	}
	return list
}

func (m viewModel) empty() bool { return slices.Contains(m.shape, 0) }

// contiguous reports whether the elements lie in C order without gaps.
func (m viewModel) contiguous() bool {
	for i, at := range m.places() {
		if at != m.offset+2*i {
			return false
		}
	}
	return true
}

// inOrder is an array without gaps.
func inOrder(shape []int, offset int) viewModel {
	m := viewModel{shape, make([]int, len(shape)), offset}
	step := 1
	for d := len(shape) - 1; d >= 0; d-- {
		m.strides[d] = step
		step *= max(1, shape[d])
	}
	return m
}

// small counts elements, or is not ok where there are more than there is memory.
func small(shape []int) (n int, ok bool) {
	all := big.NewInt(1)
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		all.Mul(all, big.NewInt(int64(d)))
	}
	return int(all.Int64()), all.Cmp(big.NewInt(fuzzBytes)) <= 0
}

// part is Slice, in the order of the reference's indices.
func (m viewModel) part(r ndarray.Region) (viewModel, bool) {
	if len(r.Starts) != len(m.shape) || len(r.Ends) != len(m.shape) || len(r.Steps) != len(m.shape) {
		return m, false
	}
	out := viewModel{make([]int, len(m.shape)), slices.Clone(m.strides), m.offset}
	for d, start := range r.Starts {
		end, step := big.NewInt(int64(r.Ends[d])), big.NewInt(int64(r.Steps[d]))
		up := step.Sign() > 0 && start >= 0 && start <= r.Ends[d] && r.Ends[d] <= m.shape[d]
		down := step.Sign() < 0 && r.Ends[d] >= -1 && r.Ends[d] <= start && start < m.shape[d]
		if !up && !down {
			return m, false
		}
		for i := big.NewInt(int64(start)); i.Cmp(end) == step.Sign()*-1; i.Add(i, step) {
			out.shape[d]++
		}
		if out.shape[d] > 1 {
			out.strides[d] *= r.Steps[d]
		}
	}
	if !out.empty() {
		for d, start := range r.Starts {
			if start != 0 {
				out.offset += 2 * start * m.strides[d]
			}
		}
	}
	return out, true
}

// step takes a view of a view, of the array and of the model.
func (m viewModel) step(a *ndarray.Array, n *numbers) (v *ndarray.Array, want viewModel, ok bool, err error) {
	switch n.byte() % 5 {
	case 0:
		r := ndarray.Region{Starts: n.list(), Ends: n.list(), Steps: n.list()}
		want, ok = m.part(r)
		v, err = a.Slice(r)
	case 1:
		at := n.list()
		if ok = len(at) <= len(m.shape); ok {
			want = viewModel{m.shape[len(at):], m.strides[len(at):], m.offset}
			for d, i := range at {
				if ok = ok && i >= 0 && i < m.shape[d]; ok && i != 0 {
					want.offset += 2 * i * m.strides[d]
				}
			}
		}
		v, err = a.Index(at...)
	case 2:
		axes := n.list()
		order := slices.Clone(axes)
		if len(axes) == 0 {
			for d := range slices.Backward(m.shape) {
				order = append(order, d)
			}
		}
		sorted := slices.Sorted(slices.Values(order))
		ok = len(order) == len(m.shape)
		for d := 0; ok && d < len(sorted); d++ {
			ok = sorted[d] == d
		}
		if want.offset = m.offset; ok {
			for _, d := range order {
				want.shape, want.strides = append(want.shape, m.shape[d]), append(want.strides, m.strides[d])
			}
		}
		v, err = a.Transpose(axes...)
	case 3:
		shape := n.list()
		k, fits := small(shape)
		ok = fits && k == len(m.places()) && m.contiguous()
		want = inOrder(shape, m.offset)
		v, err = a.Reshape(shape...)
	default:
		offset, shape := n.int()&^1, n.list() // numbers of the model begin at even bytes
		k, fits := small(shape)
		left := 2*len(m.places()) - offset
		ok = fits && offset >= 0 && left >= 0 && 2*k <= left && m.contiguous()
		want = inOrder(shape, m.offset+offset)
		v, err = a.View(dtype.Uint16, offset, shape...)
	}
	return v, want, ok, err
}

// FuzzViews: an array in wrapped memory with any shape, strides and offset, and views of views of it with any numbers, are errors or
// have exactly the elements that the documentation says, for reading and for writing, and leave the memory around them alone.
func FuzzViews(f *testing.F) {
	dev := open(f, "cpu")
	f.Add([]byte{2, 5, 6, 2, 8, 3, 2, 0, 2, 2, 3, 2, 4, 5, 2, 3, 3})
	f.Add([]byte{3, 4, 4, 4, 0, 2, 3, 2, 8, 10, 2, 0, 4, 1, 1, 3})
	f.Add([]byte{1, 8, 1, 1, 9, 0, 1, 8, 1, 1, 1, 1})
	f.Add([]byte{1, 3, 1, 243, 2})
	f.Add([]byte{2, 3, 243, 2, 250, 250, 6})
	f.Add([]byte{0, 0, 2, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := numbers(data)
		m := viewModel{shape: n.list()}
		if n.byte()%2 == 0 {
			m.strides = make([]int, len(m.shape))
			for d := range m.strides {
				m.strides[d] = n.int()
			}
		}
		given := m.strides
		m.offset = 2 * max(0, min(n.int(), fuzzBytes))
		if k, ok := small(m.shape); m.strides == nil && ok && k > 0 {
			m.strides = inOrder(m.shape, 0).strides
		} else if m.strides == nil {
			m.strides = make([]int, len(m.shape)) // of an array that cannot be, or has no elements
			m.offset = max(m.offset, 2)
		}
		count, want := m.fits()
		if k, ok := small(m.shape); given == nil && !ok && k != 0 {
			want = false
		}
		all := make([]uint16, 3*fuzzBytes/2)
		for i := range all {
			all[i] = uint16(i + 1)
		}
		mem := all[fuzzBytes/2 : fuzzBytes : fuzzBytes]
		a, err := ndarray.Wrap(dev, mem, m.shape, ndarray.Placement{Strides: given, Offset: m.offset})
		if (err == nil) != want && count <= maxShown {
			t.Fatalf("%+v: %v, want success: %v", m, err, want)
		}
		if err != nil || count > maxShown {
			return
		}
		defer a.Close()
		for steps := 0; len(n) > 0 && steps < 8; steps++ {
			v, next, ok, err := m.step(a, &n)
			if (err == nil) != ok {
				t.Fatalf("a view of %+v, %+v: %v, want success: %v", m, next, err, ok)
			}
			if err != nil {
				break
			}
			defer v.Close()
			a, m = v, next
		}
		checkView(t, a, m, all)
	})
}

// checkView reads a view and writes it, and compares its elements and those around it.
func checkView(t *testing.T, a *ndarray.Array, m viewModel, all []uint16) {
	t.Helper()
	if !slices.Equal(a.Shape(), m.shape) {
		t.Fatalf("shape %v, want %v", a.Shape(), m.shape)
	}
	places := m.places()
	wanted := slices.Clone(all)
	var want []uint16
	for _, at := range places {
		want = append(want, all[fuzzBytes/2+at/2])
		wanted[fuzzBytes/2+at/2] = 60000
	}
	holds(t, "view", a, want...)
	if a.Fill(t.Context(), 60000) == nil { // else elements share memory
		check(t, a.Sync(t.Context()))
	} else {
		wanted = slices.Clone(wanted[:0])
		for i := range len(all) {
			wanted = append(wanted, uint16(i+1))
		}
	}
	if !slices.Equal(all, wanted) {
		t.Fatalf("%+v: memory is %v, want %v", m, all, wanted)
	}
}
