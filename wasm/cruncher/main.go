// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command cruncher is the WebAssembly program behind Gpu.cruncher of the npm package, which loads it when a page first calls
// that: what package cruncher is for web/src/crunch.mjs. It has a device, that of the Gpu, and is built with the tag
// sublet_page.
package main

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// server is what the page's commands act on. Go has one thread here, and no command is interrupted by another, so nothing is
// locked.
type server struct {
	*page.Session
	dev       *gpu.Device // of the Gpu
	crunchers map[uint32]*crunch
	arrays    map[uint32]*cruncher.Any
	batches   map[uint32]*batch
	tasks     map[uint32]*task
	pools     map[uint32]*pool
	pipelines map[uint32]*pipeline
	opened    map[*opened]bool // all devices that were opened here
	callbacks callbacks
	over      *page.Call // ends with the session
}

func main() { page.Main(serve) }

// exportCruncher tells the loader which of the package's programs this is.
//
//go:wasmexport sublet_cruncher
func exportCruncher() {} //nolint:unused // by Go

func serve(dev *gpu.Device, p page.Page) *page.Session {
	s := &server{
		dev: dev, crunchers: map[uint32]*crunch{}, arrays: map[uint32]*cruncher.Any{}, batches: map[uint32]*batch{},
		tasks: map[uint32]*task{}, pools: map[uint32]*pool{}, pipelines: map[uint32]*pipeline{}, opened: map[*opened]bool{},
		over: page.NewCall(), callbacks: callbacks{waiting: map[uint32]chan string{}},
	}
	s.Session = page.New(p, s, commands)
	return s.Session
}

var commands = []page.Spec[*server]{
	page.CmdEnd:         {Run: (*server).end},
	page.CmdOpen:        {Later: (*server).open},
	page.CmdCloseOpened: {Later: func(s *server, r *page.Reader) page.Work { return drop(s.crunchers, r) }},
	page.CmdCompute:     {Later: func(s *server, r *page.Reader) page.Work { return s.order(r, s.cruncherOf(r).Compute) }},
	page.CmdFetch:       {Later: func(s *server, r *page.Reader) page.Work { return s.move(r, (*cruncher.Cruncher).Fetch) }},
	page.CmdEvict: {Later: func(s *server, r *page.Reader) page.Work {
		return s.move(r, func(cr *cruncher.Cruncher, _ context.Context, list ...*cruncher.Any) error { return cr.Evict(list...) })
	}},
	page.CmdStats:   {Now: (*server).stats},
	page.CmdReport:  {Now: (*server).report},
	page.CmdTraffic: {Now: func(s *server, r *page.Reader) any { return traffic(s.cruncherOf(r).Traffic()) }},
	page.CmdArray:   {Now: (*server).array},
	page.CmdGet:     {Now: (*server).get},
	page.CmdSet: {Now: func(s *server, r *page.Reader) any {
		s.change(s.arrayOf(r), r)
		return nil
	}},
	page.CmdDirty: {Now: func(s *server, r *page.Reader) any { // the page wrote into the memory of an array
		s.arrayOf(r).MarkDirty()
		return nil
	}},
	page.CmdCloseArray:   {Later: func(s *server, r *page.Reader) page.Work { return drop(s.arrays, r) }},
	page.CmdBatch:        {Later: (*server).batch},
	page.CmdBatchCompute: {Later: func(s *server, r *page.Reader) page.Work { return s.order(r, s.batchOf(r).Compute) }},
	page.CmdBatchEnd:     {Later: func(s *server, r *page.Reader) page.Work { return drop(s.batches, r) }},
	page.CmdReached:      {Now: func(s *server, r *page.Reader) any { return s.batchOf(r).Reached() }},
	page.CmdRemaining:    {Now: func(s *server, r *page.Reader) any { return s.batchOf(r).Remaining() }},

	page.CmdTask:        {Now: (*server).task},
	page.CmdCloseTask:   {Later: func(s *server, r *page.Reader) page.Work { return drop(s.tasks, r) }},
	page.CmdTaskCompute: {Later: (*server).taskCompute},
	page.CmdCalled:      {Run: (*server).called, Words: 2},
	page.CmdPool:        {Later: (*server).pool},
	page.CmdClosePool:   {Later: func(s *server, r *page.Reader) page.Work { return drop(s.pools, r) }},
	page.CmdAddDevice:   {Later: (*server).addDevice},
	page.CmdEnqueue:     {Now: (*server).enqueue},
	page.CmdFinish:      {Later: (*server).finish},
	page.CmdPoolStats:   {Now: (*server).poolStats},

	page.CmdPipeline:         {Later: (*server).pipeline},
	page.CmdPush:             {Later: (*server).push},
	page.CmdDevicePipeline:   {Later: (*server).devicePipeline},
	page.CmdFeed:             {Later: (*server).feed},
	page.CmdMode:             {Later: (*server).mode},
	page.CmdStopTransmission: {Later: (*server).stopTransmission},
	page.CmdClosePipeline:    {Later: func(s *server, r *page.Reader) page.Work { return drop(s.pipelines, r) }},
}

// drop takes what has a handle out of a table and closes it.
func drop[T interface{ Close() error }](table map[uint32]T, r *page.Reader) page.Work {
	h := r.Word()
	x := table[h]
	delete(table, h)
	return func(context.Context) (any, error) { return nil, x.Close() }
}

// end leaves nothing of what was made on the page's GPUDevice.
func (s *server) end([]uint32) {
	s.End()
	s.over.Cancel()
	for o := range s.opened {
		for _, d := range o.list {
			_ = d.Close()
		}
	}
	page.Check(s.dev.Close())
}

// batch is an open batch. It is open until the page ends it.
type batch struct {
	*cruncher.Batch
	end  context.CancelFunc // by the page
	over chan error         // gets its error when everything has come back
}

func (s *server) batch(r *page.Reader) page.Work {
	h, c := r.Word(), s.cruncherOf(r)
	return func(context.Context) (any, error) {
		open, end := context.WithCancel(s.over)
		b, began := &batch{end: end, over: make(chan error, 1)}, make(chan struct{})
		go func() {
			b.over <- page.Guard(func() {
				page.Check(c.Batch(s.over, func(of *cruncher.Batch) error {
					b.Batch = of
					close(began)
					<-open.Done()
					return nil
				}))
			})
		}()
		select {
		case <-began:
			s.batches[h] = b
			return nil, nil
		case err := <-b.over:
			return nil, err
		}
	}
}

func (s *server) batchOf(r *page.Reader) *batch { return page.Handle(r, "the batch", s.batches) }

// Close waits until everything has come back.
func (b *batch) Close() error {
	if b == nil {
		return nil
	}
	b.end()
	return <-b.over
}
