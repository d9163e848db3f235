// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/dlpack"
)

// A slice goes through the hands of another library and comes back as an array: nothing was copied on the way.
func Example() {
	data := []float32{1, 2, 3, 4, 5, 6}
	if err := lend(context.Background(), data); err != nil {
		log.Fatal(err)
	}
	fmt.Println(data)
	// Output:
	// float32 [3 2] with strides [1 3], back on the CPU: true
	// [1 2 3 4 5 60]
}

func lend(ctx context.Context, data []float32) (err error) {
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu")) // leave the option out to get the best one
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := ndarray.Wrap(dev, data, []int{2, 3}, ndarray.Placement{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	transposed, err := a.Transpose()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, transposed.Close()) }()

	tensor, err := dlpack.FromArray(ctx, transposed, dlpack.InPlace)
	if err != nil {
		return err
	}
	managed, err := dlpack.Export(tensor)
	if err != nil {
		return errors.Join(err, tensor.Close())
	}
	if err := consume(unsafe.Pointer(managed)); err != nil { // a function of a C library
		return err
	}
	return a.Touch() // the other library has written
}

// consume is what another library does.
func consume(pointer unsafe.Pointer) error {
	tensor, err := dlpack.Import((*dlpack.Managed)(pointer))
	if err != nil {
		return err
	}
	mem, _, err := tensor.Host()
	if err == nil {
		fmt.Printf("%v %v with strides %v, back on the CPU: %v\n", tensor.Type, tensor.Shape, tensor.Strides, tensor.Device.Type == dlpack.CPU)
		*(*float32)(unsafe.Pointer(&mem.Bytes[20])) = 60
	}
	return errors.Join(err, tensor.Close())
}
