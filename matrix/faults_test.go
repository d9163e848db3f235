// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// denseScene is what tests lose devices and memory in: matrices of every kind on two devices.
type denseScene struct {
	t          testing.TB
	one, other *gpu.Device
	a, b, c    []float32 // the caller's, wrapped on one device, and c on the other
	wa, wb, wc *dense
	own        *dense
	pair       *dense // seen by both sides
	product    *dense
	values     []float32 // of the sparse matrix
	sparse     *matrix.Sparse[float32]
	listed     *matrix.Sparse[float32] // entries are appended to it
	rows, cols int
}

func newDenseScene(rows, cols int) func(t testing.TB, devices []*gpu.Device) *devtest.Scene {
	return func(t testing.TB, devices []*gpu.Device) *devtest.Scene {
		s := &denseScene{t: t, one: devices[0], other: devices[1], rows: rows, cols: cols}
		matrix.ComputeAsWritten(s.one, true) // with all the temporaries that products have then
		s.a, s.b, s.c, s.values = make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, 3)
		s.wa, s.wb = must[*dense](t)(matrix.Wrap(s.one, rows, cols, s.a)), must[*dense](t)(matrix.Wrap(s.one, rows, cols, s.b))
		s.wc = must[*dense](t)(matrix.Wrap(s.other, rows, cols, s.c))
		s.sparse = must[*matrix.Sparse[float32]](t)(matrix.WrapSparse(s.one, matrix.CSR, 3, 3, s.values, []int32{0, 1, 2}, []int32{0, 1, 2, 3}))
		check(t, s.reset())
		return &devtest.Scene{
			Steps: append(s.dense(), s.others()...), Reset: s.reset, Close: s.close, Hosts: [][]float32{s.a, s.b, s.c, s.values},
			Values: []func() ([]float32, error){
				s.reader(&s.wa), s.reader(&s.wb), s.reader(&s.wc), s.reader(&s.own), s.reader(&s.pair), s.reader(&s.product),
				func() ([]float32, error) { v, _, _, err := s.sparse.Read(background); return v, err },
				func() ([]float32, error) { v, _, _, err := s.listed.Read(background); return v, err },
			},
		}
	}
}

func (s *denseScene) reader(m **dense) func() ([]float32, error) {
	return func() ([]float32, error) { return (*m).Read(background) }
}

// reset puts the first values into the caller's memory and makes new matrices of everything else.
func (s *denseScene) reset() error {
	err := errors.Join(s.own.Close(), s.pair.Close(), s.product.Close(), s.listed.Close())
	for k, host := range [][]float32{s.a, s.b, s.c, s.values} {
		for i := range host {
			host[i] = float32((k+1)*i%9 - 3)
		}
	}
	err = errors.Join(err, s.wa.Touch(), s.wb.Touch(), s.wc.Touch(), s.sparse.Touch())
	var errs [4]error
	s.own, errs[0] = matrix.FromSlice(s.one, 1, s.cols, s.a[:s.cols])
	s.pair, errs[1] = matrix.Map[float32](s.one, 3, 4)
	s.product, errs[2] = matrix.New[float32](s.one, 3, s.cols)
	s.listed, errs[3] = matrix.NewSparse(s.one, matrix.CSC, 3, 3, []float32{4}, []int32{1}, []int32{0, 1, 1, 1})
	return errors.Join(err, errors.Join(errs[:]...))
}

func (s *denseScene) close() error {
	var errs []error
	for _, m := range []*dense{s.wa, s.wb, s.wc, s.own, s.pair, s.product} {
		errs = append(errs, m.Close())
	}
	return errors.Join(append(errs, s.sparse.Close(), s.listed.Close())...)
}

func does(name string, do func() error) devtest.Step {
	return devtest.Step{Name: name, Do: func() ([]float32, error) { return nil, do() }}
}

func tells(name string, do func() ([]float32, error)) devtest.Step {
	return devtest.Step{Name: name, Do: do}
}

// viewed calls fn with a view, and closes that.
func viewed(v *dense, fn func(v *dense) error) error {
	err := fn(v)
	_ = v.Close() // what was queued before may be refused
	return err
}

func (s *denseScene) dense() []devtest.Step {
	value := func(e *expr) ([]float32, error) { return e.Read(background) }
	return []devtest.Step{
		does("add", func() error { return s.wa.Add(s.wa, s.own) }),
		does("product", func() error { return s.wb.Assign(matrix.Mul(s.wa, matrix.Mul(matrix.Transpose(s.own), s.own))) }),
		tells("sum", func() ([]float32, error) { return value(matrix.Sum(matrix.MulElem(s.wa, s.wb))) }),
		does("view", func() error {
			return viewed(s.wa.RowSlice(1, 1), func(v *dense) error { return v.Fill(7) })
		}),
		does("columns", func() error {
			return viewed(s.wb.ColumnSlice(1, 2), func(v *dense) error { return v.Assign(matrix.Neg(v)) })
		}),
		does("sync", func() error { return s.wa.Sync(background) }),
		does("steps", func() error { return s.wb.Assign(matrix.Sub(matrix.SumRows(s.wa), matrix.MaxCols(s.wb))) }),
		does("across", func() error {
			return viewed(s.wc.RowSlice(1, 2), func(to *dense) error {
				return viewed(s.wa.RowSlice(0, 2), func(from *dense) error { return to.Assign(matrix.Add(from, s.own)) })
			})
		}),
		does("elements", func() error {
			for i := range s.a {
				s.a[i] = 1
			}
			return s.wa.Touch()
		}),
		does("in place", func() error { return s.wa.Assign(matrix.Add(s.wa, s.wb)) }),
		tells("read", func() ([]float32, error) { return value(matrix.SumCols(matrix.Scale(2, s.wc))) }),
		does("sync the other", func() error { return s.wc.Sync(background) }),
		does("set", func() error { return s.wc.Set(1, 1, 5) }),
		tells("at", func() ([]float32, error) { v, err := s.wc.At(background, 1, 1); return []float32{v}, err }),
	}
}

func (s *denseScene) others() []devtest.Step {
	return []devtest.Step{
		does("map", func() error {
			return s.pair.Access(background, buffer.Writes, func(v []float32) error { copy(v, []float32{1, 2, 3}); return nil })
		}),
		does("mapped operand", func() error { return s.pair.Assign(matrix.AddScalar(s.pair, 2)) }),
		does("sparse product", func() error {
			return viewed(s.wa.RowSlice(0, 3), func(v *dense) error { return s.product.Mul(s.sparse, v) })
		}),
		does("sparse values", func() error {
			return viewed(s.sparse.Values(), func(v *dense) error { return v.Assign(matrix.Scale(3, v)) })
		}),
		does("sync sparse", func() error { return s.sparse.Sync(background) }),
		does("append", func() error {
			if s.listed.NNZ() > 1 { // a batch was refused only after that
				return nil
			}
			return s.listed.Append(0, 1, 2)
		}),
		does("sparse to dense", func() error {
			d, err := s.listed.ToDense()
			if err != nil {
				return err
			}
			return s.own.Take(d)
		}),
		does("resize", func() error {
			c, err := s.own.Clone()
			if err != nil {
				return err
			}
			if err = errors.Join(c.Resize(5, 6), c.Fill(2)); err != nil {
				return errors.Join(err, c.Close())
			}
			return s.own.Take(c)
		}),
		does("copy", func() error { return s.own.SetValueFrom(2, 2, []float32{1, 2, 3, 4}, 0) }),
		does("value", func() error { return s.own.SetValue(s.product) }),
		does("there and back", func() error {
			c, err := s.own.CopyTo(background, s.other)
			if err != nil {
				return err
			}
			if err := c.MoveTo(background, s.one); err != nil {
				return errors.Join(err, c.Close())
			}
			return s.own.Take(c)
		}),
		does("all", func() error {
			return errors.Join(s.wb.Sync(background), s.wa.Sync(background))
		}),
	}
}

// TestEveryFault has everything go wrong at every call of the drivers of two devices that matrices need. The second run has memory that
// the devices hold in parts.
func TestEveryFault(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 100, 350)
	for _, s := range denseScripts() {
		s.EveryFault(t, 60, devtest.Lose, devtest.LoseAfter)
		s.EveryFault(t, 60, devtest.NoMemory, devtest.Refuse)
	}
}

func denseScripts() []devtest.Script {
	return []devtest.Script{
		{Devices: 2, New: newDenseScene(4, 3)},
		{Devices: 2, New: newDenseScene(40, 30), Options: []gpu.Option{gpu.WithMaxBuffer(4096)}, Parts: true},
	}
}

// TestEveryAllocation has every k-th call fail that may take memory.
func TestEveryAllocation(t *testing.T) {
	devtest.AtLeast(t, devtest.NoMemory, 4000, 10000)
	most := 3
	if devtest.Long() {
		most = 36
	}
	for _, s := range denseScripts() {
		s.EveryAllocation(t, most)
	}
}

// TestRefusedStructure has batches refused while entries are appended to a sparse matrix. Where the values are still there the matrix can be
// used again: its structure is on the host, too.
func TestRefusedStructure(t *testing.T) {
	again := 0
	for _, what := range []devtest.Fault{devtest.NoMemory, devtest.Refuse} {
		for at := range 8 {
			dev, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
			s := must[*matrix.Sparse[float32]](t)(matrix.NewSparse(dev, matrix.CSC, 3, 3, []float32{4}, []int32{1}, []int32{0, 1, 1, 1}))
			dense := func() ([]float32, error) {
				d, err := s.ToDense()
				if err != nil {
					return nil, err
				}
				v, err := d.Read(background)
				return v, errors.Join(err, d.Close())
			}
			_, err := dense()
			check(t, errors.Join(err, s.Append(0, 1, 2)))
			submissions := 0
			f.Arm(func(c devtest.Call) devtest.Fault {
				if c.Op != "Submit" {
					return devtest.None
				}
				if submissions++; submissions-1 < at || submissions-1 > at+1 { // and when it is tried once more
					return devtest.None
				}
				return what
			})
			_, err = dense()
			f.Arm(nil)
			if _, _, _, lost := s.Read(background); err == nil || lost != nil {
				continue
			}
			again++
			if v, err := dense(); err != nil || !slices.Equal(v, []float32{0, 2, 0, 4, 0, 0, 0, 0, 0}) {
				t.Errorf("%v of submission %d: %v, %v", what, at, v, err)
			}
		}
	}
	if again == 0 {
		t.Error("the values were lost each time")
	}
}
