// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
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

	a, err := ndarray.FromSlice(dev, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	t, err := a.Transpose() // a view: nothing moves
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	values, err := ndarray.Data[float32](ctx, t)
	fmt.Println(t.Shape(), t.Strides(), values, err)
	// Output: [3 2] [1 3] [1 4 2 5 3 6] <nil>
}

func ExampleArray_Share() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := ndarray.Alloc(dev, dtype.Int32, 3)
	if err != nil {
		log.Fatal(err)
	}
	same, err := a.Share() // another reference
	if err != nil {
		log.Fatal(err)
	}
	own, err := a.Clone() // the same bits until one of the two is written
	if err != nil {
		log.Fatal(err)
	}
	if err := same.Fill(ctx, 7); err != nil {
		log.Fatal(err)
	}
	v, _ := ndarray.Data[int32](ctx, a)
	w, _ := ndarray.Data[int32](ctx, own)
	fmt.Println(a.UseCount(), v, w)
	for _, x := range []*ndarray.Array{a, same, own} {
		x.Close()
	}
	fmt.Println(dev.Stats().LiveBytes)
	// Output:
	// 2 [7 7 7] [0 0 0]
	// 0
}

func ExampleWrap() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	mine := []int16{1, 2, 3, 4, 5, 6}
	columns, err := ndarray.Wrap(dev, mine, []int{3, 2}, ndarray.Placement{Strides: []int{1, 3}, Release: func() { fmt.Println("released") }})
	if err != nil {
		log.Fatal(err)
	}
	second, err := columns.Slice(ndarray.Region{Starts: []int{0, 1}, Ends: []int{3, 2}})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(second.Fill(ctx, -1), columns.Sync(ctx)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine)
	second.Close()
	columns.Close()
	// Output:
	// [1 2 3 -1 -1 -1]
	// released
}

func ExampleSaveParams() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	weight, err := ndarray.FromSlice(dev, []float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	bias, err := ndarray.FromSlice(dev, []float32{5, 6})
	if err != nil {
		log.Fatal(err)
	}
	p := ndarray.Params{{Name: "weight", Array: weight}, {Name: "bias", Array: bias}}
	var file bytes.Buffer
	if err := ndarray.SaveParams(ctx, &file, p, params.Options{}); err != nil {
		log.Fatal(err)
	}
	back, err := ndarray.LoadParams(ctx, dev, &file, ndarray.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range back {
		v, err := ndarray.Data[float32](ctx, one.Array)
		fmt.Println(one.Name, one.Array.DType(), one.Array.Shape(), v, err)
	}
	// Output:
	// weight float32 [2 2] [1 2 3 4] <nil>
	// bias float32 [2] [5 6] <nil>
}

func ExampleInput_Param() {
	ctx := context.Background()
	dev := oracle(ctx)
	defer dev.Close()

	a, err := ndarray.FromSlice(dev, []int8{3, -7, 9})
	if err != nil {
		log.Fatal(err)
	}
	in := ndarray.Input{Name: "conv0_weight", Shape: []int{3}, Precision: 4}
	_, err = in.Param(ctx, a)
	fmt.Println(err)
	q, err := in.Data(ctx, a)
	if err != nil {
		log.Fatal(err)
	}
	v, err := ndarray.Data[int32](ctx, q)
	fmt.Println(v, err)
	// Output:
	// parameter conv0_weight at index 2 value:9 exceed of precision 4
	// [3 -7 7] <nil>
}
