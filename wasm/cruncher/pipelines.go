// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// pipeline is a pipeline of several devices, or one of a single device, with the devices that were opened for its crunchers.
type pipeline struct {
	several *cruncher.Pipeline
	single  *cruncher.DevicePipeline
	opened  []*opened
}

func (p *pipeline) Close() error {
	if p == nil {
		return nil
	}
	errs := []error{p.several.Close(), p.single.Close()}
	for _, o := range p.opened {
		errs = append(errs, o.Close())
	}
	return errors.Join(errs...)
}

// stages reads stages, and the crunchers that they are of.
func (s *server) stages(r *page.Reader) (list []cruncher.Stage, of []*crunch) {
	for n := r.Word(); n > 0; n-- {
		of = append(of, s.cruncherOf(r))
		list = append(list, cruncher.Stage{
			Kernels: readSteps(r), Initializers: readSteps(r),
			Inputs: s.params(r, int(r.Word())), Hidden: s.params(r, int(r.Word())), Outputs: s.params(r, int(r.Word())),
		})
	}
	return list, of
}

func readSteps(r *page.Reader) (list []cruncher.Step) {
	for n := r.Word(); n > 0; n-- {
		list = append(list, cruncher.Step{Kernels: r.Text(), Range: readRange(r)})
	}
	return list
}

// made notes a pipeline of crunchers, which build builds.
func (s *server) made(h uint32, of []*crunch, build func(ctx context.Context, p *pipeline) error) page.Work {
	p := new(pipeline)
	for _, c := range of {
		p.opened = append(p.opened, c.opened.open())
	}
	return func(ctx context.Context) (any, error) {
		if err := build(ctx, p); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		s.pipelines[h] = p
		return nil, nil
	}
}

func (s *server) pipeline(r *page.Reader) page.Work {
	h := r.Word()
	list, of := s.stages(r)
	for i, c := range of {
		list[i].Devices, list[i].WGSL, list[i].Options = c.devices, c.wgsl, c.options()
	}
	return s.made(h, of, func(ctx context.Context, p *pipeline) (err error) {
		p.several, err = cruncher.NewPipeline(ctx, list...)
		return err
	})
}

func (s *server) devicePipeline(r *page.Reader) page.Work {
	h, device := r.Word(), int(r.Word())
	list, of := s.stages(r)
	return s.made(h, of, func(ctx context.Context, p *pipeline) (err error) {
		if len(of) == 0 || device >= len(of[0].devices) {
			return fault.Fail("page", cruncher.ErrDevices, "or no stage")
		}
		p.single, err = cruncher.NewDevicePipeline(ctx, of[0].devices[device], of[0].wgsl, list...)
		return err
	})
}

func (s *server) pipelineOf(r *page.Reader) *pipeline {
	return page.Handle(r, "the pipeline", s.pipelines)
}

// push reads arrays with data, or what stands for those of the stage, and the same of results.
func (s *server) push(r *page.Reader) page.Work {
	p := s.pipelineOf(r)
	read := func() cruncher.Param {
		own, list := !r.Bool(), s.params(r, int(r.Word()))
		if own {
			return nil
		}
		return cruncher.Params(list...)
	}
	in, out := read(), read()
	return func(ctx context.Context) (any, error) { return p.several.Push(ctx, in, out) }
}

func (s *server) feed(r *page.Reader) page.Work {
	p, end := s.pipelineOf(r), r.Bool()
	return func(ctx context.Context) (any, error) {
		if end {
			return p.single.FeedEnd(ctx)
		}
		return nil, p.single.FeedBegin(ctx)
	}
}

func (s *server) mode(r *page.Reader) page.Work {
	p, serial := s.pipelineOf(r), r.Bool()
	return func(context.Context) (any, error) {
		if serial {
			return nil, p.single.Serial()
		}
		return nil, p.single.Parallel()
	}
}

func (s *server) stopTransmission(r *page.Reader) page.Work {
	p := s.pipelineOf(r)
	var stages []int
	for r.Left() {
		stages = append(stages, int(r.Word()))
	}
	return func(context.Context) (any, error) { return nil, p.single.StopTransmission(stages...) }
}
