// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// given is a matrix of examples.
func given(dev *gpu.Device, rows, cols int, v ...float32) *matrix.Dense[float32] {
	m, err := matrix.FromSlice(dev, rows, cols, v)
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// show prints the rows of a result with two decimals.
func show(x matrix.Operand[float32]) {
	e := matrix.Add(x, matrix.Fill[float32](1, 1, 0))
	v, err := e.Read(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	_, cols := e.Dims()
	for i, x := range v {
		fmt.Printf("%.2f", x+0) // no negative zeros
		if i%cols == cols-1 {
			fmt.Println()
		} else {
			fmt.Print(" ")
		}
	}
}

// A line through points, by least squares.
func Example_leastSquares() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, y := given(dev, 4, 1, 0, 1, 2, 3), given(dev, 4, 1, 1, 3, 5, 7)
	a := matrix.HStack[float32](x, matrix.Fill[float32](4, 1, 1))
	show(matrix.LeastSquares[float32](a, y))
	// Output:
	// 2.00
	// 1.00
}

// Ridge regression: the normal equations with a penalty on the diagonal.
func Example_ridge() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, y := given(dev, 3, 2, 1, 0, 0, 1, 1, 1), given(dev, 3, 1, 1, 2, 3)
	penalty := matrix.Scale(0.1, matrix.Eye[float32](2, 2, 0))
	show(matrix.Solve[float32](matrix.Mul[float32](x.T(), x).Add(penalty), matrix.Mul[float32](x.T(), y)))
	// Output:
	// 1.00
	// 1.91
}

// The principal components of points: the right singular vectors of what is left without the mean.
func Example_principalComponents() {
	dev := oracle(context.Background())
	defer dev.Close()
	x := given(dev, 4, 2, 1, 1, 2, 2, 3, 3, 4, 4)
	centred := matrix.Sub[float32](x, matrix.MeanCols[float32](x))
	show(matrix.Abs[float32](matrix.RightVectors[float32](centred)))
	show(matrix.SingularValues[float32](centred))
	// Output:
	// 0.71 0.71
	// 0.71 0.71
	// 3.16 0.00
}

// Steps of k-means: every point goes to the nearest centre, and centres to the means of their points.
func Example_kMeans() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, c := given(dev, 4, 1, 1, 2, 9, 10), given(dev, 2, 1, 0, 3)
	for range 3 {
		near := matrix.OneHot[float32](matrix.ArgMinRows[float32](matrix.SquaredDiff[float32](x, c.T())), 2)
		_ = c.Assign(matrix.Mul[float32](near.T(), x).DivElem(matrix.SumCols[float32](near).T()))
	}
	show(c)
	// Output:
	// 1.50
	// 9.50
}

// The two nearest neighbours of points by cosine.
func Example_nearestNeighbours() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, q := given(dev, 3, 2, 1, 0, 0, 2, 3, 3), given(dev, 1, 2, 1, 0.1)
	unit := func(a matrix.Operand[float32]) *matrix.Expr[float32] {
		return matrix.DivElem[float32](a, matrix.Norm2Rows[float32](a))
	}
	show(matrix.Convert[float32](matrix.ArgTopKRows[float32](matrix.Mul[float32](unit(q), unit(x).T()), 2)))
	// Output: 0.00 2.00
}

// Columns of mean 0 and deviation 1.
func Example_standardise() {
	dev := oracle(context.Background())
	defer dev.Close()
	x := given(dev, 3, 2, 1, 10, 2, 20, 3, 30)
	show(matrix.DivElem[float32](matrix.Sub[float32](x, matrix.MeanCols[float32](x)), matrix.StdCols[float32](x, 1)))
	// Output:
	// -1.00 -1.00
	// 0.00 0.00
	// 1.00 1.00
}

// A convolution of a signal: the columns of a gathered matrix are what the kernel sees.
func Example_convolution() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, kernel := given(dev, 1, 6, 0, 0, 1, 2, 0, 0), given(dev, 3, 1, 1, 10, 100)
	at := matrix.Add[int32](matrix.RowIndex(4, 1), matrix.ColIndex(1, 3))
	show(matrix.Mul[float32](matrix.Gather[float32](x, matrix.Fill[int32](1, 1, 0), at), kernel).T())
	// Output: 100.00 210.00 21.00 2.00
}

// A step of training: the gradient of softmax cross entropy.
func Example_trainingStep() {
	dev := oracle(context.Background())
	defer dev.Close()
	x, w := given(dev, 2, 2, 1, 0, 0, 1), given(dev, 2, 2, 0, 0, 0, 0)
	labels := matrix.OneHot[float32](matrix.ColIndex(1, 2).T(), 2)
	for range 20 {
		wrong := matrix.Sub[float32](matrix.Softmax[float32](matrix.Mul[float32](x, w)), labels)
		_ = w.Assign(matrix.Sub[float32](w, matrix.Mul[float32](x.T(), wrong)))
	}
	show(matrix.Softmax[float32](matrix.Mul[float32](x, w)))
	// Output:
	// 0.98 0.02
	// 0.02 0.98
}

// PageRank of three pages, whose links are a sparse matrix: column j has 1/n for each of the n pages that j links to.
func Example_pageRank() {
	dev := oracle(context.Background())
	defer dev.Close()
	rank := given(dev, 3, 1, 1, 1, 1)
	links, err := matrix.WrapSparse(dev, matrix.CSC, 3, 3, []float32{0.5, 0.5, 1, 1}, []int32{1, 2, 2, 0}, []int32{0, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	for range 50 {
		_ = rank.Assign(matrix.Scale[float32](0.85, matrix.Mul(links, rank)).AddScalar(0.15))
	}
	show(rank)
	// Output:
	// 1.16
	// 0.64
	// 1.19
}

// The heat equation: every element moves towards the mean of its neighbours.
func Example_heat() {
	dev := oracle(context.Background())
	defer dev.Close()
	x := given(dev, 1, 5, 0, 0, 8, 0, 0)
	for range 2 {
		round := matrix.Add[float32](matrix.Roll[float32](x, 0, 1), matrix.Roll[float32](x, 0, -1))
		_ = x.Assign(matrix.Add[float32](matrix.Scale[float32](0.5, x), matrix.Scale(0.25, round)))
	}
	show(x)
	// Output: 0.50 2.00 3.00 2.00 0.50
}
