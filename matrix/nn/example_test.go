// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

func device(ctx context.Context) *gpu.Device {
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu"))
	if err != nil {
		log.Fatal(err)
	}
	return dev
}

func on[T matrix.Elem](dev *gpu.Device, rows, cols int, data ...T) *matrix.Dense[T] {
	m, err := matrix.FromSlice(dev, rows, cols, data)
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// A linear classifier learns which of two numbers is larger.
func Example() {
	ctx := context.Background()
	dev := device(ctx)
	defer dev.Close()
	x, labels := on[float32](dev, 3, 2, 1, 0, 0, 2, 3, 1), on[int32](dev, 3, 1, 0, 1, 0)
	w := on[float32](dev, 2, 2, 0, 0, 0, 0)
	opt := &nn.Momentum{Rate: 0.5, Momentum: 0.9}
	defer opt.Close()
	for range 30 {
		d := nn.CrossEntropyGrad(matrix.Mul(x, w), labels).Scale(1. / 3)
		if err := opt.Step(w, matrix.Mul(x.T(), d)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(matrix.Mul(x, w).ArgMaxRows().Read(ctx))
	// Output: [0 1 0] <nil>
}

// The edges of an image: a difference of neighbours, whose negative values Relu drops.
func ExampleConv() {
	ctx := context.Background()
	dev := device(ctx)
	defer dev.Close()
	image := on[float32](dev, 1, 12, 0, 0, 5, 5, 0, 0, 5, 5, 0, 0, 5, 5)
	conv := nn.Conv{Window: nn.Window{Channels: 1, Height: 3, Width: 4, KernelHeight: 1, KernelWidth: 2}, Outputs: 1}
	fmt.Println(conv.Forward(image, on[float32](dev, 1, 2, -1, 1), nil).Relu().Read(ctx))
	// Output: [0 5 0 0 5 0 0 5 0] <nil>
}
