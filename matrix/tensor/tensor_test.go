// SPDX-License-Identifier: Apache-2.0

package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/tensor"
)

func TestMain(m *testing.M) { devtest.Main(m) }

type (
	tensors = tensor.Tensor[float32]
	operand = matrix.Operand[float32]
	expr    = matrix.Expr[float32]
)

// model is a tensor on the host.
type model struct {
	shape  []int
	values []float64
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// at is the element at an index that may be longer than the shape, or go through dimensions of 1.
func (m model) at(index []int) float64 {
	place := 0
	index = index[len(index)-len(m.shape):]
	for i, d := range m.shape {
		place = place*d + min(index[i], d-1)
	}
	return m.values[place]
}

// filled computes a model element by element.
func filled(shape []int, value func(index []int) float64) model {
	m := model{shape, make([]float64, size(shape))}
	index := make([]int, len(shape))
	for k := range m.values {
		rest := k
		for i := len(shape) - 1; i >= 0; i-- {
			index[i], rest = rest%shape[i], rest/shape[i]
		}
		m.values[k] = value(index)
	}
	return m
}

// random is a tensor of small whole numbers, and its model. Its matrix is of a shape of its own, or an expression.
func random(t *testing.T, dev *gpu.Device, rng *rand.Rand, shape []int) (*tensors, model) {
	t.Helper()
	m := filled(shape, func([]int) float64 { return float64(rng.IntN(9) - 4) })
	values := make([]float32, len(m.values))
	for i, v := range m.values {
		values[i] = float32(v)
	}
	rows := 1
	if n := len(values); n > 0 && n%2 == 0 && rng.IntN(2) == 0 {
		rows = 2
	}
	d, err := matrix.FromSlice(dev, rows, len(values)/rows, values)
	if err != nil {
		t.Fatal(err)
	}
	if rng.IntN(3) == 0 {
		return tensor.New(matrix.AddScalar(d, 0), shape...), m
	}
	return tensor.New[float32](d, shape...), m
}

func same(t *testing.T, what string, got *tensors, want model) {
	t.Helper()
	if !slices.Equal(got.Shape(), want.shape) || got.Err() != nil {
		t.Fatalf("%s: shape %v, want %v: %v", what, got.Shape(), want.shape, got.Err())
	}
	v, err := got.Read(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, w := range want.values {
		if math.Abs(float64(v[i])-w) > 1e-4 {
			t.Fatalf("%s: element %d of %v is %v, want %v", what, i, want.shape, v[i], w)
		}
	}
	if len(v) != len(want.values) {
		t.Fatalf("%s: %d elements", what, len(v))
	}
}

func randomShape(rng *rand.Rand) []int {
	shape := make([]int, rng.IntN(5))
	for i := range shape {
		shape[i] = 1 + rng.IntN(4)
		if rng.IntN(25) == 0 {
			shape[i] = 0
		}
	}
	return shape
}

// narrowed is a shape that stretches to another: with dimensions of 1, and fewer of them.
func narrowed(rng *rand.Rand, shape []int) []int {
	s := slices.Clone(shape[rng.IntN(len(shape)+1):])
	for i := range s {
		if rng.IntN(3) == 0 {
			s[i] = 1
		}
	}
	return s
}

// TestTensors compares all operations with those of models, on random shapes.
func TestTensors(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := rand.New(rand.NewPCG(90, 1))
		rounds := 150
		if !devtest.Long() {
			rounds = 50
		}
		for round := range rounds {
			shape := randomShape(rng)
			what := func(s string) string { return fmt.Sprintf("round %d, %s of %v", round, s, shape) }
			a, am := random(t, dev, rng, shape)
			narrow := narrowed(rng, shape)
			b, bm := random(t, dev, rng, narrow)
			c, cm := random(t, dev, rng, narrowed(rng, shape))
			same(t, what("itself"), a, am)
			same(t, what("map"), tensor.Map(matrix.Abs[float32], a), filled(shape, func(x []int) float64 { return math.Abs(am.at(x)) }))
			same(t, what("zip"), tensor.Zip(matrix.Sub[float32], b, a), filled(shape, func(x []int) float64 { return bm.at(x) - am.at(x) }))
			same(t, what("zip3"), tensor.Zip3(matrix.Where[float32], c, a, b), filled(shape, func(x []int) float64 {
				if cm.at(x) != 0 {
					return am.at(x)
				}
				return bm.at(x)
			}))
			same(t, what("broadcast"), b.Broadcast(shape...), filled(shape, bm.at))
			permuted(t, what("permutation"), rng, a, am)
			sliced(t, what("slice"), rng, a, am)
			reduced(t, what("sum"), rng, a, am)
			if len(shape) > 0 && !slices.Contains(shape, 0) {
				axis := rng.IntN(len(shape))
				same(t, what("running sums"), tensor.Along(matrix.CumSumRows[float32], a, axis-len(shape)), filled(shape, func(x []int) (sum float64) {
					for i := range x[axis] + 1 {
						y := slices.Clone(x)
						y[axis] = i
						sum += am.at(y)
					}
					return sum
				}))
			}
			flat := a.Reshape(-1)
			if size(shape) > 0 {
				same(t, what("flat"), flat, model{[]int{size(shape)}, am.values})
			}
		}
	})
}

func permuted(t *testing.T, what string, rng *rand.Rand, a *tensors, m model) {
	t.Helper()
	axes := rng.Perm(len(m.shape))
	shape := make([]int, len(axes))
	for i, axis := range axes {
		shape[i] = m.shape[axis]
	}
	if len(axes) == 0 {
		return
	}
	same(t, fmt.Sprint(what, axes), a.Permute(axes...), filled(shape, func(x []int) float64 {
		y := make([]int, len(x))
		for i, axis := range axes {
			y[axis] = x[i]
		}
		return m.at(y)
	}))
}

func sliced(t *testing.T, what string, rng *rand.Rand, a *tensors, m model) {
	t.Helper()
	ranges, shape := make([][2]int, len(m.shape)), make([]int, len(m.shape))
	for i, d := range m.shape {
		from := rng.IntN(d + 1)
		to := from + rng.IntN(d-from+1)
		if rng.IntN(2) == 0 {
			from, to = 0, d
		}
		ranges[i], shape[i] = [2]int{from, to}, to-from
	}
	same(t, fmt.Sprint(what, ranges), a.Slice(ranges...), filled(shape, func(x []int) float64 {
		y := slices.Clone(x)
		for i := range y {
			y[i] += ranges[i][0]
		}
		return m.at(y)
	}))
}

func reduced(t *testing.T, what string, rng *rand.Rand, a *tensors, m model) {
	t.Helper()
	axes := rng.Perm(len(m.shape))[:rng.IntN(len(m.shape)+1)]
	shape := slices.Clone(m.shape)
	for i := range shape {
		if len(axes) == 0 || slices.Contains(axes, i) {
			shape[i] = 1
		}
	}
	want := model{shape, make([]float64, size(shape))}
	filled(m.shape, func(x []int) float64 {
		place := 0
		for i, d := range shape {
			place = place*d + min(x[i], d-1)
		}
		want.values[place] += m.at(x)
		return 0
	})
	same(t, fmt.Sprint(what, axes), tensor.Reduce(matrix.SumRows[float32], a, axes...), want)
}

func TestMatMul(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := rand.New(rand.NewPCG(91, 1))
		for _, s := range [][2][]int{{{2, 3}, {3, 4}}, {{5, 2, 3}, {5, 3, 4}}, {{5, 2, 3}, {3, 2}}, {{2, 1, 3, 2}, {4, 2, 3}}, {{0, 2, 3}, {3, 4}}, {{2, 0, 3}, {2, 3, 1}}} {
			a, am := random(t, dev, rng, s[0])
			b, bm := random(t, dev, rng, s[1])
			got := tensor.MatMul(a, b)
			shape := got.Shape()
			if got.Err() != nil {
				t.Fatal(got.Err())
			}
			inner := s[0][len(s[0])-1]
			want := filled(shape, func(x []int) (sum float64) {
				n := len(x)
				for k := range inner {
					left, right := slices.Clone(x), slices.Clone(x)
					left[n-1], right[n-2] = k, k
					sum += am.at(left) * bm.at(right)
				}
				return sum
			})
			same(t, fmt.Sprint(s), got, want)
			same(t, fmt.Sprint(s, " of transposes"), turned(tensor.MatMul(turned(b), turned(a))), want)
		}
	})
}

// turned exchanges the last two dimensions.
func turned(t *tensors) *tensors {
	axes := make([]int, len(t.Shape()))
	for i := range axes {
		axes[i] = i
	}
	slices.Reverse(axes[len(axes)-2:])
	return t.Permute(axes...)
}

// TestErrors passes what there is no result of.
func TestErrors(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	d := devtest.Must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 2, 6))
	a := tensor.New[float32](d, 2, 2, 3)
	add := matrix.Add[float32]
	sum := matrix.SumRows[float32]
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"nil matrix":    {tensor.New[float32](nil, 2).Err(), buffer.ErrNil},
		"nil tensor":    {(*tensors)(nil).Err(), buffer.ErrNil},
		"zero value":    {tensor.Map(matrix.Abs[float32], &tensors{}).Err(), buffer.ErrNil},
		"shape":         {tensor.New[float32](d, 5).Err(), buffer.ErrShape},
		"negative":      {tensor.New[float32](d, -2, -6).Err(), buffer.ErrSize},
		"vast":          {tensor.New[float32](d, 1<<30, 1<<30).Err(), gpu.ErrLimit},
		"vast nothing":  {tensor.New[float32](matrix.Fill[float32](0, 1, 1), 0, 1<<40, 1<<40).Err(), gpu.ErrLimit},
		"rank":          {tensor.New[float32](d, make([]int, 17)...).Err(), gpu.ErrLimit},
		"no function":   {tensor.Map[float32, float32](nil, a).Err(), gpu.ErrInvalid},
		"nil result":    {tensor.Map(func(operand) *expr { return nil }, a).Err(), buffer.ErrNil},
		"other size":    {tensor.Map(sum, a).Err(), gpu.ErrInvalid},
		"broadcast":     {tensor.Zip(add, a, tensor.New[float32](d, 12)).Err(), buffer.ErrShape},
		"nil second":    {tensor.Zip(add, a, nil).Err(), buffer.ErrNil},
		"stretch":       {a.Broadcast(3, 2, 3).Err(), buffer.ErrShape},
		"shrink":        {a.Broadcast(2, 3).Err(), buffer.ErrShape},
		"vast stretch":  {tensor.New[float32](matrix.Fill[float32](1, 1, 1)).Broadcast(1<<20, 1<<20).Err(), gpu.ErrLimit},
		"axis":          {tensor.Reduce(sum, a, 3).Err(), buffer.ErrIndex},
		"negative axis": {tensor.Reduce(sum, a, -4).Err(), buffer.ErrIndex},
		"axis twice":    {tensor.Reduce(sum, a, 0, -3).Err(), gpu.ErrInvalid},
		"few axes":      {a.Permute(0, 1).Err(), gpu.ErrInvalid},
		"range":         {a.Slice([2]int{1, 3}).Err(), buffer.ErrIndex},
		"ranges":        {a.Slice(make([][2]int, 4)...).Err(), buffer.ErrIndex},
		"reshape":       {a.Reshape(5, -1).Err(), buffer.ErrShape},
		"two unknown":   {a.Reshape(-1, -1).Err(), buffer.ErrSize},
		"along":         {tensor.Along(matrix.Softmax[float32], a, 7).Err(), buffer.ErrIndex},
		"along nothing": {tensor.Along(matrix.Softmax[float32], tensor.New[float32](matrix.Fill[float32](1, 1, 1)), 0).Err(), buffer.ErrIndex},
		"product":       {tensor.MatMul(a, a).Err(), buffer.ErrShape},
		"vectors":       {tensor.MatMul(a.Reshape(12), a).Err(), gpu.ErrInvalid},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: error %v, want %v", what, c.err, c.want)
		}
		var op *gpu.OpError
		if errors.Is(c.want, buffer.ErrShape) && (!errors.As(c.err, &op) || !regexp.MustCompile(`^\(.*\) with \(.*\): .*[a-z]`).MatchString(op.Detail)) {
			t.Errorf("%s: %v does not say what would fit", what, c.err)
		}
	}
}

// TestDispatches counts launches: a broadcast that is one of rows and columns, and one that is not, are one each.
func TestDispatches(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		x := devtest.Must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 4, 30))
		y := devtest.Must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 1, 8))
		a := tensor.New[float32](x, 4, 5, 3, 2)
		for what, e := range map[string]*tensors{
			"last":    tensor.Zip(matrix.Add[float32], a, tensor.New[float32](y, 4, 1, 1, 2)),
			"rows":    tensor.Zip(matrix.Add[float32], a, tensor.New(y.Slice(0, 1, 0, 4).Expr(), 4, 1, 1, 1)),
			"columns": tensor.Zip(matrix.Add[float32], a, tensor.New(y.Slice(0, 1, 0, 2).Expr(), 2)),
			"sums":    tensor.Reduce(matrix.SumRows[float32], tensor.Map(matrix.Exp[float32], a), 1, 3),
		} {
			d := new(matrix.Dense[float32])
			start := dev.Stats().Dispatches
			devtest.Check(t, d.Assign(e.Expr()))
			if n := dev.Stats().Dispatches - start; n > 3 || n > 1 && what != "sums" {
				t.Errorf("%s: %d launches", what, n)
			}
			devtest.Check(t, d.Close())
		}
	})
}

func Example() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu"))
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	images, err := matrix.FromSlice(dev, 2, 6, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) // two of 3 pixels with 2 channels
	if err != nil {
		panic(err)
	}
	x := tensor.New[float32](images, 2, 3, 2)
	mean := tensor.Reduce(matrix.MeanRows[float32], x, 0, 1)
	y := tensor.Zip(matrix.Sub[float32], x, mean)
	fmt.Println(mean.Shape(), y.Shape())
	fmt.Println(y.Read(ctx))
	// Output:
	// [1 1 2] [2 3 2]
	// [-5 -5 -3 -3 -1 -1 1 1 3 3 5 5] <nil>
}
