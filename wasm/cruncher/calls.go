// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// crunch is a cruncher, and how it was made.
type crunch struct {
	*cruncher.Cruncher
	opened    *opened
	devices   []*gpu.Device
	wgsl      string
	balancer  func() balance.Balancer // makes one: a balancer belongs to one cruncher
	coherence cruncher.Coherence
	memory    uint64
}

// options are those of a cruncher like this one.
func (c *crunch) options() []cruncher.Option {
	return []cruncher.Option{cruncher.WithBalancer(c.balancer()), cruncher.WithCoherence(c.coherence), cruncher.WithMemory(c.memory)}
}

// Close waits for calls that are under way.
func (c *crunch) Close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.Cruncher.Close(), c.opened.Close())
}

// opened is devices that were opened for a cruncher, which pools and pipelines made of that use, too. The last user closes them.
type opened struct {
	server *server
	list   []*gpu.Device
	users  int
}

// open notes a user.
func (o *opened) open() *opened {
	o.users++
	o.server.opened[o] = true
	return o
}

func (o *opened) Close() error {
	if o.users--; o.users > 0 {
		return nil
	}
	delete(o.server.opened, o)
	var errs []error
	for _, d := range o.list {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// open makes a cruncher of WGSL, a balancer, a coherence, a limit of memory and devices. It reports the kernels and the devices.
func (s *server) open(r *page.Reader) page.Work {
	h := r.Word()
	c := &crunch{wgsl: r.Text(), balancer: s.balancers(r), coherence: cruncher.Coherence(r.Index(int(cruncher.Strict) + 1)), memory: uint64(r.Int())}
	var wanted []any
	for r.Left() {
		wanted = append(wanted, wantedDevice(r))
	}
	return func(ctx context.Context) (any, error) {
		c.opened = (&opened{server: s}).open()
		var infos []any
		err := page.Guard(func() {
			for _, w := range wanted {
				if d := s.device(ctx, c.opened, w); d != nil {
					c.devices = append(c.devices, d)
					infos = append(infos, page.Information(d.Info()))
				}
			}
			c.Cruncher = page.Must(cruncher.New(ctx, c.devices, c.wgsl, c.options()...))
		})
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		s.crunchers[h] = c
		return []any{page.List(c.Kernels()), infos}, nil
	}
}

// wantedDevice reads what a device is to be.
func wantedDevice(r *page.Reader) any {
	d := r.Word()
	if d == uint32(adopted) {
		return r.Object()
	}
	return d
}

// What a cruncher's device may be: that of the Gpu, one of another adapter if there is one, a device of its own, or a GPUDevice,
// which stays the page's and whose number follows.
const (
	own = iota
	other
	highPerformance
	lowPower
	adopted
)

// device opens what is wanted, or returns nil. A GPUDevice is the same device for each mention.
func (s *server) device(ctx context.Context, o *opened, wanted any) (d *gpu.Device) {
	switch wanted {
	case uint32(own):
		return s.dev
	case uint32(other):
		if d = s.other(ctx); d == nil {
			return nil
		}
	case uint32(highPerformance):
		d = page.Must(gpu.Open(ctx))
	case uint32(lowPower):
		d = page.Must(gpu.Open(ctx, gpu.WithLowPower()))
	default:
		for _, d := range o.list {
			if v, ok := d.Handle().(js.Value); ok && v.Equal(js.ValueOf(wanted)) {
				return d
			}
		}
		d = page.Must(gpu.Open(ctx, gpu.WithDevice(wanted)))
	}
	o.list = append(o.list, d)
	return d
}

// other opens a processor beside the Gpu's own, if the browser tells of one. Software, which only takes time from the others, does
// not count, and where the browser conceals what its own is there is nothing to compare.
func (s *server) other(ctx context.Context) *gpu.Device {
	own := s.dev.Info()
	if own.Vendor == "" {
		return nil
	}
	for a, err := range gpu.Adapters(ctx) {
		if err != nil || a.Info.Kind == driver.KindCPU || a.Info.Name == own.Name && a.Info.Vendor == own.Vendor {
			continue
		}
		if d, err := a.Open(ctx); err == nil {
			return d
		}
	}
	return nil
}

// order is what a call computes. The flags of arrays are those of when it is read.
type order struct {
	id      int
	kernels string
	rng     cruncher.Range
	params  cruncher.Param
}

func (s *server) orderOf(r *page.Reader) order {
	return order{r.Int(), r.Text(), readRange(r), cruncher.Params(s.params(r, -1)...)}
}

// readRange reads a range, in the order of its fields but for the inner extents at its end.
func readRange(r *page.Reader) cruncher.Range {
	rng := cruncher.Range{
		Global: r.Int(), Local: r.Int(), Offset: r.Int(), Strict: r.Bool(),
		Blobs: r.Int(), Repeat: r.Int(), SyncKernel: r.Text(), TransferOnly: r.Bool(),
	}
	for n := r.Word(); n > 0 && r.Left(); n-- {
		rng.Inner = append(rng.Inner, r.Int())
	}
	return rng
}

// order reads what a call computes, and has it computed.
func (s *server) order(
	r *page.Reader, compute func(context.Context, int, string, cruncher.Range, ...cruncher.Param) error,
) page.Work {
	o := s.orderOf(r)
	return func(ctx context.Context) (any, error) { return nil, compute(ctx, o.id, o.kernels, o.rng, o.params) }
}

// move fetches or evicts the arrays that it reads.
func (s *server) move(r *page.Reader, do func(*cruncher.Cruncher, context.Context, ...*cruncher.Any) error) page.Work {
	c := s.cruncherOf(r)
	var list []*cruncher.Any
	for r.Left() {
		list = append(list, s.arrayOf(r))
	}
	return func(ctx context.Context) (any, error) { return nil, do(c.Cruncher, ctx, list...) }
}

func (s *server) cruncherOf(r *page.Reader) *crunch {
	return page.Handle(r, "the cruncher", s.crunchers)
}

// stats returns what is known of an id.
func (s *server) stats(r *page.Reader) any {
	st := s.cruncherOf(r).Stats(r.Int())
	var history []any
	for _, counts := range st.History {
		history = append(history, page.List(counts))
	}
	return page.Object(
		"calls", st.Calls, "shares", page.List(st.Shares), "throughput", page.List(st.Throughput), "history", history,
		"dropped", st.Dropped, "probes", st.Probes,
	)
}

// report returns what the last call did.
func (s *server) report(r *page.Reader) any {
	last := s.cruncherOf(r).Last()
	var shares []any
	for _, x := range last.Shares {
		shares = append(shares, page.Object("device", x.Device, "offset", x.Offset, "count", x.Count, "seconds", x.Seconds))
	}
	report := traffic(last.Traffic)
	report["shares"] = shares
	return report
}

func traffic(t cruncher.Traffic) map[string]any {
	return page.Object("bytesUp", t.Up, "bytesDown", t.Down, "bytesMigrated", t.Migrated)
}

// types are the element types in the order of web/src/crunch-array.mjs.
var types = []dtype.Type{
	dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, cruncher.Bytes,
}

// property reads which flag is meant, in the order of web/src/crunch-array.mjs. It is nil for the one after the flags, which says
// whether to track the array.
func property(f *cruncher.Flags, r *page.Reader) any {
	list := []any{
		&f.Read, &f.PartialRead, &f.Write, &f.WriteAll, &f.ReadOnly, &f.WriteOnly, &f.ZeroCopy, &f.ElementsPerItem, &f.Halo, &f.Mode, &f.Struct, nil,
	}
	return list[r.Index(len(list))]
}

// change reads a flag and its value and sets it, as far as others let it be changed.
func (s *server) change(x *cruncher.Any, r *page.Reader) {
	f := x.Flags()
	flag, value := property(&f, r), r.Int()
	switch p := flag.(type) {
	case *bool:
		*p = value != 0
	case *int:
		*p = value
	case *kernel.Mode:
		*p = kernel.Mode(value)
	case *string:
		*p = s.Text(uint32(value))
	default:
		if value != 0 {
			x.Track()
		}
	}
	page.Check(x.SetFlags(f))
}

// array makes one of memory and of properties with their values.
func (s *server) array(r *page.Reader) any {
	h, name, t := r.Word(), r.Text(), types[r.Index(len(types))]
	x := page.Must(cruncher.WrapHost(name, t, page.Memory(r.Object(), int(r.Word())), nil))
	err := page.Guard(func() {
		for r.Left() {
			s.change(x, r)
		}
	})
	if err != nil {
		_ = x.Close()
		page.Check(err)
	}
	s.arrays[h] = x
	return nil
}

func (s *server) arrayOf(r *page.Reader) *cruncher.Any { return page.Handle(r, "the array", s.arrays) }

// get returns a flag of an array, and whether it is stale in place of the property after the flags.
func (s *server) get(r *page.Reader) any {
	x := s.arrayOf(r)
	f := x.Flags()
	switch p := property(&f, r).(type) {
	case *bool:
		return *p
	case *int:
		return *p
	case *kernel.Mode:
		return int(*p)
	case *string:
		return *p
	}
	return x.Stale()
}

// params reads so many parameters, or with -1 all that follow. A word says what each is: 0 an array, whose handle follows, 1 + the element type
// of a scalar, whose name and bits follow, or aliased.
func (s *server) params(r *page.Reader, n int) (list []cruncher.Param) {
	for ; n != 0 && (n > 0 || r.Left()); n-- {
		kind := r.Word()
		if kind == 0 {
			list = append(list, s.arrayOf(r))
			continue
		}
		switch name := r.Text(); kind {
		case 1:
			list = append(list, cruncher.NewScalar(name, r.Float()))
		case 2:
			list = append(list, cruncher.NewScalar(name, int32(r.Word())))
		case aliased:
			list = append(list, s.arrayOf(r).As(name))
		default:
			list = append(list, cruncher.NewScalar(name, r.Word()))
		}
	}
	return list
}

// aliased stands for an array by another name, which is followed by the array's handle.
const aliased = 4
