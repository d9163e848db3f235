// SPDX-License-Identifier: Apache-2.0

// Command hello multiplies a matrix by its transpose on the GPU, in memory of its own.
//
// The same file is a native program and, built with GOOS=js GOARCH=wasm and loaded with Go's own wasm_exec.js, a page.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

func main() {
	if err := hello(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func hello(ctx context.Context) error {
	dev, err := gpu.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	mine := []float32{1, 2, 3, 4, 5, 6} // stays ours: the matrix below is a view of it
	a, err := matrix.Wrap(dev, 2, 3, mine)
	if err != nil {
		return err
	}
	result := make([]float32, 4)
	c, err := matrix.Wrap(dev, 2, 2, result)
	if err != nil {
		return err
	}
	if err := c.Mul(a, a.T()); err != nil {
		return err
	}
	if err := c.Sync(ctx); err != nil { // the product is now in our slice
		return err
	}
	fmt.Println(result, "on", dev.Info().Name)
	return nil
}
