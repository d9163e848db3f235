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
		over: page.NewCall(),
	}
	s.Session = page.New(p, s, commands)
	return s.Session
}

var commands = []page.Spec[*server]{
	page.CmdEnd:          {Run: (*server).end},
	page.CmdOpen:         {Later: (*server).open},
	page.CmdCloseOpened:  {Later: (*server).close},
	page.CmdCompute:      {Later: (*server).compute},
	page.CmdFetch:        {Later: (*server).fetch},
	page.CmdEvict:        {Later: (*server).evict},
	page.CmdStats:        {Now: (*server).stats},
	page.CmdReport:       {Now: (*server).report},
	page.CmdTraffic:      {Now: (*server).traffic},
	page.CmdArray:        {Now: (*server).array},
	page.CmdGet:          {Now: (*server).get},
	page.CmdSet:          {Now: (*server).set},
	page.CmdDirty:        {Now: (*server).dirty},
	page.CmdCloseArray:   {Later: (*server).closeArray},
	page.CmdBatch:        {Later: (*server).batch},
	page.CmdBatchCompute: {Later: (*server).computeInBatch},
	page.CmdBatchEnd:     {Later: (*server).endBatch},
	page.CmdReached:      {Now: (*server).reached},
	page.CmdRemaining:    {Now: (*server).remaining},
}

// end leaves nothing of what was made on the page's GPUDevice.
func (s *server) end([]uint32) {
	s.End()
	s.over.Cancel()
	for _, c := range s.crunchers {
		_ = c.closeDevices()
	}
	page.Check(s.dev.Close())
}

// batch is an open batch. It is open until the page ends it.
type batch struct {
	*cruncher.Batch
	handle uint32
	end    chan struct{} // closed by the page
	over   chan struct{} // closed when everything has come back
	err    error
}

func (s *server) batch(r *page.Reader) page.Work {
	h, c := r.Word(), s.cruncherOf(r)
	return func(context.Context) (any, error) {
		b, began := &batch{handle: h, end: make(chan struct{}), over: make(chan struct{})}, make(chan struct{})
		go func() {
			defer close(b.over)
			b.err = page.Guard(func() {
				page.Check(c.Batch(s.over, func(open *cruncher.Batch) error {
					b.Batch = open
					close(began)
					select {
					case <-b.end:
					case <-s.over.Done():
					}
					return nil
				}))
			})
		}()
		select {
		case <-began:
			s.batches[h] = b
			return nil, nil
		case <-b.over:
			return nil, b.err
		}
	}
}

func (s *server) batchOf(r *page.Reader) *batch { return page.Handle(r, "the batch", s.batches) }

func (s *server) computeInBatch(r *page.Reader) page.Work {
	b, o := s.batchOf(r), s.order(r)
	return func(ctx context.Context) (any, error) { return nil, b.Compute(ctx, o.id, o.kernels, o.r, o.params) }
}

// endBatch waits until everything has come back.
func (s *server) endBatch(r *page.Reader) page.Work {
	b := s.batchOf(r)
	delete(s.batches, b.handle)
	return func(context.Context) (any, error) {
		close(b.end)
		<-b.over
		return nil, b.err
	}
}

func (s *server) reached(r *page.Reader) any { return s.batchOf(r).Reached() }

func (s *server) remaining(r *page.Reader) any { return s.batchOf(r).Remaining() }
