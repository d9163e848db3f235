// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// A kernel of one's own: bytes go up, the kernel runs, bytes come back. [cruncher] does this on several devices at once.
//
// [cruncher]: https://pkg.go.dev/github.com/sublet-gpu/sublet/buffer/cruncher
func Example() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	k, err := dev.Kernel(ctx, gpu.KernelDesc{
		Source: `struct Params { step: u32, count: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.count) { data[id.x] += p.step * id.x; }
}`,
		Bindings: []driver.Access{driver.AccessParams, driver.AccessReadWrite},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()

	mine := make([]byte, 4*100)
	b, err := dev.NewBuffer(uint64(len(mine)))
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	params := make([]byte, 16)
	binary.LittleEndian.PutUint32(params, 3)
	binary.LittleEndian.PutUint32(params[4:], 100)

	// All of it is queued, and waits together at Read.
	err = errors.Join(
		b.Write(0, gpu.HostBytes(mine)),
		k.Dispatch([3]uint32{2, 1, 1}, params, gpu.Arg{Buffer: b}),
		b.Read(ctx, gpu.Transfer{Host: gpu.HostBytes(mine), Width: len(mine), Count: 1}),
	)
	fmt.Println(binary.LittleEndian.Uint32(mine[4*99:]), err)
	// Output: 297 <nil>
}

// What fits is found first, and opened then. An empty selection is an error only when it is opened.
func ExampleSelect() {
	ctx := context.Background()
	usable := gpu.Select(ctx).Kernels()
	best := usable.ByMemory().Best(1)
	devices, err := best.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, dev := range devices {
		fmt.Println(dev.Info().Features.Has(driver.FeatureWGSL), dev.Close())
	}
	_, err = usable.Name("Voodoo 2").Open(ctx)
	fmt.Println(errors.Is(err, gpu.ErrNoAdapter))
	// Output:
	// true <nil>
	// true
}
