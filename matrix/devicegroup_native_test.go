// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// inGroups runs a test on two devices of each driver, and on one of each.
func inGroups(t *testing.T, test func(t *testing.T, devices []*gpu.Device, g *matrix.DeviceGroup)) {
	t.Helper()
	names := devtest.Drivers()
	on := func(names ...string) func(*testing.T) {
		return func(t *testing.T) {
			var devices []*gpu.Device
			for _, name := range names {
				devices = append(devices, devtest.Open(t, name))
			}
			test(t, devices, groupOf(t, devices...))
		}
	}
	for _, name := range names {
		t.Run(name, on(name, name))
	}
	if len(names) > 1 {
		t.Run("all", on(names...))
	}
}

func groupOf(t testing.TB, devices ...*gpu.Device) *matrix.DeviceGroup {
	t.Helper()
	return must[*matrix.DeviceGroup](t)(matrix.On(devices...))
}

// covered fails unless the devices computed so many rows together, at least so many devices some.
func covered(t testing.TB, what string, g *matrix.DeviceGroup, count, least int) {
	t.Helper()
	sum, busy := 0, 0
	for i, s := range g.Last() {
		if s.Device != i || s.Count < 0 || s.Count > 0 != (s.Seconds > 0) {
			t.Fatalf("%s: share %d: %+v", what, i, s)
		}
		sum += s.Count
		if s.Count > 0 {
			busy++
		}
	}
	if sum != count || busy < least {
		t.Fatalf("%s: %+v for %d", what, g.Last(), count)
	}
}

// elements are those of a matrix in the caller's memory.
func elements(m *dense, mem []float32) (list []float32) {
	rows, cols := m.Dims()
	for i := range rows {
		for j := range cols {
			list = append(list, mem[cell(m, i, j)])
		}
	}
	return list
}

// TestGroupProducts multiplies in memory of all forms, which has the result when the call returns, and nothing else.
func TestGroupProducts(t *testing.T) {
	inGroups(t, func(t *testing.T, devices []*gpu.Device, g *matrix.DeviceGroup) {
		rng := newRand(3)
		for k, size := range [][3]int{{1, 40, 300}, {7, 5, 3}, {257, 64, 129}} {
			m, inner, n := size[0], size[1], size[2]
			x, y := random(rng, m*inner), random(rng, inner*n)
			want, bound := reference(x, y, m, inner, n)
			for f := range forms[:min(len(forms), devtest.Times(1))] {
				at := func(i int) form { return forms[(k+f+i)%len(forms)] }
				what := fmt.Sprint(size, at(0).name, at(1).name, at(2).name)
				a, _ := wrapped(t, devices[f%2], at(0), m, inner, x)
				b, _ := wrapped(t, devices[f%2], at(1), inner, n, y)
				c, mem := wrapped(t, devices[k%2], at(2), m, n, make([]float32, m*n))
				check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Mul(a, b))))
				within(t, what, elements(c, mem), want, bound)
				guarded(t, what, c, mem)
				length := map[bool]int{false: m, true: n}[m < 4*len(devices) && n > m]
				covered(t, what, g, length, min(1+(1-min(f, 1))*length/12, len(devices))) // a first call splits evenly
				same(t, what, must[[]float32](t)(c.Read(t.Context())), elements(c, mem))
				for _, x := range []*dense{a, b, c} {
					check(t, x.Close())
				}
			}
		}
	})
}

// TestGroupExpressions has results of all kinds of matrices, which may be operands.
func TestGroupExpressions(t *testing.T) {
	inGroups(t, func(t *testing.T, devices []*gpu.Device, g *matrix.DeviceGroup) {
		const rows, cols = 67, 35
		x := random(newRand(4), rows*cols)
		home, ctx := devices[0], t.Context()
		a := must[*dense](t)(matrix.FromSlice(home, rows, cols, x))
		w := must[*dense](t)(matrix.Wrap(home, rows, cols, slices.Clone(x)))
		for name, e := range map[string]*expr{
			"functions": matrix.Add(a, w).Tanh(), "rows": matrix.Sub(a, matrix.MeanCols(w)), "softmax": matrix.Softmax(matrix.Scale(2, a)),
			"gram": matrix.Mul(a, matrix.Transpose(w)), "wide": matrix.Mul(matrix.Slice(a, 0, 2, 0, cols), matrix.Transpose(w)),
			"sum": matrix.Sum(a), "numbers": matrix.Convert[float32](matrix.RowIndex(rows, 9)), "parts": matrix.VStack(a, w, matrix.Fill[float32](9, cols, 3)),
			"view": matrix.Mul(matrix.Transpose(a), w).AddScalar(1), "empty": matrix.Mul(matrix.Slice(a, 3, 3, 0, cols), matrix.Transpose(w)),
		} {
			r, c := e.Dims()
			want := must[[]float32](t)(e.On(home).Read(ctx))
			bound := make([]float64, len(want))
			for i, v := range want {
				bound[i] = 1e-4 * max(1, math.Abs(float64(v)))
			}
			var zero dense
			results := map[string]*dense{
				"new": &zero, "owned elsewhere": must[*dense](t)(matrix.New[float32](devices[1], r, c, matrix.Options{ColMajor: true})),
				"resized": must[*dense](t)(matrix.New[float32](home, 2, 2)), "mapped": must[*dense](t)(matrix.Map[float32](devices[1], r, c)),
			}
			for kind, m := range results {
				check(t, g.Assign(ctx, matrix.Into(m, e)))
				within(t, name+" "+kind, must[[]float32](t)(m.Read(ctx)), float64s(want), bound)
				check(t, m.Close())
			}
		}
		want := must[[]float32](t)(matrix.Add(matrix.Slice(w, 0, rows-1, 0, cols), matrix.Slice(w, 1, rows, 0, cols)).Read(ctx))
		check(t, g.Assign(ctx, matrix.Into(w.RowSlice(1, rows-1), matrix.Add(w.RowSlice(0, rows-1), w.RowSlice(1, rows-1)))))
		same(t, "overlapping", must[[]float32](t)(w.Read(ctx))[cols:], want)
		check(t, a.Close())
		check(t, w.Close())
	})
}

// TestGroupTypes computes with elements of other types.
func TestGroupTypes(t *testing.T) {
	inGroups(t, func(t *testing.T, devices []*gpu.Device, g *matrix.DeviceGroup) {
		const n = 41
		ints, complexes := make([]int8, n*n), make([]complex64, n*n)
		for i := range ints {
			ints[i], complexes[i] = int8(i%7-3), complex(float32(i%5), float32(i%3-1))
		}
		a := must[*matrix.Dense[int8]](t)(matrix.FromSlice(devices[0], n, n, ints))
		z := must[*matrix.Dense[complex64]](t)(matrix.Wrap(devices[1], n, n, complexes))
		sum, product := make([]int8, n*n), make([]complex64, n*n)
		toInts := must[*matrix.Dense[int8]](t)(matrix.Wrap(devices[1], n, n, sum))
		check(t, g.Assign(t.Context(), matrix.Into(toInts, matrix.Add(a, a))))
		for i, v := range ints {
			if sum[i] != 2*v {
				t.Fatalf("element %d is %d, want %d", i, sum[i], 2*v)
			}
		}
		toComplex := must[*matrix.Dense[complex64]](t)(matrix.Wrap(devices[0], n, n, product))
		check(t, g.Assign(t.Context(), matrix.Into(toComplex, matrix.Mul(z, z))))
		for i := range product {
			var want complex64
			for k := range n {
				want += complexes[i/n*n+k] * complexes[k*n+i%n]
			}
			if product[i] != want { // whole numbers
				t.Fatalf("element %d is %v, want %v", i, product[i], want)
			}
		}
		for _, m := range []interface{ Close() error }{a, z, toInts, toComplex} {
			check(t, m.Close())
		}
	})
}

// TestGroupLarger multiplies what none of the devices holds as a whole, neither operands nor result.
func TestGroupLarger(t *testing.T) {
	for _, driver := range devtest.Drivers() {
		t.Run(driver, func(t *testing.T) {
			devices := []*gpu.Device{devtest.Open(t, driver, gpu.WithMaxBuffer(4<<10)), devtest.Open(t, driver, gpu.WithMaxBuffer(4<<10))}
			const m, k, n = 70, 50, 60
			x, y, mem := integers(newRand(1), m*k), integers(newRand(2), k*n), make([]float32, m*n)
			a, b := must[*dense](t)(matrix.Wrap(devices[0], m, k, x)), must[*dense](t)(matrix.Wrap(devices[0], k, n, y))
			c := must[*dense](t)(matrix.Wrap(devices[1], m, n, mem))
			check(t, groupOf(t, devices...).Assign(t.Context(), matrix.Into(c, matrix.Mul(a, b).AddScalar(1))))
			want, bound := reference(x, y, m, k, n)
			for i := range want {
				want[i]++
			}
			within(t, "product", mem, want, bound)
			for _, x := range []*dense{a, b, c} {
				check(t, x.Close())
			}
		})
	}
}

// TestGroupMoves counts what goes to a device that has none of the operands: rows of the left factor, and the right one once.
func TestGroupMoves(t *testing.T) {
	devices := []*gpu.Device{devtest.Open(t, "cpu"), devtest.Open(t, "cpu")}
	g := groupOf(t, devices...)
	const m, k, n = 500, 32, 16 // too few rows to find the speeds out before
	x, y := random(newRand(5), m*k), random(newRand(6), k*n)
	a := must[*dense](t)(matrix.Wrap(devices[0], m, k, x))
	b := must[*dense](t)(matrix.FromSlice(devices[0], k, n, y))
	c := must[*dense](t)(matrix.Wrap(devices[0], m, n, make([]float32, m*n)))
	up := func() int {
		before := devices[1].Stats().BytesUp
		check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Mul(a, b))))
		return int(devices[1].Stats().BytesUp - before)
	}
	first := up()
	if want := 4*k*n + 4*k*g.Last()[1].Count; first < want || first > want+4<<10 || g.Last()[1].Count < m/3 { // parameters, too
		t.Errorf("%d bytes for the first product, want %d for %+v", first, want, g.Last())
	}
	if got := up(); got > 4*m*k { // other rows, at the most
		t.Errorf("%d bytes for the second product", got)
	}
	clear(y)
	check(t, b.SetSlice(y))
	check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Mul(a, b))))
	same(t, "after a change", must[[]float32](t)(c.Read(t.Context())), make([]float32, m*n))
	for _, x := range []*dense{a, b, c} {
		check(t, x.Close())
	}
}

// fixedShares is a balancer that gives all but a few rows to the second device, and keeps what it is told.
type fixedShares struct {
	requests []balance.Request
	samples  [][]balance.Sample
}

func (f *fixedShares) Split(r balance.Request) ([]int, error) {
	f.requests = append(f.requests, r)
	return []int{3, r.Global - 3}, nil
}

func (f *fixedShares) Observe(_ int, samples []balance.Sample) {
	f.samples = append(f.samples, samples)
}

func (f *fixedShares) Stats(int) balance.Stats { return balance.Stats{Calls: len(f.samples)} }

// TestGroupBalance has shares follow the balancer, which hears of all parts but those of a first call, which compile.
func TestGroupBalance(t *testing.T) {
	devices := []*gpu.Device{devtest.Open(t, "cpu"), devtest.Open(t, "cpu")}
	g, b := groupOf(t, devices...), &fixedShares{}
	matrix.Balance(g, b)
	const n = 5000
	a := must[*dense](t)(matrix.Wrap(devices[0], n, 1, random(newRand(7), n)))
	c := must[*dense](t)(matrix.Wrap(devices[0], n, 1, make([]float32, n)))
	for range 2 {
		check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Scale(2, a))))
		same(t, "twice", must[[]float32](t)(c.Read(t.Context())), must[[]float32](t)(matrix.Scale(2, a).Read(t.Context())))
	}
	parts := []int{128, 128, n - 256, n} // 5000/32 rows, in steps of 16 for each device // of the first call three, the second one at once
	if len(b.requests) != len(parts) || len(b.samples) != len(parts)-1 {
		t.Fatalf("%d splits and %d observations", len(b.requests), len(b.samples))
	}
	for i, r := range b.requests {
		if r.Global != parts[i] || r.ID != b.requests[0].ID || r.Devices != 2 || !slices.Equal(r.Alive, []bool{true, true}) {
			t.Errorf("request %d: %+v", i, r)
		}
		if i > 0 {
			s := b.samples[i-1]
			if s[0].Count != 3 || s[1].Count != parts[i]-3 || s[0].Seconds <= 0 || s[1].Seconds <= 0 {
				t.Errorf("samples %d: %+v", i, s)
			}
		}
	}
	if s := g.Last(); s[0].Count != 3 || s[1].Count != n-3 {
		t.Errorf("shares %+v", s)
	}
	check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Scale(2, a).AddScalar(1))))
	if last := b.requests[len(b.requests)-1]; last.ID == b.requests[0].ID {
		t.Error("another expression has the same number")
	}
	check(t, a.Close())
	check(t, c.Close())
}

// TestGroupFaults has everything that can go wrong on one of two devices do so, at every call of its driver: the other one computes what
// a lost one does not, and what lacks memory or is refused leaves the result's matrix as it was.
func TestGroupFaults(t *testing.T) {
	const m, k, n = 40, 9, 21
	x, y := random(newRand(8), m*k), random(newRand(9), k*n)
	want, bound := reference(x, y, m, k, n)
	old := slices.Repeat([]float32{7}, m*n)
	for _, what := range []devtest.Fault{devtest.Lose, devtest.LoseAfter, devtest.NoMemory, devtest.Refuse} {
		for victim := range 2 { // the second has neither operands nor the result
			fired := 0
			for call := 0; call == fired && call < 200; call++ {
				other := devtest.Open(t, "cpu")
				bad, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
				devices := []*gpu.Device{bad, other}
				if victim == 1 {
					slices.Reverse(devices)
				}
				a, b := must[*dense](t)(matrix.Wrap(devices[0], m, k, x)), must[*dense](t)(matrix.Wrap(devices[0], k, n, y))
				mem := slices.Clone(old)
				c := must[*dense](t)(matrix.Wrap(devices[0], m, n, mem))
				g := groupOf(t, devices...)
				f.Arm(devtest.At(call, what))
				err := g.Assign(t.Context(), matrix.Into(c, matrix.Mul(a, b)))
				fired += f.Fired(what)
				name := fmt.Sprintf("%v at call %d of device %d", what, call, victim)
				switch {
				case err == nil:
					within(t, name, mem, want, bound)
				case !errors.Is(err, gpu.ErrNoMemory) && !errors.Is(err, gpu.ErrInvalid):
					t.Fatalf("%s: %v", name, err)
				default:
					same(t, name, mem, old)
				}
				for _, x := range []*dense{a, b, c} {
					_ = x.Close() // on a device that may be lost
				}
				f.Arm(nil)
				next := must[*dense](t)(matrix.New[float32](other, 9, 9))
				check(t, g.Assign(t.Context(), matrix.Into(next, matrix.Fill[float32](9, 9, 1))))
				check(t, next.Close())
			}
			if fired < 5 {
				t.Errorf("%v on device %d: only %d calls of its driver", what, victim, fired)
			}
		}
	}
}

// TestGroupLosesAll loses the only device that has an operand, and then all of them.
func TestGroupLosesAll(t *testing.T) {
	bad, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
	last, e := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
	a := must[*dense](t)(matrix.FromSlice(bad, 30, 30, random(newRand(1), 900)))
	mem := slices.Repeat([]float32{7}, 900)
	c := must[*dense](t)(matrix.Wrap(last, 30, 30, mem))
	g := groupOf(t, bad, last)
	f.Lose()
	for what, x := range map[string]*expr{"operand": matrix.Mul(a, a), "all devices": matrix.Fill[float32](30, 30, 1)} {
		if what == "all devices" {
			e.Lose()
		}
		if err := g.Assign(t.Context(), matrix.Into(c, x)); !errors.Is(err, gpu.ErrDeviceLost) {
			t.Errorf("%s: %v", what, err)
		}
		same(t, what, mem, slices.Repeat([]float32{7}, 900))
	}
	if g.Last() != nil {
		t.Errorf("shares %+v", g.Last())
	}
	_, _ = a.Close(), c.Close() // of lost devices
}

// TestGroupCancelled ends the context while one device computes.
func TestGroupCancelled(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, gate *devtest.Gate) {
		other := devtest.Open(t, "cpu")
		mem := slices.Repeat([]float32{7}, 64*64)
		a := must[*dense](t)(matrix.Wrap(other, 64, 64, make([]float32, 64*64)))
		c := must[*dense](t)(matrix.Wrap(other, 64, 64, mem))
		g := groupOf(t, other, dev)
		gate.Shut(t, dev)
		devtest.CalledOff(t, "Assign", func(ctx context.Context) error { return g.Assign(ctx, matrix.Into(c, matrix.Mul(a, a))) })
		same(t, "cancelled", mem, slices.Repeat([]float32{7}, 64*64))
		gate.Open()
		check(t, g.Assign(t.Context(), matrix.Into(c, matrix.Mul(a, a))))
		same(t, "afterwards", mem, make([]float32, 64*64))
		check(t, a.Close())
		check(t, c.Close())
	})
}

// TestGroupRefuses has groups and assignments that cannot be.
func TestGroupRefuses(t *testing.T) {
	dev, other := devtest.Open(t, "cpu"), devtest.Open(t, "cpu")
	closed := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu")))
	check(t, closed.Close())
	for name, c := range map[string]struct {
		devices []*gpu.Device
		want    error
	}{
		"none": {nil, gpu.ErrInvalid}, "nil": {[]*gpu.Device{dev, nil}, gpu.ErrInvalid}, "closed": {[]*gpu.Device{dev, closed}, gpu.ErrClosed},
		"many": {slices.Repeat([]*gpu.Device{dev}, 1025), gpu.ErrInvalid},
	} {
		if g, err := matrix.On(c.devices...); !errors.Is(err, c.want) || g != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
	b := must[*dense](t)(matrix.FromSlice(other, 2, 2, []float32{1, 2, 3, 4}))
	shut := must[*dense](t)(matrix.New[float32](dev, 2, 2))
	check(t, shut.Close())
	read := must[*dense](t)(matrix.FromBuffer[float32](dev, 2, 2, gpu.Host{Bytes: make([]byte, 16), Size: 16, ReadOnly: true}, buffer.DontOwnBuffer))
	g, ended := groupOf(t, dev, dev), must[*matrix.DeviceGroup](t)(matrix.On(dev, other))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[error]error{
		buffer.ErrNil:         (*matrix.DeviceGroup)(nil).Assign(t.Context(), matrix.Into(a, a)),
		buffer.ErrShape:       g.Assign(t.Context(), matrix.Into(read, matrix.Mul(a, matrix.Slice(a, 0, 2, 0, 1)))),
		gpu.ErrReadOnly:       g.Assign(t.Context(), matrix.Into(read, matrix.Mul(a, a))),
		gpu.ErrClosed:         g.Assign(t.Context(), matrix.Into(shut, a)),
		gpu.ErrForeign:        g.Assign(t.Context(), matrix.Into(a, matrix.Mul(a, b))),
		gpu.ErrUnsupported:    g.Assign(t.Context(), matrix.Into(a, matrix.Mul(matrix.Inverse(a), a))),
		context.Canceled:      ended.Assign(ctx, matrix.Into(a, a)),
		errors.New("no step"): g.Assign(t.Context(), matrix.Step{}),
	} {
		if name.Error() == "no step" {
			name = buffer.ErrNil
		}
		if !errors.Is(err, name) {
			t.Errorf("want %v: %v", name, err)
		}
	}
	check(t, g.Assign(t.Context(), matrix.Into(a, matrix.Mul(b, b)))) // one device twice, and none that has operands
	same(t, "twice", must[[]float32](t)(a.Read(t.Context())), []float32{7, 10, 15, 22})
	for _, m := range []*dense{a, b, read} {
		check(t, m.Close())
	}
}
