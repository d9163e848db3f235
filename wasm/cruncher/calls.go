// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/start"
)

// crunch is a cruncher with the devices that were opened for it.
type crunch struct {
	*cruncher.Cruncher
	opened []*gpu.Device
}

func (c *crunch) closeDevices() error {
	var errs []error
	for _, d := range c.opened {
		errs = append(errs, d.Close())
	}
	c.opened = nil
	return errors.Join(errs...)
}

var coherences = map[string]cruncher.Coherence{"migrate": cruncher.Migrate, "pin": cruncher.Pin, "strict": cruncher.Strict}

// balancers by name.
var balancers = map[string]func() (balance.Balancer, error){
	"default": func() (balance.Balancer, error) { return balance.New(balance.Options{}) },
	"legacy":  func() (balance.Balancer, error) { return balance.NewLegacy(), nil },
}

// open makes a cruncher of WGSL, a balancer, a coherence and devices. It reports the handle, the kernels and the devices.
func (s *server) open(a *arguments) work {
	wgsl, balancer, coherence := a.text(), named(a, "balancer", balancers), named(a, "coherence", coherences)
	wanted := a.more()
	return func(ctx context.Context) (any, error) {
		c := &crunch{}
		b, err := balancer()
		if err != nil {
			return nil, err
		}
		devices, err := s.devices(ctx, c, wanted.list)
		if err == nil {
			c.Cruncher, err = cruncher.New(ctx, devices, wgsl, cruncher.WithBalancer(b), cruncher.WithCoherence(coherence))
		}
		if err != nil {
			return nil, errors.Join(err, c.closeDevices())
		}
		var infos []map[string]any
		for _, d := range devices {
			infos = append(infos, start.Information(d.Info()))
		}
		h := s.handle()
		s.crunchers[h] = c
		return []any{h, start.List(c.Kernels()), start.List(infos)}, nil
	}
}

// devices opens what is wanted: GPUDevices, which stay the page's; "own", that of the Gpu; "other", one of another adapter if
// there is one; and "high-performance" and "low-power", a device for each mention.
func (s *server) devices(ctx context.Context, c *crunch, wanted []js.Value) (list []*gpu.Device, err error) {
	for _, w := range wanted {
		var d *gpu.Device
		switch {
		case w.Type() == js.TypeObject:
			d, err = c.adopt(ctx, w)
		case w.String() == "own":
			d = s.dev
		case w.String() == "other":
			if d = s.other(ctx); d == nil {
				continue
			}
			c.opened = append(c.opened, d)
		case w.String() == "low-power":
			d, err = c.open(ctx, gpu.WithLowPower())
		default:
			d, err = c.open(ctx)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// adopt returns the device of a GPUDevice, the same one for each mention.
func (c *crunch) adopt(ctx context.Context, w js.Value) (*gpu.Device, error) {
	for _, d := range c.opened {
		if v, ok := d.Handle().(js.Value); ok && v.Equal(w) {
			return d, nil
		}
	}
	return c.open(ctx, gpu.WithDevice(w))
}

func (c *crunch) open(ctx context.Context, opts ...gpu.Option) (*gpu.Device, error) {
	d, err := gpu.Open(ctx, opts...)
	if err == nil {
		c.opened = append(c.opened, d)
	}
	return d, err
}

// other opens a processor beside the Gpu's own, if the browser tells of one. Software, which only takes time from the others, does
// not count, and where the browser conceals what its own is there is nothing to compare.
func (s *server) other(ctx context.Context) *gpu.Device {
	own := s.dev.Info()
	if own.Vendor == "" {
		return nil
	}
	for a, err := range gpu.Adapters(ctx) {
		if err != nil || a.Info.Kind == gpu.KindCPU || a.Info.Name == own.Name && a.Info.Vendor == own.Vendor {
			continue
		}
		if d, err := a.Open(ctx); err == nil {
			return d
		}
	}
	return nil
}

// close waits for calls that are under way.
func (s *server) close(a *arguments) work {
	h := a.int()
	c := s.crunchers[h]
	delete(s.crunchers, h)
	return func(context.Context) (any, error) {
		if c == nil {
			return nil, nil
		}
		return nil, errors.Join(c.Close(), c.closeDevices())
	}
}

// order is what a call computes.
type order struct {
	id      int
	kernels string
	r       cruncher.Range
	params  cruncher.Param
}

// order reads an id, the kernels, the range in the order of its fields, and parameters.
func (s *server) order(a *arguments) order {
	o := order{id: a.int(), kernels: a.text()}
	r := a.more()
	o.r = cruncher.Range{
		Global: r.int(), Local: r.int(), Offset: r.int(), Strict: r.bool(),
		Blobs: r.int(), Repeat: r.int(), SyncKernel: r.text(), TransferOnly: r.bool(),
	}
	for r.left() {
		o.r.Inner = append(o.r.Inner, r.int())
	}
	p := a.more()
	o.params = s.params(p)
	a.fail(r.err)
	a.fail(p.err)
	return o
}

// compute is Cruncher.Compute. Flags are those of now, as in Params.
func (s *server) compute(a *arguments) work {
	c, o := known(a, "the cruncher", s.crunchers), s.order(a)
	return func(ctx context.Context) (any, error) {
		return nil, c.Compute(ctx, o.id, o.kernels, o.r, o.params)
	}
}

func (s *server) fetch(a *arguments) work {
	c, list := known(a, "the cruncher", s.crunchers), s.handles(a)
	return func(ctx context.Context) (any, error) { return nil, c.Fetch(ctx, list...) }
}

func (s *server) evict(a *arguments) work {
	c, list := known(a, "the cruncher", s.crunchers), s.handles(a)
	return func(context.Context) (any, error) { return nil, c.Evict(list...) }
}

// stats returns what is known of an id.
func (s *server) stats(a *arguments) any {
	c, id := known(a, "the cruncher", s.crunchers), a.int()
	if a.err != nil {
		return nil
	}
	st := c.Stats(id)
	var history []any
	for _, counts := range st.History {
		history = append(history, start.List(counts))
	}
	return map[string]any{
		"calls": st.Calls, "shares": start.List(st.Shares), "throughput": start.List(st.Throughput), "history": history,
		"dropped": st.Dropped, "probes": st.Probes,
	}
}

// report returns what the last call did.
func (s *server) report(a *arguments) any {
	c := known(a, "the cruncher", s.crunchers)
	if a.err != nil {
		return nil
	}
	last := c.Last()
	var shares []any
	for _, x := range last.Shares {
		shares = append(shares, map[string]any{"device": x.Device, "offset": x.Offset, "count": x.Count, "seconds": x.Seconds})
	}
	report := moved(last.Traffic)
	report["shares"] = shares
	return report
}

func (s *server) traffic(a *arguments) any {
	c := known(a, "the cruncher", s.crunchers)
	if a.err != nil {
		return nil
	}
	return moved(c.Traffic())
}

func moved(t cruncher.Traffic) map[string]any {
	return map[string]any{"bytesUp": t.Up, "bytesDown": t.Down, "bytesMigrated": t.Migrated}
}
