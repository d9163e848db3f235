// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestSparseAppend fills matrices entry by entry, with uses in between.
func TestSparseAppend(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(47)
		for _, f := range compressed {
			for _, size := range [][2]int{{1, 1}, {1, 40}, {40, 1}, {17, 23}} {
				rows, cols := size[0], size[1]
				x := make([]float32, rows*cols)
				major, minor := cols, rows
				if f == matrix.CSR {
					major, minor = rows, cols
				}
				s := must[*sparse](t)(matrix.NewSparse(dev, f, rows, cols, []float32{}, []int32{}, make([]int32, major+1)))
				for c := range major {
					for k := range minor {
						i, j := k, c
						if f == matrix.CSR {
							i, j = c, k
						}
						if c%3 == 1 || rng.IntN(3) == 0 {
							continue
						}
						x[i*cols+j] = 1 + rng.Float32()
						check(t, s.Append(i, j, x[i*cols+j]))
						if err := s.Append(i, j, 9); !errors.Is(err, matrix.ErrOrder) {
							t.Fatalf("the same entry again: %v", err)
						}
						if err := s.Append(0, 0, 9); !errors.Is(err, matrix.ErrOrder) {
							t.Fatalf("back to the first: %v", err)
						}
					}
					if c%5 == 2 { // a use that sends what there is
						d := must[*dense](t)(s.ToDense())
						same(t, "in between", must[[]float32](t)(d.Read(background)), x)
						check(t, d.Close())
					}
				}
				values, indices, pointers := pack(x, rows, cols, f)
				samePartsOf(t, name(f, size), s, values, indices, pointers)
				y := random(rng, cols*2)
				b, c := must[*dense](t)(matrix.FromSlice(dev, cols, 2, y)), &dense{}
				check(t, c.Mul(s, b))
				want, bound := rowMajorProduct(x, y, rows, cols, 2)
				within(t, name(f, size), must[[]float32](t)(c.Read(background)), want, bound)
				check(t, errors.Join(s.Close(), b.Close(), c.Close()))
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseAppendRefused goes through what cannot be appended to; nothing changes.
func TestSparseAppendRefused(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 3, 4, []float32{1, 2}, []int32{1, 0}, []int32{0, 0, 1, 2, 2}))
		refused := func(what string, i, j int, want error) {
			t.Helper()
			if err := s.Append(i, j, 5); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		refused("row", 3, 3, buffer.ErrIndex)
		refused("negative row", -1, 3, buffer.ErrIndex)
		refused("column", 0, 4, buffer.ErrIndex)
		refused("negative column", 0, math.MinInt, buffer.ErrIndex)
		refused("earlier column", 2, 1, matrix.ErrOrder)
		refused("same place", 0, 2, matrix.ErrOrder)
		al := s.Alias()
		refused("aliased", 1, 2, matrix.ErrView)
		check(t, al.Close())
		v := s.Values()
		refused("with a view of the values", 1, 2, matrix.ErrView)
		check(t, v.Close())
		slice := s.ColumnSlice(0, 4)
		refused("sliced", 1, 2, matrix.ErrView)
		if err := slice.Append(1, 3, 5); !errors.Is(err, matrix.ErrView) {
			t.Errorf("to a slice: %v", err)
		}
		check(t, slice.Close())
		samePartsOf(t, "unchanged", s, []float32{1, 2}, []int32{1, 0}, []int32{0, 0, 1, 2, 2})
		check(t, s.Append(2, 2, 5))
		samePartsOf(t, "appended", s, []float32{1, 2, 5}, []int32{1, 0, 2}, []int32{0, 0, 1, 3, 3})
		al = s.Alias()
		check(t, s.Close())
		check(t, al.Append(0, 3, 6))
		samePartsOf(t, "by the last alias", al, []float32{1, 2, 5, 6}, []int32{1, 0, 2, 0}, []int32{0, 0, 1, 3, 4})
		check(t, al.Close())
		b := must[*sparse](t)(matrix.NewSparse(dev, matrix.BlockColumn, 2, 2, []float32{}, []int32{}, nil))
		if err := b.Append(0, 0, 1); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("block columns: %v", err)
		}
		check(t, b.Close())
		nothingLeft(t, dev)
	})
}

// TestSparseErrors goes through the other mistakes a caller can make.
func TestSparseErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		p := sound(matrix.CSC)
		s := must[*sparse](t)(p.make(dev))
		closed := must[*sparse](t)(s.Clone())
		check(t, closed.Close())
		var null *sparse
		var nothing *dense
		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
		defer other.Close()
		foreign := must[*dense](t)(matrix.New[float32](other, 4, 4))
		b := must[*dense](t)(matrix.New[float32](dev, 4, 2))
		c := must[*dense](t)(matrix.FromSlice(dev, 1, 2, []float32{5, 6}))
		wrap := func(o ...matrix.Options) error {
			_, err := p.wrap(dev, o...)
			return err
		}
		second := func(_ any, err error) error { return err }
		cases := []struct {
			name string
			err  error
			want error
		}{
			{"nil device", second(p.make(nil)), gpu.ErrInvalid},
			{"float16", second(matrix.NewSparse(dev, matrix.CSC, 0, 0, []matrix.Half{}, nil, []int32{0})), gpu.ErrUnsupported},
			{"stride", wrap(matrix.Options{Stride: 4}), gpu.ErrInvalid},
			{"order", wrap(matrix.Options{ColMajor: true}), gpu.ErrInvalid},
			{"offset", wrap(matrix.Options{Offset: 1}), gpu.ErrInvalid},
			{"closed assign", b.Assign(closed), gpu.ErrClosed},
			{"closed append", closed.Append(0, 3, 1), gpu.ErrClosed},
			{"closed slice", closed.ColumnSlice(0, 1).Err(), gpu.ErrClosed},
			{"closed alias", closed.Alias().Err(), gpu.ErrClosed},
			{"closed clone", second(closed.Clone()), gpu.ErrClosed},
			{"closed values", closed.Values().Err(), gpu.ErrClosed},
			{"closed sync", closed.Sync(background), gpu.ErrClosed},
			{"closed touch", closed.Touch(), gpu.ErrClosed},
			{"closed product", c.Mul(closed, b), gpu.ErrClosed},
			{"nil assign", b.Assign(null), buffer.ErrNil},
			{"nil append", null.Append(0, 0, 1), buffer.ErrNil},
			{"nil slice", null.ColumnSlice(0, 1).Err(), buffer.ErrNil},
			{"nil alias", null.Alias().Err(), buffer.ErrNil},
			{"nil clone", second(null.Clone()), buffer.ErrNil},
			{"nil values", null.Values().Err(), buffer.ErrNil},
			{"nil sync", null.Sync(background), buffer.ErrNil},
			{"nil touch", null.Touch(), buffer.ErrNil},
			{"nil err", null.Err(), buffer.ErrNil},
			{"nil dense", second(null.ToDense()), buffer.ErrNil},
			{"zero value", b.Assign((&sparse{})), gpu.ErrInvalid},
			{"nil destination", nothing.Assign(s), buffer.ErrNil},
			{"nil product", c.Mul(null, b), buffer.ErrNil},
			{"nil factor", c.Mul(s, nothing), buffer.ErrNil},
			{"nil result", nothing.Mul(s, b), buffer.ErrNil},
			{"foreign factor", c.Mul(s, foreign), gpu.ErrForeign},
			{"product shapes", c.Mul(s, c), buffer.ErrShape},
			{"compress nil", second(matrix.SparseFromDense(background, nothing, matrix.CSC)), buffer.ErrNil},
			{"compress nothing", second(matrix.SparseFromDense(background, &dense{}, matrix.CSC)), gpu.ErrInvalid},
			{"compress to nothing", second(matrix.SparseFromDense(background, b, 3)), gpu.ErrInvalid},
		}
		for _, c := range cases {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
		same(t, "c unchanged", must[[]float32](t)(c.Read(background)), []float32{5, 6})
		rows, cols := null.Dims()
		if rows+cols+null.NNZ() != 0 || null.External() || null.Device() != nil || null.Format() != matrix.CSC {
			t.Error("a nil matrix is something")
		}
		half := must[*matrix.Dense[matrix.Half]](t)(matrix.New[matrix.Half](dev, 2, 2))
		if _, err := matrix.SparseFromDense(background, half, matrix.CSC); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("float16: %v", err)
		}
		names := map[matrix.Format]string{
			matrix.CSC: "CSC", matrix.CSR: "CSR", matrix.BlockColumn: "block-column", 99: "unknown",
		}
		for f, want := range names {
			if f.String() != want {
				t.Errorf("format %d is %q", f, f)
			}
		}
		dev.Close()
		if err := b.Assign(s); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
		if err := s.Append(2, 3, 1); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
		if _, err := p.make(dev); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
		if err := wrap(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
		check(t, s.Close())
	})
}

// FuzzSparse makes matrices of arbitrary parts: an error, or a matrix that agrees with a reference.
func FuzzSparse(f *testing.F) {
	dev := must[*gpu.Device](f)(gpu.Open(background, gpu.WithDriver("cpu")))
	f.Add(uint8(0), 3, 4, 5, []byte{0, 2, 1, 0, 2, 0, 2, 3, 3, 5})
	f.Add(uint8(1), 4, 3, 5, []byte{0, 2, 1, 0, 2, 0, 2, 3, 3, 5})
	f.Add(uint8(2), 3, 4, 2, []byte{1, 3})
	f.Add(uint8(0), 1, 2, 1, []byte{0, 255, 7, 1})
	f.Add(uint8(1), -1, 1<<40, 0, []byte{0})
	f.Fuzz(func(t *testing.T, format uint8, rows, cols, n int, structure []byte) {
		all := make([]int32, len(structure))
		for k, b := range structure {
			all[k] = int32(int8(b))
		}
		n = min(max(n, 0), len(all))
		indices, pointers := all[:n], all[n:]
		fm := matrix.Format(format)
		values := make([]float32, n)
		if fm == matrix.BlockColumn && rows >= 0 && rows < 100 {
			values, pointers = make([]float32, n*rows), nil
		}
		for k := range values {
			values[k] = float32(k + 1)
		}
		s, err := matrix.NewSparse(dev, fm, rows, cols, values, indices, pointers)
		if err != nil {
			return
		}
		defer s.Close()
		if rows > 300 || cols > 300 {
			return // a matrix without entries may be large
		}
		want := make([]float32, rows*cols)
		if fm == matrix.BlockColumn {
			for k, v := range values {
				want[k%rows*cols+int(indices[k/rows])] = v
			}
		}
		for c := range max(len(pointers)-1, 0) {
			for q := pointers[c]; q < pointers[c+1]; q++ {
				i, j := int(indices[q]), c
				if fm == matrix.CSR {
					i, j = j, i
				}
				want[i*cols+j] = values[q]
			}
		}
		d := must[*dense](t)(s.ToDense())
		same(t, "dense", must[[]float32](t)(d.Read(background)), want)
		back := must[*sparse](t)(matrix.SparseFromDense(background, d, fm))
		e := must[*dense](t)(back.ToDense())
		same(t, "again", must[[]float32](t)(e.Read(background)), want)
		check(t, errors.Join(d.Close(), e.Close(), back.Close()))
	})
}
