// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type sparse = matrix.Sparse[float32]

var formats = []matrix.Format{matrix.CSC, matrix.CSR, matrix.BlockColumn}

// sparsely returns random elements, row by row, most of them 0; now and then a whole column is.
func sparsely(rng *rand.Rand, rows, cols int) []float32 {
	x := make([]float32, rows*cols)
	for j := range cols {
		share := rng.Float32() - 0.3
		for i := range rows {
			if rng.Float32() < share {
				x[i*cols+j] = rng.Float32()*4 - 2
			}
		}
	}
	return x
}

// pack is the reference: the parts of a sparse matrix of what is not 0.
func pack[T matrix.Elem](x []T, rows, cols int, f matrix.Format) (values []T, indices, pointers []int32) {
	values, indices = []T{}, []int32{}
	var zero T
	major, minor := cols, rows
	at := func(c, i int) T { return x[i*cols+c] }
	switch f {
	case matrix.CSR:
		major, minor = rows, cols
		at = func(c, i int) T { return x[c*cols+i] }
	case matrix.BlockColumn:
		for c := range cols {
			any := false
			for i := range rows {
				any = any || at(c, i) != zero
			}
			for i := 0; any && i < rows; i++ {
				values = append(values, at(c, i))
			}
			if any {
				indices = append(indices, int32(c))
			}
		}
		return values, indices, nil
	}
	pointers = []int32{0}
	for c := range major {
		for i := range minor {
			if v := at(c, i); v != zero {
				values, indices = append(values, v), append(indices, int32(i))
			}
		}
		pointers = append(pointers, int32(len(values)))
	}
	return values, indices, pointers
}

// samePartsOf fails unless the matrix has these parts.
func samePartsOf[T matrix.Elem](t testing.TB, what string, s *matrix.Sparse[T], values []T, indices, pointers []int32) {
	t.Helper()
	v, i, p, err := s.Read(background)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	same(t, what+" values", v, values)
	same(t, what+" indices", i, indices)
	same(t, what+" pointers", p, pointers)
	if s.NNZ() != len(values) {
		t.Fatalf("%s: %d entries, want %d", what, s.NNZ(), len(values))
	}
}

// guardedThere fails if a cell outside a wrapped matrix was changed on the device, from where Sync brings only the matrix.
func guardedThere(t testing.TB, what string, m *dense) {
	t.Helper()
	guarded(t, what+" on the device", m, there(t, m))
}

// nothingLeft fails if memory is live.
func nothingLeft(t testing.TB, dev *gpu.Device) {
	t.Helper()
	if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
		t.Errorf("%d bytes in %d buffers are live", s.LiveBytes, s.Buffers)
	}
}

// TestSparseRoundTrip goes from parts to dense matrices of all layouts and back, at all small sizes.
func TestSparseRoundTrip(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(40)
		for rows := range 18 {
			for cols := range 18 {
				x := sparsely(rng, rows, cols)
				for f, format := range formats {
					if few && (rows+cols+f)%7 != 0 {
						continue
					}
					to := forms[(rows*5+cols+f)%len(forms)]
					what := name(rows, cols, format, to.name)
					values, indices, pointers := pack(x, rows, cols, format)
					s := must[*sparse](t)(matrix.NewSparse(dev, format, rows, cols, values, indices, pointers))
					d, mem := wrapped(t, dev, to, rows, cols, random(rng, rows*cols))
					check(t, d.Assign(s))
					guardedThere(t, what, d)
					check(t, d.Sync(background))
					guarded(t, what, d, mem)
					same(t, what, must[[]float32](t)(d.Read(background)), x)
					back := must[*sparse](t)(matrix.SparseFromDense(background, d, format))
					samePartsOf(t, what, back, values, indices, pointers)
					dense := must[*dense](t)(back.ToDense())
					same(t, what+" again", must[[]float32](t)(dense.Read(background)), x)
					if r, c := back.Dims(); r != rows || c != cols || back.Format() != format || back.External() || back.Device() != dev {
						t.Fatalf("%s: %dx%d, %v", what, r, c, back.Format())
					}
					check(t, errors.Join(s.Close(), d.Close(), back.Close(), dense.Close(), s.Close()))
				}
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseDestinations writes to destinations that resize, that must not, and that share memory with the source.
func TestSparseDestinations(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, 0, 2, 0, 0, 3}
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 2, 3, []float32{1, 2, 3}, []int32{0, 0, 1}, []int32{0, 1, 1, 3}))
		zero, other := &dense{}, must[*dense](t)(matrix.New[float32](dev, 7, 1))
		column := must[*dense](t)(matrix.FromSlice(dev, 2, 3, make([]float32, 6), matrix.Options{ColMajor: true}))
		for _, d := range []*dense{zero, other, column} {
			check(t, d.Assign(s))
			same(t, "owned", must[[]float32](t)(d.Read(background)), x)
		}
		big := must[*dense](t)(matrix.Fill(5, 5, float32(9)).On(dev).Eval())
		part := big.Slice(1, 4, 2, 4).T()
		check(t, part.Assign(s))
		same(t, "transposed view", must[[]float32](t)(big.Read(background)), []float32{
			9, 9, 9, 9, 9,
			9, 9, 1, 0, 9,
			9, 9, 0, 0, 9,
			9, 9, 2, 3, 9,
			9, 9, 9, 9, 9,
		})
		ext := must[*dense](t)(matrix.Wrap(dev, 3, 2, make([]float32, 6)))
		if err := ext.Assign(s); !errors.Is(err, buffer.ErrShape) {
			t.Errorf("wrapped memory of another size: %v", err)
		}
		if err := big.Slice(0, 1, 0, 1).Assign(s); !errors.Is(err, matrix.ErrView) {
			t.Errorf("view of another size: %v", err)
		}
		if err := big.Assign(s); !errors.Is(err, matrix.ErrView) {
			t.Errorf("matrix with views: %v", err)
		}
		row := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 1, 3, []float32{4, 5, 6}, []int32{0, 1, 2}, []int32{0, 3}))
		own := row.Values()
		check(t, own.Assign(matrix.Scale(2, own)))
		check(t, own.Assign(row))
		same(t, "own values", must[[]float32](t)(own.Read(background)), []float32{8, 10, 12})
		if err := own.Assign(s); !errors.Is(err, buffer.ErrShape) {
			t.Errorf("values of another size: %v", err)
		}
		check(t, errors.Join(zero.Close(), other.Close(), column.Close(), part.Close(), big.Close(), ext.Close()))
		check(t, errors.Join(own.Close(), row.Close(), s.Close()))
	})
}

// TestSparseBits keeps integers, -0, NaN and infinities as they are, and drops nothing but zeros.
func TestSparseBits(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, format := range formats {
			ints := []int32{0, -1, math.MinInt32, math.MaxInt32, 0, 7, 0, 0, 1 << 24, 1<<24 + 1, 0, 0}
			a := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 4, 3, ints))
			s := must[*matrix.Sparse[int32]](t)(matrix.SparseFromDense(background, a, format))
			v, i, p := pack(ints, 4, 3, format)
			samePartsOf(t, "int32", s, v, i, p)
			b := must[*matrix.Dense[int32]](t)(s.ToDense())
			same(t, "int32", must[[]int32](t)(b.Read(background)), ints)

			words := []uint32{math.MaxUint32, 0, 1 << 31, 0, 0, 3}
			c := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, 2, 3, words))
			u := must[*matrix.Sparse[uint32]](t)(matrix.SparseFromDense(background, c, format))
			d := must[*matrix.Dense[uint32]](t)(u.ToDense())
			same(t, "uint32", must[[]uint32](t)(d.Read(background)), words)

			floats := []float32{float32(math.Copysign(0, -1)), 0, float32(math.Inf(1)), float32(math.NaN()), 0, 1e-30}
			e := must[*dense](t)(matrix.FromSlice(dev, 2, 3, floats))
			w := must[*sparse](t)(matrix.SparseFromDense(background, e, format))
			g := must[*dense](t)(w.ToDense())
			for k, f := range must[[]float32](t)(g.Read(background)) {
				if math.Float32bits(f) != math.Float32bits(floats[k]) {
					t.Errorf("%v: element %d is %x, want %x", format, k, math.Float32bits(f), math.Float32bits(floats[k]))
				}
			}
			if want := 4; format != matrix.BlockColumn && w.NNZ() != want {
				t.Errorf("%v: %d entries, want %d", format, w.NNZ(), want)
			}
			check(t, errors.Join(a.Close(), s.Close(), b.Close(), c.Close(), u.Close(), d.Close(), e.Close(), w.Close(), g.Close()))
		}
		nothingLeft(t, dev)
	})
}

// rowMajorProduct computes in float64, and the error allowed: that of a sum of the row's entries.
func rowMajorProduct(a, b []float32, m, k, n int) (c, bound []float64) {
	c, bound = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		entries := 0
		for l := range k {
			x := float64(a[i*k+l])
			if x == 0 {
				continue
			}
			entries++
			for j := range n {
				c[i*n+j] += x * float64(b[l*n+j])
				bound[i*n+j] += math.Abs(x * float64(b[l*n+j]))
			}
		}
		for j := range n {
			bound[i*n+j] *= float64(entries) * 0x1p-24
		}
	}
	return c, bound
}

// TestSparseProducts multiplies in all formats and layouts, at sizes where kernels change their ways.
func TestSparseProducts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(41)
		at := 0
		for _, m := range []int{0, 1, 2, 5, 17, 33} {
			for _, k := range []int{0, 1, 3, 16, 65} {
				for _, n := range []int{0, 1, 2, 4, 5, 8, 19} {
					if few && (m+k+n)%5 != 0 {
						continue
					}
					x, y := sparsely(rng, m, k), random(rng, k*n)
					want, bound := rowMajorProduct(x, y, m, k, n)
					for _, format := range formats {
						at++
						fb, fc := forms[at%len(forms)], forms[at/len(forms)%len(forms)]
						what := name(m, k, n, format, fb.name, fc.name)
						values, indices, pointers := pack(x, m, k, format)
						a := must[*sparse](t)(matrix.NewSparse(dev, format, m, k, values, indices, pointers))
						b, _ := wrapped(t, dev, fb, k, n, y)
						c, mem := wrapped(t, dev, fc, m, n, random(rng, m*n))
						check(t, c.Mul(a, b))
						guardedThere(t, what, c)
						check(t, c.Sync(background))
						guarded(t, what, c, mem)
						got := must[[]float32](t)(c.Read(background))
						within(t, what, got, want, bound)
						again := &dense{}
						check(t, again.Mul(a, b))
						same(t, what+" again", must[[]float32](t)(again.Read(background)), got)
						check(t, errors.Join(a.Close(), b.Close(), c.Close(), again.Close()))
					}
				}
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseProductAliases multiplies into the dense factor, into views of it, and into the values themselves.
func TestSparseProductAliases(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(42)
		for _, format := range formats {
			const n = 9
			x, y := sparsely(rng, n, n), random(rng, n*n)
			want, bound := rowMajorProduct(x, y, n, n, n)
			values, indices, pointers := pack(x, n, n, format)
			a := must[*sparse](t)(matrix.NewSparse(dev, format, n, n, values, indices, pointers))
			b := must[*dense](t)(matrix.FromSlice(dev, n, n, y))
			check(t, b.Mul(a, b))
			within(t, "in place", must[[]float32](t)(b.Read(background)), want, bound)
			check(t, b.SetSlice(y))
			v := b.T()
			check(t, v.Mul(a, b))
			within(t, "transposed", must[[]float32](t)(v.Read(background)), want, bound)
			check(t, errors.Join(v.Close(), a.Close(), b.SetSlice(y)))
			values, indices, pointers = pack(x[:3*n], 3, n, format)
			a = must[*sparse](t)(matrix.NewSparse(dev, format, 3, n, values, indices, pointers))
			check(t, b.Mul(a, b))
			got := must[[]float32](t)(b.Read(background))
			want, bound = rowMajorProduct(x, y, 3, n, n)
			within(t, "resized in place", got, want, bound)
			check(t, errors.Join(b.Close(), a.Close()))
		}
		// One row: the values are a matrix that can be both factors and the result.
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 1, 1, []float32{3}, []int32{0}, []int32{0, 1}))
		v := s.Values()
		check(t, v.Mul(s, v))
		same(t, "squared", must[[]float32](t)(v.Read(background)), []float32{9})
		check(t, v.Mul(s, v))
		same(t, "squared again", must[[]float32](t)(v.Read(background)), []float32{81})
		check(t, errors.Join(v.Close(), s.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseIntegerProducts wraps around.
func TestSparseIntegerProducts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(43)
		const m, k, n = 6, 11, 5
		x, y := make([]int32, m*k), make([]int32, k*n)
		for i := range x {
			x[i] = int32(rng.Uint32()) * int32(rng.IntN(2))
		}
		want, unsigned := make([]int32, m*n), make([]uint32, m*n)
		for i := range y {
			y[i] = int32(rng.Uint32())
		}
		ux, uy := make([]uint32, m*k), make([]uint32, k*n)
		for i := range x {
			ux[i] = uint32(x[i])
		}
		for i := range y {
			uy[i] = uint32(y[i])
		}
		for i := range m {
			for l := range k {
				for j := range n {
					want[i*n+j] += x[i*k+l] * y[l*n+j]
					unsigned[i*n+j] += ux[i*k+l] * uy[l*n+j]
				}
			}
		}
		for _, format := range formats {
			v, i, p := pack(x, m, k, format)
			a := must[*matrix.Sparse[int32]](t)(matrix.NewSparse(dev, format, m, k, v, i, p))
			b := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, k, n, y))
			c := &matrix.Dense[int32]{}
			check(t, c.Mul(a, b))
			same(t, "int32", must[[]int32](t)(c.Read(background)), want)
			uv, ui, up := pack(ux, m, k, format)
			d := must[*matrix.Sparse[uint32]](t)(matrix.NewSparse(dev, format, m, k, uv, ui, up))
			e := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, k, n, uy))
			f := &matrix.Dense[uint32]{}
			check(t, f.Mul(d, e))
			same(t, "uint32", must[[]uint32](t)(f.Read(background)), unsigned)
			check(t, errors.Join(a.Close(), b.Close(), c.Close(), d.Close(), e.Close(), f.Close()))
		}
	})
}

// TestSparseLongRows multiplies a matrix with rows of more entries than one invocation may go through, in strips too.
func TestSparseLongRows(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(44)
		const m, k = 4, 140001
		x := make([]float32, m*k)
		for l := range k { // row 0 is empty, row 1 full, row 2 has one entry more than needs no cutting, row 3 has one
			x[k+l] = rng.Float32()*4 - 2
			if l < 1025 {
				x[2*k+3*l] = 1 + rng.Float32()
			}
		}
		x[3*k+k-1] = 2
		for _, n := range []int{1, 3, 10} {
			y := random(rng, k*n)
			want, bound := rowMajorProduct(x, y, m, k, n)
			b := must[*dense](t)(matrix.FromSlice(dev, k, n, y))
			for _, format := range formats {
				values, indices, pointers := pack(x, m, k, format)
				a := must[*sparse](t)(matrix.NewSparse(dev, format, m, k, values, indices, pointers))
				for _, scratch := range []int{0, 1} {
					matrix.LimitSparseScratch(dev, cmp.Or(scratch, 64<<20))
					c, mem := wrapped(t, dev, forms[(n+scratch)%len(forms)], m, n, random(rng, m*n))
					check(t, c.Mul(a, b))
					check(t, c.Sync(background))
					guarded(t, name(n, format), c, mem)
					got := must[[]float32](t)(c.Read(background))
					within(t, name(n, format, scratch), got, want, bound)
					check(t, c.Close())
				}
				check(t, a.Close())
			}
			check(t, b.Close())
		}
		nothingLeft(t, dev)
	})
}

// allocated are the bytes that a function allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestSparseVastColumns has few entries in as many columns as there may be: what is computed of them takes memory for the entries, and what
// needs pointers to all columns is an error.
func TestSparseVastColumns(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, math.MaxInt32, []float32{1, 2}, []int32{5, math.MaxInt32 - 1}, []int32{0, 1, 2}))
		x := must[*dense](t)(matrix.FromSlice(dev, 1, 2, []float32{3, 4}))
		nothing := must[*dense](t)(matrix.New[float32](dev, 0, math.MaxInt32))
		var g, blocks, wide *sparse
		n := allocated(func() {
			g = must[*sparse](t)(matrix.Mul(s, matrix.Transpose(s)).Sparse())
			blocks = must[*sparse](t)(matrix.MulBlockColumn(x, s))
			wide = must[*sparse](t)(matrix.Mul(g, s).Sparse())
			_, csc := s.ToFormat(matrix.CSC)
			_, packed := matrix.SparseFromDense(background, nothing, matrix.CSC)
			for what, err := range map[string]error{
				"columns": csc, "compressed": packed, "dense product": new(dense).Assign(matrix.Mul(matrix.Transpose(s), matrix.Fill[float32](2, 0, 0))),
				"blocks": new(dense).Assign(matrix.Mul(blocks, matrix.Fill[float32](math.MaxInt32, 1, 0))),
			} {
				if !errors.Is(err, gpu.ErrLimit) {
					t.Errorf("%s: error %v", what, err)
				}
			}
		})
		if n > 64<<20 {
			t.Errorf("%d bytes allocated", n)
		}
		values, indices, pointers, err := g.Read(background)
		check(t, err)
		same(t, "values", values, []float32{1, 4})
		same(t, "indices", indices, []int32{0, 1})
		same(t, "pointers", pointers, []int32{0, 1, 2})
		values, indices, _, err = blocks.Read(background)
		check(t, err)
		same(t, "blocks", values, []float32{3, 8})
		same(t, "ids", indices, []int32{5, math.MaxInt32 - 1})
		values, indices, _, err = wide.Read(background)
		check(t, err)
		same(t, "wide values", values, []float32{1, 8})
		same(t, "wide indices", indices, []int32{5, math.MaxInt32 - 1})
		check(t, errors.Join(s.Close(), x.Close(), nothing.Close(), g.Close(), blocks.Close(), wide.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseFormatMemory makes CSC of a matrix with many columns: its pointers are made once, and copied by the upload alone.
func TestSparseFormatMemory(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const cols = 5_000_000
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 1, cols, []float32{1}, []int32{7}, []int32{0, 1}))
		var c *sparse
		most := 2.5
		if d := dev.Info().Driver; d == "cpu" || d == "simd" && runtime.GOOS == "js" { // whose memory is Go's too
			most = 3.5
		}
		if n := float64(allocated(func() { c = must[*sparse](t)(s.ToFormat(matrix.CSC)) })) / cols / 4; n > most {
			t.Errorf("%.1f times the pointers were allocated", n)
		}
		check(t, errors.Join(s.Close(), c.Close()))
	})
}
