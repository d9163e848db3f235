// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// twoDevices opens the best adapter twice: on a machine with several, use several.
func twoDevices(ctx context.Context) []*gpu.Device {
	var list []*gpu.Device
	for range 2 {
		d, err := gpu.Open(ctx)
		if err != nil {
			log.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func closeAll(devices []*gpu.Device) {
	for _, d := range devices {
		if err := d.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

// A thousand bytes are divided among the devices: a thousand go up, and a thousand come back.
func Example() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	arr, err := cruncher.NewArray[uint8]("arr", 1000)
	if err != nil {
		log.Fatal(err)
	}
	defer arr.Close()
	for i := range arr.Len() {
		if err := arr.Set(i, 55); err != nil {
			log.Fatal(err)
		}
	}
	if err := arr.SetFlags(cruncher.Flags{PartialRead: true, Write: true}); err != nil {
		log.Fatal(err)
	}
	if err := arr.Compute(ctx, cr, 1, "add3stream", cruncher.Range{Global: 1000, Local: 100}); err != nil {
		log.Fatal(err)
	}
	moved := cr.Traffic()
	fmt.Println(arr.Data()[770], moved.Up, moved.Down)
	// Output: 58 1000 1000
}

// The caller's own slices, with a number beside them.
func ExampleWrap() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `fn axpy(i: u32) { y[i] = alpha * x[i] + y[i]; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	sum := []float32{1, 1, 1, 1}
	x, err := cruncher.Wrap("x", []float32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	y, err := cruncher.Wrap("y", sum)
	if err != nil {
		log.Fatal(err)
	}
	if err := x.SetFlags(cruncher.Flags{Read: true, ReadOnly: true}); err != nil {
		log.Fatal(err)
	}
	if err := y.SetFlags(cruncher.Flags{PartialRead: true, Write: true}); err != nil {
		log.Fatal(err)
	}
	call := cruncher.Params(x, y, cruncher.NewScalar("alpha", float32(10)))
	if err := cr.Compute(ctx, 1, "axpy", cruncher.Range{Global: 4, Local: 2}, call); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	// Output: [11 21 31 41]
}

// Calls that nobody has to wait for between.
func ExampleCruncher_Batch() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `fn grow(i: u32) { a[i] = a[i] * 2 + 1; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	a, err := cruncher.NewArray[int32]("a", 1000)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.SetFlags(cruncher.Flags{PartialRead: true, Write: true}); err != nil {
		log.Fatal(err)
	}
	err = cr.Batch(ctx, func(b *cruncher.Batch) error {
		for range 10 {
			if err := b.Compute(ctx, 1, "grow", cruncher.Range{Global: 1000}, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Data()[999], cr.Traffic().Up)
	// Output: 1023 4000
}

// State that stays on the devices until it is wanted.
func ExampleCruncher_Fetch() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `fn step(i: u32) { s[i] = s[i] + i; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	s, err := cruncher.NewArray[uint32]("s", 100)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.SetFlags(cruncher.Flags{}); err != nil {
		log.Fatal(err)
	}
	for range 5 {
		if err := s.Compute(ctx, cr, 1, "step", cruncher.Range{Global: 100}); err != nil {
			log.Fatal(err)
		}
	}
	if err := cr.Fetch(ctx, s.Any); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Data()[7])
	// Output: 35
}

// An array of structures, as a struct of the source.
func ExampleWrapStructs() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `
struct Body { position: vec2<f32>, speed: vec2<f32> }
fn drift(i: u32) { bodies[i].position = bodies[i].position + dt * bodies[i].speed; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	type body struct{ X, Y, U, V float32 }
	list := []body{{0, 0, 1, 2}, {5, 5, -1, 0}}
	bodies, err := cruncher.WrapStructs("bodies", list)
	if err != nil {
		log.Fatal(err)
	}
	if err := bodies.SetFlags(cruncher.Flags{PartialRead: true, Write: true, Struct: "Body"}); err != nil {
		log.Fatal(err)
	}
	call := cruncher.Params(bodies, cruncher.NewScalar("dt", float32(0.5)))
	if err := cr.Compute(ctx, 1, "drift", cruncher.Range{Global: 2, Local: 1}, call); err != nil {
		log.Fatal(err)
	}
	fmt.Println(list)
	// Output: [{0.5 1 1 2} {4.5 5 -1 0}]
}

// A look at the host's side of what stays on the devices.
func ExampleFlags() {
	ctx := context.Background()
	devices := twoDevices(ctx)
	defer closeAll(devices)
	cr, err := cruncher.New(ctx, devices, `fn step(i: u32) { s[i] = s[i] + i; }`)
	if err != nil {
		log.Fatal(err)
	}
	defer cr.Close()
	s, err := cruncher.NewArray[uint32]("s", 100)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.SetFlags(cruncher.Flags{}); err != nil {
		log.Fatal(err)
	}
	if err := s.Compute(ctx, cr, 1, "step", cruncher.Range{Global: 100}); err != nil {
		log.Fatal(err)
	}
	_, err = s.At(99)
	fmt.Println(errors.Is(err, cruncher.ErrStale))
	if err := s.SetFlags(cruncher.Flags{AutoFetch: true}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.At(99))
	// Output:
	// true
	// 99 <nil>
}
