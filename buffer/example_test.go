// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// A kernel that reads wrapped memory has it sent to the device; what changes is sent again, and nothing else.
func ExampleWrap() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu")) // leave the option out to get the best device
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	mine := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	b, err := buffer.Wrap(dev, gpu.HostBytes(mine), func() { fmt.Println("released") })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Mode(), b.Location(), dev.Stats().BytesUp)

	if _, err := b.Memory(buffer.Reads); err != nil { // for a kernel
		log.Fatal(err)
	}
	fmt.Println(b.Location(), dev.Stats().BytesUp)

	mine[0] = 100
	if err := b.Touch(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Location())
	fmt.Println(b.Close())
	// Output:
	// external host 0
	// both 8
	// host
	// released
	// <nil>
}

// An owned buffer is read and written in ranges of any size.
func ExampleBuffer_Patch() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu"))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	b, err := buffer.New(dev, 8)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := b.Patch(ctx, 3, []byte{7, 7}); err != nil {
		log.Fatal(err)
	}
	err = b.Access(ctx, buffer.Range(0, 8), buffer.Reads, func(data []byte) error {
		fmt.Printf("%d\n", data)
		return nil
	})
	fmt.Println(err)
	// Output:
	// [0 0 0 7 7 0 0 0]
	// <nil>
}
