// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// task is a task of the page's. Called is the one of pools, which calls the page's function; of the other the page does that itself.
type task struct{ plain, called *cruncher.Task }

// Close is that of a task, which the collector takes.
func (*task) Close() error { return nil }

// task makes a task of a type, of the page's function, if there is one, and of an order.
func (s *server) task(r *page.Reader) any {
	h, kind := r.Word(), cruncher.TaskType(r.Index(256))
	var callback func(error)
	if r.Bool() {
		callback = s.callbacks.of(r.Object(), s.over)
	}
	o := s.orderOf(r)
	newTask := func(callback func(error)) *cruncher.Task {
		return page.Must(cruncher.NewTask(o.id, o.kernels, o.rng, o.params, cruncher.TaskOptions{Type: kind, Callback: callback}))
	}
	s.tasks[h] = &task{newTask(nil), newTask(callback)}
	return nil
}

func (s *server) taskOf(r *page.Reader) *task { return page.Handle(r, "the task", s.tasks) }

func (s *server) taskCompute(r *page.Reader) page.Work {
	t, c := s.taskOf(r), s.cruncherOf(r)
	return func(ctx context.Context) (any, error) { return nil, t.plain.Compute(ctx, c.Cruncher) }
}

// callbacks are calls of the page's functions that have not returned, by number.
type callbacks struct {
	waiting map[uint32]chan string
	last    uint32
}

// of makes a function of the page's one of Go's, which returns when [page.CmdCalled] says so, and panics with what that says. The page's
// runs in a task of its own, so that it may call the program.
func (c *callbacks) of(function any, over context.Context) func(error) {
	f := functionOf(function)
	return func(err error) {
		c.last++
		number, answer := c.last, make(chan string, 1)
		c.waiting[number] = answer
		if err != nil {
			f.Invoke(number, fault.Code(err), err.Error())
		} else {
			f.Invoke(number)
		}
		select {
		case thrown := <-answer:
			if thrown != "" {
				panic(thrown)
			}
		case <-over.Done():
		}
	}
}

// called notes that a function of the page's has returned.
func (s *server) called(words []uint32) {
	thrown := s.Text(words[1])
	if answer := s.callbacks.waiting[words[0]]; answer != nil {
		delete(s.callbacks.waiting, words[0])
		answer <- thrown
	}
}

// pool is a pool with the devices that were opened for it.
type pool struct {
	*cruncher.DevicePool
	opened *opened
}

func (p *pool) Close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.DevicePool.Close(), p.opened.Close())
}

// pool makes one of the kernels and devices of a cruncher.
func (s *server) pool(r *page.Reader) page.Work {
	h, c, mode := r.Word(), s.cruncherOf(r), cruncher.PoolMode(r.Index(int(cruncher.RoundRobin)+1))
	p := &pool{opened: c.opened.open()}
	return func(ctx context.Context) (any, error) {
		err := page.Guard(func() {
			p.DevicePool = page.Must(cruncher.NewDevicePool(ctx, mode, c.wgsl))
			for _, d := range c.devices {
				page.Check(p.AddDevice(d))
			}
		})
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		s.pools[h] = p
		return nil, nil
	}
}

func (s *server) poolOf(r *page.Reader) *pool { return page.Handle(r, "the pool", s.pools) }

func (s *server) addDevice(r *page.Reader) page.Work {
	p, wanted := s.poolOf(r), wantedDevice(r)
	return func(ctx context.Context) (any, error) {
		var d *gpu.Device
		err := page.Guard(func() {
			d = s.device(ctx, p.opened, wanted)
			page.Check(p.AddDevice(d))
		})
		if err != nil {
			return nil, err
		}
		return page.Information(d.Info()), nil
	}
}

func (s *server) enqueue(r *page.Reader) any {
	p := s.poolOf(r)
	var list []*cruncher.Task
	for r.Left() {
		list = append(list, s.taskOf(r).called)
	}
	page.Check(p.Enqueue(list...))
	return nil
}

func (s *server) finish(r *page.Reader) page.Work {
	p := s.poolOf(r)
	return func(ctx context.Context) (any, error) {
		took, err := p.Finish(ctx)
		return took.Seconds(), err
	}
}

func (s *server) poolStats(r *page.Reader) any {
	p := s.poolOf(r)
	return []any{page.List(p.Completed()), p.Remaining()}
}
