// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/matrix"
)

func ExampleWrapSparse() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	// The columns of a 2x3 matrix: the first has an entry in row 0, the second none, the third one in each row.
	values := []float32{1, 2, 3}
	s, err := matrix.WrapSparse(dev, matrix.CSC, 2, 3, values, []int32{0, 0, 1}, []int32{0, 1, 1, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	d, err := s.ToDense()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	fmt.Println(d.Read(ctx))

	v := s.Values()
	defer v.Close()
	if err := v.Assign(matrix.Scale(10, v)); err != nil {
		log.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(values)
	// Output:
	// [1 0 2 0 0 3] <nil>
	// [10 20 30]
}

func ExampleSparse_Append() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := matrix.NewSparse(dev, matrix.CSR, 2, 3, []float32{}, []int32{}, make([]int32, 3))
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	for _, e := range []struct {
		i, j int
		v    float32
	}{{0, 0, 2}, {0, 2, -1}, {1, 1, 3}} {
		if err := a.Append(e.i, e.j, e.v); err != nil {
			log.Fatal(err)
		}
	}
	b, err := matrix.FromSlice(dev, 3, 2, []float32{1, 2, 3, 4, 5, 6})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	c := &matrix.Dense[float32]{}
	defer c.Close()
	if err := c.Mul(a, b); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Read(ctx))
	// Output: [-3 -2 9 12] <nil>
}
