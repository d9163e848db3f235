// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestProgramSubmissions replays 200 operations that depend on each other: one submission, no plan, no compilation, and no allocation for
// the caller's data.
func TestProgramSubmissions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(100)
		a, b := must[*dense](t)(matrix.FromSlice(dev, 8, 8, random(rng, 64))), must[*dense](t)(matrix.FromSlice(dev, 8, 8, random(rng, 64)))
		by := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{0.5}))
		var steps []matrix.Step
		for i := range 200 {
			x, y := a, b
			if i%2 == 1 {
				x, y = b, a
			}
			steps = append(steps, matrix.Into(x, matrix.Add(matrix.MulElem(x, by), y)))
		}
		p := must[*matrix.Program](t)(matrix.NewProgram(background, steps...))
		reference := func(x, y []float32, by float32) ([]float32, []float32) {
			x, y = slices.Clone(x), slices.Clone(y)
			for i := range 200 {
				to, from := x, y
				if i%2 == 1 {
					to, from = y, x
				}
				for k := range to {
					to[k] = float32(to[k]*by) + from[k]
				}
			}
			return x, y
		}
		for round, factor := range []float32{0.5, 0.25, -0.5} {
			x, y := random(rng, 64), random(rng, 64)
			check(t, errors.Join(a.SetSlice(x), b.SetSlice(y), by.SetSlice([]float32{factor}), dev.Sync(background)))
			start, planned := dev.Stats(), matrix.Planned(dev)
			check(t, p.Run(background))
			check(t, dev.Sync(background))
			end := dev.Stats()
			if n := end.Submissions - start.Submissions; n != 1 {
				t.Errorf("round %d: %d submissions", round, n)
			}
			if n := end.Dispatches - start.Dispatches; n != 200 {
				t.Errorf("round %d: %d launches", round, n)
			}
			if end.Compilations != start.Compilations || matrix.Planned(dev) != planned {
				t.Errorf("round %d: %d compilations, %d plans", round, end.Compilations-start.Compilations, matrix.Planned(dev)-planned)
			}
			x, y = reference(x, y, factor)
			alikeTo(t, name("a", round), must[[]float32](t)(a.Read(background)), x, 1e-3)
			alikeTo(t, name("b", round), must[[]float32](t)(b.Read(background)), y, 1e-3)
		}
		check(t, errors.Join(p.Close(), p.Close(), a.Close(), b.Close(), by.Close()))
		isError(t, p.Run(background), gpu.ErrClosed)
		nothingLeft(t, dev)
	})
}

// TestProgramSteps compares steps of all kinds with assignments of the same expressions, bit by bit, while their operands change.
func TestProgramSteps(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(101)
		mine := random(rng, 12*9)
		a := must[*dense](t)(matrix.Wrap(dev, 12, 9, mine))
		b := must[*dense](t)(matrix.FromSlice(dev, 9, 12, random(rng, 108)))
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 9, 9, []float32{1, 2, 3}, []int32{0, 4, 8}, []int32{0, 1, 1, 2, 2, 2, 3, 3, 3, 3}))
		out := make([]float32, 12*12)
		kinds := []struct {
			dst *dense
			e   *expr
		}{
			{must[*dense](t)(matrix.Wrap(dev, 12, 12, out)), matrix.Tanh(matrix.Mul(a, b))},
			{&dense{}, matrix.Softmax(matrix.Scale(3, a))},
			{&dense{}, matrix.SumCols(matrix.MulElem(matrix.Sub(a, matrix.Transpose(b)), a))},
			{must[*dense](t)(matrix.New[float32](dev, 12, 9, matrix.Options{ColMajor: true})), matrix.SortRows(a)},
			{&dense{}, matrix.Solve(matrix.Add(matrix.Mul(a, b), matrix.Scale(9, matrix.Eye[float32](12, 12, 0))), a)},
			{&dense{}, matrix.Mul(a, s)},
			{&dense{}, matrix.Add(s, matrix.Transpose(s)).Abs()},
			{&dense{}, matrix.Uniform[float32](3, 3, 0, 1, 7, 0).On(dev)},
		}
		var steps []matrix.Step
		for _, k := range kinds {
			steps = append(steps, matrix.Into(k.dst, k.e))
		}
		p := must[*matrix.Program](t)(matrix.NewProgram(background, steps...))
		for round := range 4 {
			switch round {
			case 1: // memory of the caller's, and of the device
				copy(mine, random(rng, len(mine)))
				check(t, errors.Join(a.Touch(), b.SetSlice(random(rng, 108))))
			case 2: // other memory of the same size
				check(t, a.SetValueFrom(12, 9, random(rng, 12*9), buffer.DontOwnBuffer))
			case 3: // another layout
				other := must[*dense](t)(matrix.New[float32](dev, 9, 12, matrix.Options{Padded: true}))
				check(t, errors.Join(other.Assign(b), b.Take(other)))
			}
			check(t, p.Run(background))
			for i, k := range kinds {
				got, want := must[[]float32](t)(k.dst.Read(background)), must[[]float32](t)(k.e.Read(background))
				same(t, name("round", round, "step", i), got, want)
			}
		}
		check(t, kinds[0].dst.Sync(background))
		same(t, "wrapped", out, must[[]float32](t)(kinds[0].e.Read(background)))
		check(t, b.Close())
		isError(t, p.Run(background), gpu.ErrClosed)
		check(t, errors.Join(p.Close(), a.Close(), s.Close()))
		for _, k := range kinds {
			check(t, k.dst.Close())
		}
		nothingLeft(t, dev)
	})
}

// TestProgramAllocations counts those of a run of 100 launches: none for each but what the oracle takes to compute one.
func TestProgramAllocations(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, b := must[*dense](t)(matrix.New[float32](dev, 4, 4)), must[*dense](t)(matrix.New[float32](dev, 4, 4))
		var steps []matrix.Step
		for range 100 {
			steps = append(steps, matrix.Into(a, matrix.Add(a, b)))
		}
		p := must[*matrix.Program](t)(matrix.NewProgram(background, steps...))
		run := func() { check(t, p.Run(background)) }
		run()
		check(t, dev.Sync(background))
		most := 50.0
		if dev.Info().Driver == "cpu" {
			most = 500
		}
		if n := testing.AllocsPerRun(5, run); n > most {
			t.Errorf("%v allocations for 100 launches", n)
		}
		check(t, errors.Join(p.Close(), a.Close(), b.Close()))
	})
}

// TestProgramErrors makes programs that there are not.
func TestProgramErrors(t *testing.T) {
	dev, other := devtest.Open(t, "cpu"), devtest.Open(t, "cpu")
	a, far := must[*dense](t)(matrix.New[float32](dev, 2, 3)), must[*dense](t)(matrix.New[float32](other, 2, 3))
	fixed := must[*dense](t)(matrix.Wrap(dev, 1, 1, []float32{1}))
	closed := must[*dense](t)(matrix.New[float32](dev, 1, 1))
	check(t, closed.Close())
	var none context.Context
	ended, cancel := context.WithCancel(background)
	cancel()
	second := func(_ any, err error) error { return err }
	made := func(steps ...matrix.Step) error { return second(matrix.NewProgram(background, steps...)) }
	for what, c := range map[string]struct{ err, want error }{
		"nothing":       {made(), gpu.ErrInvalid},
		"zero step":     {made(matrix.Step{}), buffer.ErrNil},
		"nil matrix":    {made(matrix.Into[float32](nil, a)), buffer.ErrNil},
		"nil operand":   {made(matrix.Into(a, nil)), buffer.ErrNil},
		"closed":        {made(matrix.Into(closed, a)), gpu.ErrClosed},
		"closed leaf":   {made(matrix.Into(a, closed)), gpu.ErrClosed},
		"size":          {made(matrix.Into(fixed, a)), buffer.ErrShape},
		"devices":       {made(matrix.Into(a, a), matrix.Into(far, far)), gpu.ErrForeign},
		"device":        {made(matrix.Into(far, a)), gpu.ErrForeign},
		"no device":     {made(matrix.Into(&dense{}, matrix.Fill[float32](1, 1, 1))), gpu.ErrInvalid},
		"shapes":        {made(matrix.Into(a, matrix.Mul(a, a))), buffer.ErrShape},
		"nil context":   {second(matrix.NewProgram(none, matrix.Into(a, a))), gpu.ErrInvalid},
		"ended":         {second(matrix.NewProgram(ended, matrix.Into(a, a))), context.Canceled},
		"nil program":   {(*matrix.Program)(nil).Run(background), buffer.ErrNil},
		"zero program":  {new(matrix.Program).Run(background), buffer.ErrNil},
		"close nothing": {errors.Join((*matrix.Program)(nil).Close(), new(matrix.Program).Close()), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: error %v, want %v", what, c.err, c.want)
		}
	}
	p := must[*matrix.Program](t)(matrix.NewProgram(background, matrix.Into(a, matrix.AddScalar(a, 1))))
	isError(t, p.Run(ended), context.Canceled)
	isError(t, p.Run(none), gpu.ErrInvalid)
	check(t, a.Resize(3, 3))
	for range 2 {
		isError(t, p.Run(background), buffer.ErrShape)
	}
	saysStep(t, p.Run(background), "3x3", "step 1 of 1")
	check(t, errors.Join(a.Resize(2, 3), a.Zero(), p.Run(background)))
	same(t, "after that", must[[]float32](t)(a.Read(background)), []float32{1, 1, 1, 1, 1, 1})
	check(t, errors.Join(p.Close(), a.Close(), far.Close(), fixed.Close()))
}

// saysStep fails unless an error says that a matrix has another size, and in which step.
func saysStep(t *testing.T, err error, size, step string) {
	t.Helper()
	if isError(t, err, buffer.ErrShape); !strings.Contains(err.Error(), size) || !strings.Contains(err.Error(), step) {
		t.Errorf("%v does not name %s and %s", err, size, step)
	}
}

// TestProgramDestinations changes destinations between runs: of a step that is planned once, of one that takes memory for the time, and of
// one with a temporary behind another that fails.
func TestProgramDestinations(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{1, 2}, []int32{0, 1}, []int32{0, 1, 2}))
		x := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		derived, plain, sum := &dense{}, &dense{}, &dense{}
		p := must[*matrix.Program](t)(matrix.NewProgram(background,
			matrix.Into(derived, matrix.Add(s, matrix.Transpose(s))), matrix.Into(plain, matrix.AddScalar(x, 1)),
			matrix.Into(sum, matrix.SumRows(matrix.SortRows(matrix.Mul(x, x))))))
		for _, m := range []*dense{derived, plain, sum, derived} {
			rows, cols := m.Dims()
			check(t, p.Run(background))
			same(t, "derived", must[[]float32](t)(derived.Read(background)), []float32{2, 0, 0, 4})
			same(t, "plain", must[[]float32](t)(plain.Read(background)), []float32{2, 3, 4, 5})
			same(t, "sum", must[[]float32](t)(sum.Read(background)), []float32{17, 37})
			check(t, m.Resize(5, 5))
			step := map[*dense]string{derived: "step 1 of 3", plain: "step 2 of 3", sum: "step 3 of 3"}[m]
			for range 2 {
				saysStep(t, p.Run(background), "5x5", step)
			}
			check(t, m.Resize(rows, cols))
		}
		check(t, x.Resize(1, 4)) // an operand
		saysStep(t, p.Run(background), "1x4", "step 2 of 3")
		check(t, errors.Join(x.Resize(2, 2), plain.Reset()))
		saysStep(t, p.Run(background), "0x0", "step 2 of 3")
		check(t, errors.Join(plain.Assign(x), p.Run(background)))
		mine := []float32{9, 9, 9, 9}
		host := matrix.Host(mine)
		host.ReadOnly = true
		check(t, plain.SetValueFrom(2, 2, host, buffer.DontOwnBuffer))
		for range 2 {
			isError(t, p.Run(background), gpu.ErrReadOnly)
		}
		same(t, "read-only", mine, []float32{9, 9, 9, 9})
		check(t, errors.Join(p.Close(), s.Close(), x.Close(), derived.Close(), plain.Close(), sum.Close()))
		nothingLeft(t, dev)
	})
}

// TestProgramGoroutines runs a program from several goroutines.
func TestProgramGoroutines(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.New[float32](dev, 5, 5))
		p := must[*matrix.Program](t)(matrix.NewProgram(background, matrix.Into(a, matrix.AddScalar(a, 1)), matrix.Into(a, matrix.AddScalar(a, 2))))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 25 {
					if err := p.Run(background); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		same(t, "sum", must[[]float32](t)(a.Read(background)), slices.Repeat([]float32{300}, 25))
		check(t, errors.Join(p.Close(), a.Close()))
	})
}

// BenchmarkProgram is the cost of one of 200 dependent small operations on the caller's goroutine: replayed, and assigned.
func BenchmarkProgram(b *testing.B) {
	dev := benchDevice(b)
	x, c := resident(b, dev, 64, 64), resident(b, dev, 64, 64)
	var steps []matrix.Step
	for range 200 {
		steps = append(steps, matrix.Into(c, matrix.Add(c, x)))
	}
	p := must[*matrix.Program](b)(matrix.NewProgram(b.Context(), steps...))
	for what, run := range map[string]func() error{
		"replayed": func() error { return p.Run(b.Context()) },
		"assigned": func() error {
			for range 200 {
				if err := c.Add(c, x); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check(b, run())
				b.StopTimer()
				check(b, dev.Sync(b.Context()))
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/operation")
		})
	}
	check(b, p.Close())
}
