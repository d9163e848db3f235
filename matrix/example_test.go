// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// oracle opens the device that every machine has. Leave the option out to get the best one.
func oracle(ctx context.Context) *gpu.Device {
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu"))
	if err != nil {
		log.Fatal(err)
	}
	return dev
}

func Example() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	weights := []float32{1, 2, 3, 4, 5, 6}
	w, err := matrix.Wrap(dev, 2, 3, weights) // not copied
	if err != nil {
		log.Fatal(err)
	}
	x, err := matrix.FromSlice(dev, 3, 1, []float32{1, 0, -1})
	if err != nil {
		log.Fatal(err)
	}
	y, err := matrix.Mul(w, x).AddScalar(2.5).Relu().Read(ctx)
	fmt.Println(y, err)
	// Output: [0.5 0.5] <nil>
}

func ExampleWrap() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	mine := []float32{1, 2, 3, 4}
	m, err := matrix.Wrap(dev, 2, 2, mine)
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Assign(matrix.Scale(10, m)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine) // the result is still on the device
	if err := m.Sync(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine)
	// Output:
	// [1 2 3 4]
	// [10 20 30 40]
}

func ExampleDense_Slice() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := matrix.FromSlice(dev, 3, 3, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9})
	if err != nil {
		log.Fatal(err)
	}
	corner := a.Slice(0, 2, 1, 3) // rows 0 and 1, columns 1 and 2
	defer corner.Close()
	if err := corner.Fill(0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Read(ctx))
	// Output: [1 0 0 4 0 0 7 8 9] <nil>
}

func ExampleEval() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	vars := map[string]matrix.Operand[float32]{"A": a}
	fmt.Println(matrix.Eval("A*A.T + 1", vars).Read(ctx))
	fmt.Println(matrix.Eval("A * row(A, 0)", vars).Read(ctx))
	// Output:
	// [6 12 12 26] <nil>
	// [] matrix: Eval: column 1: Mul: 2x2 by 1x2: dimension mismatch: the second factor needs 2 rows
}

func ExampleSum() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := matrix.FromSlice(dev, 2, 2, []float32{3, 0, 0, 4})
	if err != nil {
		log.Fatal(err)
	}
	norm, err := matrix.Sum(matrix.Square(a)).Sqrt().Value(ctx)
	fmt.Println(norm, err)
	// Output: 5 <nil>
}

// Columns with the mean 0 and the standard deviation 1, as NumPy's (x - x.mean(0)) / x.std(0).
func ExampleStdCols() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	x, err := matrix.FromSlice(dev, 4, 2, []float32{1, 10, 3, 30, 3, 50, 5, 70})
	if err != nil {
		log.Fatal(err)
	}
	z, err := matrix.Sub(x, matrix.MeanCols(x)).DivElem(matrix.StdCols(x)).Read(ctx)
	fmt.Printf("%.3f %v\n", z, err)
	// Output: [-1.414 -1.342 0.000 -0.447 0.000 0.447 1.414 1.342] <nil>
}

// The two nearest neighbours of each query by the cosine of the angle between them.
func ExampleArgTopKRows() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	points, err := matrix.FromSlice(dev, 4, 2, []float32{1, 0, 0, 2, 3, 3, -1, 0})
	if err != nil {
		log.Fatal(err)
	}
	queries, err := matrix.FromSlice(dev, 2, 2, []float32{5, 1, -1, 4})
	if err != nil {
		log.Fatal(err)
	}
	unit := matrix.DivElem(points, matrix.Norm2Rows(points)) // the queries' lengths change no order
	nearest, err := matrix.ArgTopKRows(matrix.Mul(queries, unit.T()), 2).Read(ctx)
	fmt.Println(nearest, err)
	// Output: [0 2 1 2] <nil>
}

func ExampleProgram() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()
	x, err := matrix.FromSlice(dev, 2, 1, []float32{1, 0})
	if err != nil {
		log.Fatal(err)
	}
	turn, err := matrix.FromSlice(dev, 2, 2, []float32{0, -1, 1, 0})
	if err != nil {
		log.Fatal(err)
	}
	step, err := matrix.NewProgram(ctx, matrix.Into(x, matrix.Mul(turn, x)), matrix.Into(x, matrix.Scale(2, x)))
	if err != nil {
		log.Fatal(err)
	}
	defer step.Close()
	for range 3 {
		if err := step.Run(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(x.Read(ctx))
	// Output: [0 -8] <nil>
}

func ExampleOn() {
	ctx := context.Background()
	devices := []*gpu.Device{oracle(ctx), oracle(ctx)} // gpu.Select has those of the machine
	for _, d := range devices {
		defer d.Close()
	}
	group, err := matrix.On(devices...)
	if err != nil {
		log.Fatal(err)
	}
	a, err := matrix.FromSlice(devices[0], 2, 2, []float32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	mine := make([]float32, 4)
	c, err := matrix.Wrap(devices[0], 2, 2, mine)
	if err != nil {
		log.Fatal(err)
	}
	if err := group.Assign(ctx, matrix.Into(c, matrix.Mul(a, a).AddScalar(1))); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine)
	// Output: [8 11 16 23]
}
