// SPDX-License-Identifier: Apache-2.0

// Command prepare writes the archive of kernels that the npm package's program for pages without WebGPU brings along:
//
//	prepare archive
//
// It evaluates what pages usually compute first, and compiles each kernel of that for every JavaScript engine there may be: with relaxed
// SIMD and without, for memory of the program's own and for memory that is shared. It is built as the program is, for js and trimmed of
// the shaders' comments, so that the texts of kernels are the program's to the byte; TestUsual wants none of them to be compiled in a page.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prepare archive")
		os.Exit(2)
	}
	if err := prepare(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func prepare(path string) error {
	var archive modules.Archive
	if err := gpu.Register(compiling(simd.New(), &archive)); err != nil {
		return err
	}
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithDriver(name))
	if err != nil {
		return err
	}
	if err := errors.Join(evaluateAll(ctx, dev), dev.Close()); err != nil {
		return err
	}
	b := archive.Bytes()
	fmt.Printf("%d kernels, %d bytes\n", archive.Len(), len(b))
	return os.WriteFile(path, b, 0o644)
}

// name of the driver.
const name = "prepare"

// compiling is a driver whose devices put all kernels of the library's own into an archive.
func compiling(d driver.Driver, into *modules.Archive) driver.Driver {
	adapters := d.Adapters
	return driver.Driver{Name: name, Adapters: func(ctx context.Context) ([]driver.Adapter, error) {
		list, err := adapters(ctx)
		for i, a := range list {
			list[i].Open = func(ctx context.Context) (driver.Device, error) {
				dev, err := a.Open(ctx)
				if err != nil {
					return nil, err
				}
				return &device{dev, into}, nil
			}
		}
		return list, err
	}}
}

type device struct {
	driver.Device
	archive *modules.Archive
}

// NewKernel implements [driver.Device].
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	p, err := front.Parse(k.Source, k.Entry)
	if err != nil {
		return err
	}
	content := modules.Kernel{Source: k.Source, Entry: k.Entry, Bounded: k.Bounded, Exact: k.Exact}
	for i := range 4 {
		e := modules.Engine{JavaScript: true, Relaxed: i&1 != 0, Shared: i&2 != 0}
		m, err := modules.Compile(p, &content, &e)
		if err != nil {
			return err
		}
		if k.Bounded {
			d.archive.Add(modules.Hash(&content, e.Relaxed, e.Shared), m)
		}
	}
	return d.Device.NewKernel(ctx, id, k)
}
