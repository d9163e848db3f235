// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"
	"math"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// crunch is a cruncher with the devices that were opened for it.
type crunch struct {
	*cruncher.Cruncher
	opened []*gpu.Device
}

// Close waits for calls that are under way.
func (c *crunch) Close() error {
	if c == nil {
		return nil
	}
	errs := []error{c.Cruncher.Close()}
	for _, d := range c.opened {
		errs = append(errs, d.Close())
	}
	c.opened = nil
	return errors.Join(errs...)
}

// open makes a cruncher of WGSL, a balancer, 0 for the usual one and 1 for the legacy one, a coherence, a limit of memory and devices. It
// reports the kernels and the devices.
func (s *server) open(r *page.Reader) page.Work {
	h, wgsl, balancer := r.Word(), r.Text(), balance.New()
	if r.Bool() {
		balancer = balance.NewLegacy()
	}
	coherence := cruncher.Coherence(r.Index(int(cruncher.Strict) + 1))
	memory := uint64(r.Int())
	var wanted []any
	for r.Left() {
		d := any(r.Word())
		if d == uint32(adopted) {
			d = r.Object()
		}
		wanted = append(wanted, d)
	}
	return func(ctx context.Context) (any, error) {
		c := &crunch{}
		var infos []any
		err := page.Guard(func() {
			var devices []*gpu.Device
			for _, w := range wanted {
				if d := s.device(ctx, c, w); d != nil {
					devices = append(devices, d)
					infos = append(infos, page.Information(d.Info()))
				}
			}
			c.Cruncher = page.Must(cruncher.New(ctx, devices, wgsl, cruncher.WithBalancer(balancer), cruncher.WithCoherence(coherence), cruncher.WithMemory(memory)))
		})
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		s.crunchers[h] = c
		return []any{page.List(c.Kernels()), infos}, nil
	}
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
func (s *server) device(ctx context.Context, c *crunch, wanted any) (d *gpu.Device) {
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
		for _, d := range c.opened {
			if v, ok := d.Handle().(js.Value); ok && v.Equal(js.ValueOf(wanted)) {
				return d
			}
		}
		d = page.Must(gpu.Open(ctx, gpu.WithDevice(wanted)))
	}
	c.opened = append(c.opened, d)
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

// order reads what a call computes: an id, the kernels, the range in the order of its fields, and parameters, whose flags are those
// of now.
func (s *server) order(
	r *page.Reader, compute func(context.Context, int, string, cruncher.Range, ...cruncher.Param) error,
) page.Work {
	id, kernels := r.Int(), r.Text()
	rng := cruncher.Range{
		Global: r.Int(), Local: r.Int(), Offset: r.Int(), Strict: r.Bool(),
		Blobs: r.Int(), Repeat: r.Int(), SyncKernel: r.Text(), TransferOnly: r.Bool(),
	}
	for n := r.Word(); n > 0 && r.Left(); n-- {
		rng.Inner = append(rng.Inner, r.Int())
	}
	params := cruncher.Params(s.params(r)...)
	return func(ctx context.Context) (any, error) { return nil, compute(ctx, id, kernels, rng, params) }
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
	x := page.Must(cruncher.WrapHost(name, t, gpu.Host{Foreign: r.Object(), Size: int(r.Word())}, nil))
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

// get returns a flag of an array.
func (s *server) get(r *page.Reader) any {
	f := s.arrayOf(r).Flags()
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
	return nil
}

// params reads parameters. A word says what each is: 0 an array, whose handle follows, or 1 + the element type of a scalar,
// whose name and bits follow.
func (s *server) params(r *page.Reader) (list []cruncher.Param) {
	for r.Left() {
		kind := r.Word()
		if kind == 0 {
			list = append(list, s.arrayOf(r))
			continue
		}
		switch name, bits := r.Text(), r.Word(); kind {
		case 1:
			list = append(list, cruncher.NewScalar(name, math.Float32frombits(bits)))
		case 2:
			list = append(list, cruncher.NewScalar(name, int32(bits)))
		default:
			list = append(list, cruncher.NewScalar(name, bits))
		}
	}
	return list
}
