// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// sparseParts are the arguments of NewSparse; the tests break them one by one.
type sparseParts struct {
	format            matrix.Format
	rows, cols        int
	values            []float32
	indices, pointers []int32
}

func (p sparseParts) make(dev *gpu.Device) (*sparse, error) {
	return matrix.NewSparse(dev, p.format, p.rows, p.cols, p.values, p.indices, p.pointers)
}

func (p sparseParts) wrap(dev *gpu.Device, opts ...matrix.Options) (*sparse, error) {
	return matrix.WrapSparse(dev, p.format, p.rows, p.cols, p.values, p.indices, p.pointers, opts...)
}

func (p sparseParts) with(values []float32) sparseParts {
	p.values = values
	return p
}

// sound is a matrix of 3x4 (CSR: 4x3) with an empty column.
func sound(f matrix.Format) sparseParts {
	p := sparseParts{f, 3, 4, []float32{1, 2, 3, 4, 5}, []int32{0, 2, 1, 0, 2}, []int32{0, 2, 3, 3, 5}}
	switch f {
	case matrix.CSR:
		p.rows, p.cols = 4, 3
	case matrix.BlockColumn:
		p.values, p.indices, p.pointers = []float32{1, 2, 3, 4, 5, 6}, []int32{1, 3}, nil
	}
	return p
}

// hostile lists what can be wrong with the parts, and what has to be said of it.
var hostile = []struct {
	name  string
	only  []matrix.Format // all if empty
	spoil func(p *sparseParts)
	want  error
}{
	{"unknown format", nil, func(p *sparseParts) { p.format = 200 }, gpu.ErrInvalid},
	{"negative rows", nil, func(p *sparseParts) { p.rows = -1 }, buffer.ErrSize},
	{"negative columns", nil, func(p *sparseParts) { p.cols = math.MinInt }, buffer.ErrSize},
	{"too many rows", nil, func(p *sparseParts) { p.rows = math.MaxInt }, gpu.ErrLimit},
	{"too many columns", nil, func(p *sparseParts) { p.cols = 1 << 31 }, gpu.ErrLimit},
	{"too many values", []matrix.Format{matrix.BlockColumn}, func(p *sparseParts) { p.rows = math.MaxInt32 }, gpu.ErrLimit},
	{"nil values", nil, func(p *sparseParts) { p.values = nil }, buffer.ErrNil},
	{"nil indices", nil, func(p *sparseParts) { p.indices = nil }, buffer.ErrNil},
	{"nil pointers", compressed, func(p *sparseParts) { p.pointers = nil }, buffer.ErrNil},
	{"all nil", compressed, func(p *sparseParts) { p.values, p.indices, p.pointers = nil, nil, nil }, buffer.ErrNil},
	{"no values", nil, func(p *sparseParts) { p.values = []float32{} }, buffer.ErrShort},
	{"short values", nil, func(p *sparseParts) { p.values = p.values[:4] }, buffer.ErrShort},
	{"short indices", compressed, func(p *sparseParts) { p.indices = p.indices[:4] }, buffer.ErrShort},
	{"short ids", blocks, func(p *sparseParts) { p.indices = p.indices[:1] }, buffer.ErrShape},
	{"half a column", blocks, func(p *sparseParts) { p.values = append(p.values, 7) }, buffer.ErrShape},
	{"pointers of blocks", blocks, func(p *sparseParts) { p.pointers = []int32{0} }, buffer.ErrShape},
	{"no pointers", compressed, func(p *sparseParts) { p.pointers = []int32{} }, buffer.ErrShort},
	{"short pointers", compressed, func(p *sparseParts) { p.pointers = p.pointers[:4] }, buffer.ErrShort},
	{"long pointers", compressed, func(p *sparseParts) { p.pointers = append(p.pointers, 5) }, buffer.ErrShape},
	{"first pointer", compressed, func(p *sparseParts) { p.pointers[0] = 1 }, matrix.ErrSparse},
	{"negative first pointer", compressed, func(p *sparseParts) { p.pointers[0] = math.MinInt32 }, matrix.ErrSparse},
	{"last pointer short", compressed, func(p *sparseParts) { p.pointers[4] = 4 }, matrix.ErrSparse},
	{"last pointer beyond", compressed, func(p *sparseParts) { p.pointers[4] = 6 }, matrix.ErrSparse},
	{"pointer backwards", compressed, func(p *sparseParts) { p.pointers[2] = 1 }, matrix.ErrSparse},
	{"pointer negative", compressed, func(p *sparseParts) { p.pointers[1] = -1 }, matrix.ErrSparse},
	{"pointer beyond", compressed, func(p *sparseParts) { p.pointers[3] = math.MaxInt32 }, matrix.ErrSparse},
	{"index negative", nil, func(p *sparseParts) { p.indices[0] = -1 }, buffer.ErrIndex},
	{"index beyond", compressed, func(p *sparseParts) { p.indices[1] = 3 }, buffer.ErrIndex},
	{"id beyond", blocks, func(p *sparseParts) { p.indices[1] = 4 }, buffer.ErrIndex},
	{"index huge", nil, func(p *sparseParts) { p.indices[1] = math.MaxInt32 }, buffer.ErrIndex},
	{"index twice", compressed, func(p *sparseParts) { p.indices[1] = 0 }, matrix.ErrSparse},
	{"index backwards", compressed, func(p *sparseParts) { p.indices[3], p.indices[4] = 2, 0 }, matrix.ErrSparse},
	{"id twice", blocks, func(p *sparseParts) { p.indices[1] = 1 }, matrix.ErrSparse},
	{"ids backwards", blocks, func(p *sparseParts) { p.indices[0], p.indices[1] = 3, 1 }, matrix.ErrSparse},
	{"rows shrink", []matrix.Format{matrix.CSC}, func(p *sparseParts) { p.rows = 0 }, buffer.ErrIndex},
	{"columns shrink", []matrix.Format{matrix.CSR}, func(p *sparseParts) { p.cols = 0 }, buffer.ErrIndex},
}

var (
	compressed = []matrix.Format{matrix.CSC, matrix.CSR}
	blocks     = []matrix.Format{matrix.BlockColumn}
)

// TestSparseHostile breaks every part in turn: a typed error, nothing allocated, nothing released.
func TestSparseHostile(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, f := range formats {
			for _, h := range hostile {
				if len(h.only) > 0 && !slices.Contains(h.only, f) {
					continue
				}
				p := sound(f)
				h.spoil(&p)
				before := dev.Stats()
				released := 0
				a, err := p.make(dev)
				if a != nil || !errors.Is(err, h.want) {
					t.Errorf("%v, %s: %v, want %v", f, h.name, err, h.want)
				}
				a, err = p.wrap(dev, matrix.Options{Release: func() { released++ }})
				if a != nil || !errors.Is(err, h.want) {
					t.Errorf("%v, %s: wrapped: %v, want %v", f, h.name, err, h.want)
				}
				if after := dev.Stats(); after != before || released != 0 {
					t.Errorf("%v, %s: was %+v, is %+v, released %d times", f, h.name, before, after, released)
				}
			}
			p := sound(f)
			a := must[*sparse](t)(p.wrap(dev))
			samePartsOf(t, "sound", a, p.values, p.indices, p.pointers)
			check(t, a.Close())
		}
		nothingLeft(t, dev)
	})
}

// TestSparseWrapped counts bytes and releases: values, rows and columns go up once, values come back at Sync, and the release function is
// called when the last of all shares is closed.
func TestSparseWrapped(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, f := range formats {
			p := sound(f)
			mine := slices.Clone(p.values)
			released := 0
			start := dev.Stats()
			s := must[*sparse](t)(p.with(mine).wrap(dev, matrix.Options{Release: func() { released++ }}))
			if dev.Stats() != start || !s.External() || s.NNZ() != len(mine) || s.DType() != matrix.Float32 {
				t.Errorf("%v: wrapping did something: %+v", f, dev.Stats())
			}
			d := &dense{}
			for range 3 {
				check(t, d.Assign(s))
			}
			if up := dev.Stats().BytesUp - start.BytesUp; up != uint64(4*3*len(mine)) {
				t.Errorf("%v: %d bytes went up", f, up)
			}
			v := s.Values()
			if !v.External() {
				t.Errorf("%v: the values are not external", f)
			}
			check(t, v.Assign(matrix.Scale(2, v)))
			same(t, "before Sync", mine, p.values)
			down := dev.Stats().BytesDown
			check(t, s.Sync(background))
			if n := dev.Stats().BytesDown - down; n != uint64(4*len(mine)) {
				t.Errorf("%v: %d bytes came down", f, n)
			}
			for k := range mine {
				if mine[k] != 2*p.values[k] {
					t.Errorf("%v: value %d is %v", f, k, mine[k])
				}
			}
			if err := s.Append(2, 2, 1); !errors.Is(err, matrix.ErrExternalResize) {
				t.Errorf("%v: Append: %v", f, err)
			}
			al := s.Alias()
			slice := s.ColumnSlice(1, 2)
			if f == matrix.CSC {
				check(t, slice.Err())
			} else if err := slice.Err(); !errors.Is(err, gpu.ErrUnsupported) {
				t.Errorf("%v: slice: %v", f, err)
			}
			own := must[*sparse](t)(s.Clone())
			check(t, errors.Join(s.Close(), s.Close(), al.Close(), slice.Close(), slice.Close()))
			if released != 0 {
				t.Errorf("%v: released while the values have a view", f)
			}
			check(t, v.Close())
			if released != 1 {
				t.Errorf("%v: released %d times", f, released)
			}
			samePartsOf(t, "clone", own, mine, p.indices, p.pointers)
			if own.External() {
				t.Errorf("%v: the clone is external", f)
			}
			check(t, errors.Join(own.Close(), d.Close(), v.Close(), s.Close()))
			if released != 1 {
				t.Errorf("%v: released %d times in the end", f, released)
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseTouch changes wrapped parts, well and badly.
func TestSparseTouch(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, f := range compressed {
			p := sound(f)
			s := must[*sparse](t)(p.wrap(dev))
			other := s.Alias()
			y := must[*dense](t)(matrix.FromSlice(dev, p.cols, 1, []float32{1, 10, 100, 1000}[:p.cols]))
			d, c := &dense{}, &dense{}
			check(t, d.Assign(s))
			check(t, c.Mul(other, y))
			copy(p.pointers, []int32{0, 1, 2, 4, 5})
			copy(p.indices, []int32{2, 2, 0, 1, 1})
			p.values[0] = -1
			check(t, s.Touch())
			check(t, d.Assign(s))
			want := map[matrix.Format][]float32{
				matrix.CSC: {0, 0, 3, 0, 0, 0, 4, 5, -1, 2, 0, 0},
				matrix.CSR: {0, 0, -1, 0, 0, 2, 3, 4, 0, 0, 5, 0},
			}[f]
			same(t, "after Touch", must[[]float32](t)(d.Read(background)), want)
			x, bound := rowMajorProduct(want, must[[]float32](t)(y.Read(background)), p.rows, p.cols, 1)
			check(t, c.Mul(other, y))
			within(t, "product of an alias after Touch", must[[]float32](t)(c.Read(background)), x, bound)

			p.indices[4] = 77
			if err := s.Touch(); !errors.Is(err, buffer.ErrIndex) {
				t.Errorf("%v: bad index: %v", f, err)
			}
			check(t, d.Assign(s))
			same(t, "after a bad Touch", must[[]float32](t)(d.Read(background)), want)
			for what, err := range map[string]error{
				"clone": second(s.Clone()), "clone of an alias": second(other.Clone()), "expression": second(matrix.Neg(s).Sparse()),
			} {
				if !errors.Is(err, buffer.ErrIndex) {
					t.Errorf("%v: %s after a bad Touch: %v", f, what, err)
				}
			}
			p.indices[4], p.pointers[2] = 1, -5
			if err := s.Touch(); !errors.Is(err, matrix.ErrSparse) {
				t.Errorf("%v: bad pointer: %v", f, err)
			}
			p.pointers[2] = 2
			check(t, errors.Join(s.Touch(), s.Close(), other.Close(), d.Close(), c.Close(), y.Close()))
		}
		own := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 1, 1, []float32{1}, []int32{0}, []int32{0, 1}))
		check(t, errors.Join(own.Touch(), own.Sync(background), own.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseTornStructure changes wrapped parts without telling: results are undefined, but nothing panics and no cell
// outside the destination is written.
func TestSparseTornStructure(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(45)
		bad := []int32{-1, math.MinInt32, math.MaxInt32, 0, 3, 4, 5, 6, 100, -100}
		for round := range 60 {
			f := formats[round%len(formats)]
			p := sound(f)
			s := must[*sparse](t)(p.wrap(dev))
			v := s.ColumnSlice(min(round%3, p.cols), 1)
			for range 1 + rng.IntN(4) {
				p.indices[rng.IntN(len(p.indices))] = bad[rng.IntN(len(bad))]
				if len(p.pointers) > 0 {
					p.pointers[rng.IntN(len(p.pointers))] = bad[rng.IntN(len(bad))]
				}
			}
			for _, m := range []*sparse{s, v} {
				if m.Err() != nil {
					continue
				}
				rows, cols := m.Dims()
				d, mem := wrapped(t, dev, forms[round%len(forms)], rows, cols, make([]float32, rows*cols))
				y, _ := wrapped(t, dev, forms[0], cols, 5, random(rng, cols*5))
				e, mem2 := wrapped(t, dev, forms[(round+1)%len(forms)], rows, 5, make([]float32, rows*5))
				for _, err := range []error{d.Assign(m), e.Mul(m, y), e.Mul(matrix.Transpose(m), y), e.Assign(matrix.Mul(m, matrix.Transpose(m)))} {
					known := []error{matrix.ErrSparse, buffer.ErrIndex, buffer.ErrShape, gpu.ErrUnsupported}
					if err != nil && !slices.ContainsFunc(known, func(e error) bool { return errors.Is(err, e) }) {
						t.Errorf("%v", err)
					}
				}
				if c, err := m.Clone(); err == nil {
					check(t, c.Close())
				}
				if n := m.NNZ(); n < 0 || n > 6 {
					t.Errorf("%d entries", n)
				}
				if _, _, _, err := m.Read(background); err != nil && !errors.Is(err, matrix.ErrSparse) {
					t.Errorf("read: %v", err)
				}
				check(t, errors.Join(d.Sync(background), e.Sync(background)))
				guarded(t, "scatter", d, mem)
				guarded(t, "product", e, mem2)
				check(t, errors.Join(d.Close(), e.Close(), y.Close()))
			}
			check(t, errors.Join(s.Close(), v.Close()))
		}
		nothingLeft(t, dev)
	})
}

// TestSparseStrayIndex has an index out of range that nobody told of: nothing is written.
func TestSparseStrayIndex(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, stray := range []int32{3, 4, 5, -1, math.MaxInt32, math.MinInt32} {
			for _, f := range formats {
				p := sound(f)
				s := must[*sparse](t)(p.wrap(dev))
				want := slices.Repeat([]float32{9}, 100)
				big := must[*dense](t)(matrix.FromSlice(dev, 10, 10, want))
				p.indices[1] = stray
				if f == matrix.BlockColumn && stray == 3 { // there is such a column
					p.indices[1] = 6
				}
				d := big.Slice(2, 2+p.rows, 3, 3+p.cols)
				if err := d.Assign(s); !errors.Is(err, buffer.ErrIndex) && !errors.Is(err, matrix.ErrSparse) {
					t.Errorf("%v, %d: error %v", f, stray, err)
				}
				same(t, name(f, stray), must[[]float32](t)(big.Read(background)), want)
				check(t, errors.Join(d.Close(), big.Close(), s.Close()))
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseSlices compares slices, and slices of slices, with those of the dense matrix.
func TestSparseSlices(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(46)
		const rows, cols = 7, 9
		x := sparsely(rng, rows, cols)
		full := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
		values, indices, pointers := pack(x, rows, cols, matrix.CSC)
		s := must[*sparse](t)(matrix.WrapSparse(dev, matrix.CSC, rows, cols, values, indices, pointers))
		y := random(rng, cols*3)
		for start := range cols + 1 {
			for n := range cols + 1 - start {
				what := name(start, n)
				before := dev.Stats().Buffers
				v := s.ColumnSlice(start, n)
				sub := v.ColumnSlice(n/3, n-n/3)
				check(t, errors.Join(v.Err(), sub.Err()))
				if now := dev.Stats().Buffers; now != before {
					t.Fatalf("%s: slicing made %d buffers", what, now-before)
				}
				for _, part := range []struct {
					m        *sparse
					start, n int
				}{{v, start, n}, {sub, start + n/3, n - n/3}} {
					ref := full.ColumnSlice(part.start, part.n)
					z := must[[]float32](t)(ref.Read(background))
					pv, pi, pp := pack(z, rows, part.n, matrix.CSC)
					samePartsOf(t, what, part.m, pv, pi, pp)
					d := must[*dense](t)(part.m.ToDense())
					same(t, what, must[[]float32](t)(d.Read(background)), z)
					b := must[*dense](t)(matrix.FromSlice(dev, part.n, 3, y[:part.n*3]))
					want, bound := rowMajorProduct(z, y, rows, part.n, 3)
					check(t, d.Mul(part.m, b))
					within(t, what, must[[]float32](t)(d.Read(background)), want, bound)
					c := must[*sparse](t)(part.m.Clone())
					samePartsOf(t, what, c, pv, pi, pp)
					check(t, errors.Join(ref.Close(), d.Close(), b.Close(), c.Close()))
				}
				if err := v.Append(rows-1, n-1, 1); !errors.Is(err, matrix.ErrExternalResize) {
					t.Errorf("%s: Append: %v", what, err)
				}
				check(t, errors.Join(v.Close(), sub.Close()))
			}
		}
		// Values written through a slice are the matrix's own.
		v := s.ColumnSlice(2, 3)
		w := v.Values()
		check(t, w.Fill(7))
		check(t, s.Sync(background))
		for k := range values {
			if inside := k >= int(pointers[2]) && k < int(pointers[5]); inside != (values[k] == 7) {
				t.Errorf("value %d is %v", k, values[k])
			}
		}
		for _, bad := range [][2]int{
			{-1, 1},
			{0, 10},
			{9, 1},
			{10, 0},
			{1, -1},
			{1, math.MaxInt},
			{math.MaxInt, 1},
			{math.MinInt, math.MaxInt},
		} {
			b := s.ColumnSlice(bad[0], bad[1])
			if err := b.Err(); !errors.Is(err, buffer.ErrIndex) {
				t.Errorf("slice %v: %v", bad, err)
			}
			if err := new(dense).Assign(b); !errors.Is(err, buffer.ErrIndex) {
				t.Errorf("use of slice %v: %v", bad, err)
			}
			check(t, b.Close())
		}
		check(t, errors.Join(w.Close(), v.Close(), s.Close(), full.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseNet leaves slices and aliases to the garbage collector, which drops their shares.
func TestSparseNet(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	defer dev.Close()
	released := make(chan bool, 1)
	p := sound(matrix.CSC)
	func() {
		s := must[*sparse](t)(p.wrap(dev, matrix.Options{Release: func() { released <- true }}))
		d := must[*dense](t)(s.ColumnSlice(1, 2).Alias().ToDense())
		check(t, errors.Join(d.Close(), s.Close()))
	}()
	for range 200 {
		runtime.GC()
		select {
		case <-released:
			nothingLeft(t, dev)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("not released")
}
