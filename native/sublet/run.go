// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

const runHelp = `Run kernels of one's own on several devices at once, each on a part of the range. A kernel is a WGSL function of the item
that it is called for; it uses arrays and scalars by their names:

  fn add3(i: u32) { arr[i] = arr[i] + 3u; }

Ranges of two and three dimensions, -g 640x480 with the fastest one first, have items of type vec2<u32> and vec3<u32>;
--offset and the devices' parts count along the last. Several kernels run one after the other.

-a NAME=FILE.npy:FLAGS:e=K names an array and says what is copied. It has float32, int32, uint32, int8, uint8, int16 or uint16
elements, in the order of the file. Without a file it is zeros: -a out=640x480xfloat32. FLAGS are words with commas between:

  read           all of it goes up to every device, before each call
  partial-read   each device gets the elements of its own items
  write          each device's elements come back, after each call
  write-all      all of it comes back, from one device, which does all the work
  none           nothing is copied: what devices have stays there, and moves when parts change
  read-only      kernels cannot write it: read, if no other word says what is copied
  write-only     nothing goes up: write, if no other word says what is copied
  packed         kernels see 8-bit and 16-bit elements as words of four or two, not as words of their own;
                 sublet_load_NAME(i) is one of them
  atomic         the same, as atomic words, with sublet_store_NAME(i, value); also for int32 and uint32

Without FLAGS it is read,write. What never went up is zero on the devices. e=K says that K elements belong to each item, halo=K that K more
on both sides are read. -o writes an array as it is after the last call, with what only the devices have.

-s NAME=VALUE names a number: float32 with a point or exponent, int32 without, or what :TYPE says.

Of --devices, 0 is the first adapter that sublet info lists with wgsl among its features, given the same --driver and
--adapter. One may be there several times. How much each gets depends on how long it took in the calls before.

With --json, a call's shares name a device by its place in --devices, which is its index in devices.

The table printed is about the last call; its seconds are with transfers, those of a first call also with the compilation.`

// runCommand is sublet run.
func (a *app) runCommand() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run FILE.wgsl -g RANGE -a NAME=FILE:FLAGS...",
		Short: "Run WGSL kernels on several devices at once",
		Long:  runHelp,
		Example: `  sublet run add3.wgsl -g 1000 -l 100 -a arr=arr.npy:partial-read,write -o arr=out.npy
  sublet run blur.wgsl --entry "across down" -g 640x480 -a image=image.npy -a out=640x480xfloat32 -s radius=3 -o out=out.npy`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := o.parse(args[0])
			if err != nil {
				return err
			}
			return a.crunch(c.Context(), t)
		},
	}
	o.flags(c)
	return c
}

// runOptions are the flags as they were given.
type runOptions struct {
	entry, grid, devices, sync   string
	local, offset, calls, repeat int
	blobs                        int
	arrays, scalars, outputs     []string
	watch                        bool
}

func (o *runOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.entry, "entry", "", "`KERNELS` to run, with blanks or commas between (default: the only one)")
	f.StringVarP(&o.grid, "global", "g", "", "`RANGE` of items: N, WxH or WxHxD")
	f.IntVarP(&o.local, "local", "l", 0, "items of a workgroup; devices get multiples of it (default: 256, or what they allow)")
	f.IntVar(&o.offset, "offset", 0, "number of the first item")
	f.IntVar(&o.calls, "calls", 1, "how often to do all of it")
	f.IntVar(&o.repeat, "repeat", 1, "how often a call runs the kernels without copies between")
	f.StringVar(&o.sync, "sync-kernel", "", "`KERNEL` to run after each repeat, on every device, in one workgroup")
	f.IntVar(&o.blobs, "pipeline", 1, "copy and compute at the same time, in so many `PIECES`")
	f.StringVar(&o.devices, "devices", "all", "`NUMBERS` of devices with commas between, or all")
	f.StringArrayVarP(&o.arrays, "array", "a", nil, "an array, as `NAME=FILE.npy:FLAGS:e=K`")
	f.StringArrayVarP(&o.scalars, "scalar", "s", nil, "a number, as `NAME=VALUE:TYPE`")
	f.StringArrayVarP(&o.outputs, "output", "o", nil, "an array to write after the last call, as `NAME=FILE.npy`; - is standard output")
	f.BoolVar(&o.watch, "watch", false, "print the devices' shares on standard error after each call")
}

// selection is what --devices counts: the adapters that fit the flags and compile WGSL.
func (a *app) selection(ctx context.Context) gpu.Selection {
	s, _ := cli.Select(ctx, a.driver, a.adapter)
	return s.Kernels()
}

// maxSource keeps what is no text from filling the memory.
const maxSource = 16 << 20

// readSource reads a file of kernels.
func readSource(path string) (string, *kernel.Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(f, maxSource+1))
	if err != nil {
		return "", nil, err
	}
	if n > maxSource {
		return "", nil, fault.Fail(path, gpu.ErrLimit, "more than 16 MiB are no source")
	}
	parsed, err := kernel.Parse(b.String())
	if err != nil {
		return "", nil, inFile(path, err)
	}
	return b.String(), parsed, nil
}
