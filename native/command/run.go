// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
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

Mesa's llvmpipe stops the loops of an item, and of those computed beside it, after 65,535 turns together. A kernel that gets there is
an error. Do the work in several calls, or on another adapter.

With --json, a call's shares name a device by its place in --devices, which is its index in devices.

The table printed is about the last call; its seconds are with transfers, those of a first call also with the compilation.`

// runTask is what sublet run is to do.
type runTask struct {
	*app
	file, entry string
	rang        cruncher.Range
	calls       int
	selected
	arrays  []*runArray
	scalars []cruncher.Param
	results []named
	watch   bool

	opened []*gpu.Device
	cr     *cruncher.Cruncher
}

func (a *app) runCommand() *cobra.Command {
	t := runTask{app: a}
	c := &cobra.Command{
		Use:   "run FILE.wgsl -g RANGE -a NAME=FILE:FLAGS...",
		Short: "Run WGSL kernels on several devices at once",
		Long:  runHelp,
		Example: `  sublet run add3.wgsl -g 1000 -l 100 -a arr=arr.npy:partial-read,write -o arr=out.npy
  sublet run blur.wgsl --entry "across down" -g 640x480 -a image=image.npy -a out=640x480xfloat32 -s radius=3 -o out=out.npy`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.file = args[0]
			if err := t.check(); err != nil {
				return err
			}
			return t.run(c.Context())
		},
	}
	t.flags(c)
	return c
}

func (t *runTask) flags(c *cobra.Command) {
	f, seen := c.Flags(), map[string]bool{}
	f.StringVar(&t.entry, "entry", "", "`KERNELS` to run, with blanks or commas between (default: the only one)")
	f.FuncP("global", "g", "`RANGE` of items: N, WxH or WxHxD", t.addGlobal)
	f.IntVarP(&t.rang.Local, "local", "l", 0, "items of a workgroup; devices get multiples of it (default: 256, or what they allow)")
	f.IntVar(&t.rang.Offset, "offset", 0, "number of the first item")
	f.IntVar(&t.calls, "calls", 1, "how often to do all of it")
	f.IntVar(&t.rang.Repeat, "repeat", 1, "how often a call runs the kernels without copies between")
	f.StringVar(&t.rang.SyncKernel, "sync-kernel", "", "`KERNEL` to run after each repeat, on every device, in one workgroup")
	f.IntVar(&t.rang.Blobs, "pipeline", 1, "copy and compute at the same time, in so many `PIECES`")
	f.Func("devices", devicesUsage+" (default: all)", t.addDevices)
	f.FuncP("array", "a", "an array, as `NAME=FILE.npy:FLAGS:e=K`", func(s string) error {
		a, err := parseArray(s, seen)
		t.arrays = append(t.arrays, a)
		return err
	})
	f.FuncP("scalar", "s", "a number, as `NAME=VALUE:TYPE`", func(s string) error {
		p, err := parseScalar(s, seen)
		t.scalars = append(t.scalars, p)
		return err
	})
	f.FuncP("output", "o", "an array to write after the last call, as `NAME=FILE.npy`; - is standard output", func(s string) error {
		o, err := splitNamed("NAME=FILE.npy", s, map[string]bool{})
		t.results = append(t.results, o)
		t.claim(o.value)
		return err
	})
	f.BoolVar(&t.watch, "watch", false, "print the devices' shares on standard error after each call")
}

func (t *runTask) addGlobal(s string) error {
	grid, ok := numbers(s, "x")
	if !ok || len(grid) > 3 || slices.Contains(grid, 0) {
		return cli.Usagef("want N, WxH or WxHxD")
	}
	last := len(grid) - 1
	t.rang.Global, t.rang.Inner = grid[last], grid[:last]
	return nil
}

// numbers reads numbers with a separator between.
func numbers(s, separator string) (list []int, ok bool) {
	for part := range strings.SplitSeq(s, separator) {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return nil, false
		}
		list = append(list, int(n))
	}
	return list, true
}

// check finds what is wrong with the flags as a whole.
func (t *runTask) check() error {
	for _, n := range []struct {
		flag    string
		v, from int
	}{
		{"-l", t.rang.Local, 0},
		{"--offset", t.rang.Offset, 0},
		{"--calls", t.calls, 1},
		{"--repeat", t.rang.Repeat, 1},
		{"--pipeline", t.rang.Blobs, 1},
		{"-g", t.rang.Global, 1},
	} {
		if n.v < n.from {
			return cli.Usagef("%s %d: want %d or more", n.flag, n.v, n.from)
		}
	}
	if len(t.arrays) == 0 {
		return cli.Usagef("-a is missing: want the arrays of the kernels, as -a %s", arrayForm)
	}
	for i, o := range t.results {
		if t.array(o.name) == nil {
			return cli.Usagef("-o %s: there is no such array", o.name)
		}
		if slices.ContainsFunc(t.results[:i], func(p named) bool { return filepath.Clean(p.value) == filepath.Clean(o.value) }) {
			return cli.Usagef("-o %s: %s is there already", o.name, o.value)
		}
	}
	return nil
}

// array returns the array of a name, or nil.
func (t *runTask) array(name string) *runArray {
	for _, a := range t.arrays {
		if a.name == name {
			return a
		}
	}
	return nil
}

// parseScalar reads what -s says.
func parseScalar(s string, seen map[string]bool) (p cruncher.Param, err error) {
	n, err := splitNamed("NAME=VALUE:TYPE", s, seen)
	if err != nil {
		return nil, err
	}
	value, typ, given := strings.Cut(n.value, ":")
	i, noInt := strconv.ParseInt(value, 10, 64)
	if !given {
		typ = "float32"
		if noInt == nil || errors.Is(noInt, strconv.ErrRange) {
			typ = "int32"
		}
	}
	fits := noInt == nil
	switch typ {
	case "float32":
		var f float64
		f, err = strconv.ParseFloat(value, 32)
		p, fits = cruncher.NewScalar(n.name, float32(f)), err == nil
	case "int32":
		p, fits = cruncher.NewScalar(n.name, int32(i)), fits && i == int64(int32(i))
	case "uint32":
		p, fits = cruncher.NewScalar(n.name, uint32(i)), fits && i == int64(uint32(i))
	default:
		return nil, cli.Usagef("want float32, int32 or uint32 as the type")
	}
	if !fits {
		return nil, cli.Usagef("%q is no %s", value, typ)
	}
	return p, nil
}

// maxSource keeps what is no text from filling the memory.
const maxSource = 16 << 20

// readSource reads the file of kernels. Without a name it wants one kernel, and takes its name.
func (t *runTask) readSource(ctx context.Context) (string, error) {
	f, err := openInput(ctx, t.file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxSource {
		return "", fault.Fail(t.file, gpu.ErrLimit, "more than 16 MiB are no source")
	}
	parsed, err := kernel.Parse(string(b))
	if err != nil {
		return "", inFile(t.file, err)
	}
	if all := parsed.Kernels(); t.entry == "" {
		if t.entry = all[0]; len(all) > 1 {
			return "", cli.Usagef("%s has several kernels: name some with --entry: %s", t.file, strings.Join(all, ", "))
		}
	}
	return string(b), nil
}

// runReport is what --json prints for a run.
type runReport struct {
	Calls   []callReport   `json:"calls"`
	Devices []deviceReport `json:"devices"`
	Seconds float64        `json:"seconds"` // of all calls
}

type callReport struct {
	Shares    []cruncher.Share `json:"shares"` // Device is a place in --devices
	BytesUp   int64            `json:"bytes_up"`
	BytesDown int64            `json:"bytes_down"`
}

// run does the task and reports on it. What is wrong with files is found before a device is opened.
func (t *runTask) run(ctx context.Context) error {
	defer t.close()
	source, err := t.readSource(ctx)
	if err != nil {
		return err
	}
	outs := make([]io.Writer, len(t.results))
	for i, o := range t.results {
		if outs[i], err = t.create(o.value); err != nil {
			return err
		}
	}
	for _, a := range t.arrays {
		if a.path == "" {
			continue
		}
		if a.array, err = t.readArray(ctx, a.path, false, a.check); err != nil {
			return err
		}
	}
	if err := t.open(ctx, source); err != nil {
		return err
	}
	for _, a := range t.arrays {
		if err := a.wrap(t.opened); err != nil {
			return err
		}
	}
	r, err := t.call(ctx)
	if err != nil {
		return err
	}
	traffic := t.cr.Traffic()
	t.progress.enter("writing", 0)
	for i, o := range t.results {
		a := t.array(o.name)
		if err := t.cr.Fetch(ctx, a.param); err != nil { // what no flag brought back
			return err
		}
		if err := a.write(outs[i]); err != nil {
			return inFile(o.value, err)
		}
	}
	return t.report(r, func(w io.Writer) error { return t.print(w, r, traffic) })
}

// open opens the devices.
func (t *runTask) open(ctx context.Context, source string) (err error) {
	if t.opened, err = t.selected.open(ctx, t.app); err == nil {
		t.cr, err = cruncher.New(ctx, t.opened, source)
	}
	return err
}

// close gives back the memory of devices.
func (t *runTask) close() {
	_ = t.cr.Close()
	for _, a := range t.arrays {
		_ = a.param.Close()
	}
	for _, d := range t.opened {
		_ = d.Close()
	}
}

// call makes the calls.
func (t *runTask) call(ctx context.Context) (*runReport, error) {
	r, params := &runReport{}, t.scalars
	r.Devices = deviceReports(t.opened)
	for _, a := range t.arrays {
		params = append(params, a.param)
	}
	if t.watch {
		t.progress.stop()
	}
	total := int64(t.calls)
	if total == 1 {
		total = 0 // nobody knows how far one is
	}
	t.progress.enter("computing", total)
	start := time.Now()
	for n := range t.calls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := t.cr.Compute(ctx, 1, t.entry, t.rang, params...)
		if errors.Is(err, gpu.ErrCompile) || errors.Is(err, kernel.ErrKernel) {
			return nil, inFile(t.file, err)
		}
		if err != nil {
			return nil, err
		}
		t.progress.add(1)
		last := t.cr.Last()
		if t.watch {
			var parts []string
			for _, s := range last.Shares {
				parts = append(parts, fmt.Sprintf("device %d %.1f%% %.3f ms", s.Device, t.percent(s), s.Seconds*1000))
			}
			fmt.Fprintf(t.err, "call %d: %s\n", n+1, strings.Join(parts, ", "))
		}
		if t.json {
			r.Calls = append(r.Calls, callReport{append([]cruncher.Share{}, last.Shares...), last.Traffic.Up, last.Traffic.Down})
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// print prints what the last call did, and sums of all.
func (t *runTask) print(out io.Writer, r *runReport, sum cruncher.Traffic) error {
	rows := []string{"DEVICE\tADAPTER\tOFFSET\tITEMS\tSHARE\tSECONDS"}
	for _, s := range t.cr.Last().Shares {
		rows = append(rows, fmt.Sprintf("%d\t%s\t%d\t%d\t%.1f%%\t%.6f",
			s.Device, r.Devices[s.Device].Name, s.Offset, s.Count, t.percent(s), s.Seconds))
	}
	if err := printTable(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "calls: %d, seconds: %.3f, bytes up: %d, bytes down: %d, bytes between devices: %d\n",
		t.calls, r.Seconds, sum.Up, sum.Down, sum.Migrated)
	return err
}

// percent returns how much of a call's items a share is.
func (t *runTask) percent(s cruncher.Share) float64 {
	return 100 * float64(s.Count) / float64(t.rang.Global)
}
