// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// ok ends an example that fails.
func ok(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// exampleDevice opens a device for an example.
func exampleDevice() *gpu.Device {
	dev, err := gpu.Open(context.Background())
	ok(err)
	return dev
}

func ExampleDevicePool() {
	ctx := context.Background()
	a, b := exampleDevice(), exampleDevice() // two GPUs where there are two
	defer a.Close()
	defer b.Close()
	pool, err := cruncher.NewDevicePool(ctx, cruncher.Greedy, `
fn square(i: u32) { x[i] = x[i] * x[i]; }
fn total(i: u32) { for (var k = 0u; k < arrayLength(&x); k++) { sum[0] += x[k]; } }`)
	ok(err)
	defer pool.Close()
	ok(pool.AddDevice(a))
	ok(pool.AddDevice(b))

	x, err := cruncher.Wrap("x", []uint32{1, 2, 3, 4, 5, 6, 7, 8})
	ok(err)
	sum, err := cruncher.NewArray[uint32]("sum", 1)
	ok(err)
	var tasks []*cruncher.Task
	ok(x.SetFlags(cruncher.Flags{PartialRead: true, Write: true})) // each task moves its own two elements only
	for at := 0; at < x.Len(); at += 2 {
		task, err := cruncher.NewTask(1, "square", cruncher.Range{Global: 2, Offset: at}, x, cruncher.TaskOptions{})
		ok(err)
		tasks = append(tasks, task)
	}
	ok(x.SetFlags(cruncher.Flags{Read: true}))
	last, err := cruncher.NewTask(2, "total", cruncher.Range{Global: 1}, cruncher.Params(x, sum), cruncher.TaskOptions{Type: cruncher.GlobalSyncFirst})
	ok(err)
	tasks = append(tasks, last)

	ok(pool.Enqueue(tasks...))
	_, err = pool.Finish(ctx)
	ok(err)
	fmt.Println(x.Data(), sum.Data())
	// Output: [1 4 9 16 25 36 49 64] [204]
}

func ExampleTask() {
	dev := exampleDevice()
	defer dev.Close()
	cr, err := cruncher.New(context.Background(), []*gpu.Device{dev}, `fn half(i: u32) { x[i] = x[i] / 2.0; }`)
	ok(err)
	defer cr.Close()
	x, err := cruncher.Wrap("x", []float32{1, 2, 3, 4})
	ok(err)
	task, err := cruncher.NewTask(1, "half", cruncher.Range{Global: 4}, x, cruncher.TaskOptions{Callback: func(err error) {
		fmt.Println("done:", err)
	}})
	ok(err)
	for range 2 {
		ok(task.Compute(context.Background(), cr))
	}
	fmt.Println(x.Data())
	// Output:
	// done: <nil>
	// done: <nil>
	// [0.25 0.5 0.75 1]
}

func ExamplePipeline() {
	ctx := context.Background()
	a, b := exampleDevice(), exampleDevice()
	defer a.Close()
	defer b.Close()
	array := func(name string) *cruncher.Array[float32] {
		x, err := cruncher.NewArray[float32](name, 2)
		ok(err)
		return x
	}
	stage := func(dev *gpu.Device, kernel, wgsl string) cruncher.Stage {
		return cruncher.Stage{
			Devices: []*gpu.Device{dev}, WGSL: wgsl,
			Inputs:  []cruncher.Param{array("in")},
			Outputs: []cruncher.Param{array("out")},
			Kernels: []cruncher.Step{{Kernels: kernel, Range: cruncher.Range{Global: 2}}},
		}
	}
	pipe, err := cruncher.NewPipeline(ctx,
		stage(a, "mean", `fn mean(i: u32) { out[i] = (in[0] + in[1]) / 2.0; }`),
		stage(b, "scale", `fn scale(i: u32) { out[i] = in[i] * 10.0; }`))
	ok(err)
	defer pipe.Close()

	frame, result := array("frame"), array("result")
	for push := 1; push <= 7; push++ {
		frame.Data()[0], frame.Data()[1] = float32(push), float32(push+2)
		came, err := pipe.Push(ctx, cruncher.Params(frame), cruncher.Params(result))
		ok(err)
		if came {
			fmt.Println("push", push, "brings", result.Data())
		}
	}
	// Output:
	// push 5 brings [20 20]
	// push 6 brings [30 30]
	// push 7 brings [40 40]
}

func ExampleDevicePipeline() {
	ctx := context.Background()
	dev := exampleDevice()
	defer dev.Close()
	array := func(name string) *cruncher.Array[uint32] {
		x, err := cruncher.NewArray[uint32](name, 3)
		ok(err)
		return x
	}
	in, mid, out := array("in"), array("mid"), array("out")
	stage := func(kernel string, in, out cruncher.Param) cruncher.Stage {
		return cruncher.Stage{
			Kernels: []cruncher.Step{{Kernels: kernel, Range: cruncher.Range{Global: 3}}},
			Inputs:  []cruncher.Param{in}, Outputs: []cruncher.Param{out},
		}
	}
	pipe, err := cruncher.NewDevicePipeline(ctx, dev, `
fn add(i: u32) { mid[i] = in[i] + 1u; }
fn mul(i: u32) { out[i] = mid[i] * 10u; }`,
		stage("add", in, mid), stage("mul", mid, out)) // mid stays on the device
	ok(err)
	defer pipe.Close()

	for feed := range uint32(4) { // both stages at once: results come two feeds later
		copy(in.Data(), []uint32{feed, feed + 1, feed + 2})
		came, err := pipe.Feed(ctx)
		ok(err)
		if came {
			fmt.Println(out.Data())
		}
	}
	// Output:
	// [10 20 30]
	// [20 30 40]
}
