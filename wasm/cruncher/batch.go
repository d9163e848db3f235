// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// batch is an open one.
type batch struct {
	*cruncher.Batch
	end  chan struct{} // closed by the page
	over chan struct{} // closed when everything has come back
	err  error
}

// batch opens one and reports its handle. It is open until the page ends it.
func (s *server) batch(a *arguments) work {
	c := known(a, "the cruncher", s.crunchers)
	return func(context.Context) (any, error) {
		b := &batch{end: make(chan struct{}), over: make(chan struct{})}
		began := make(chan struct{})
		go func() {
			defer close(b.over)
			b.err = guard(func() error {
				return c.Batch(s.ctx, func(open *cruncher.Batch) error {
					b.Batch = open
					close(began)
					<-b.end
					return nil
				})
			})
		}()
		select {
		case <-began:
		case <-b.over:
			return nil, b.err
		}
		h := s.handle()
		s.batches[h] = b
		return h, nil
	}
}

// computeInBatch is Batch.Compute.
func (s *server) computeInBatch(a *arguments) work {
	b, o := known(a, "the batch", s.batches), s.order(a)
	return func(ctx context.Context) (any, error) {
		return nil, b.Compute(ctx, o.id, o.kernels, o.r, o.params)
	}
}

// endBatch waits until everything has come back.
func (s *server) endBatch(a *arguments) work {
	h := a.int()
	b := s.batches[h]
	if b == nil {
		a.fail(fault.Fail("cruncher", gpu.ErrClosed, "the batch"))
		return nil
	}
	delete(s.batches, h)
	return func(context.Context) (any, error) {
		close(b.end)
		<-b.over
		return nil, b.err
	}
}

// reached returns how many calls of a batch are done on all devices.
func (s *server) reached(a *arguments) any {
	if b := known(a, "the batch", s.batches); a.err == nil {
		return b.Reached()
	}
	return nil
}

// remaining returns how many are not.
func (s *server) remaining(a *arguments) any {
	if b := known(a, "the batch", s.batches); a.err == nil {
		return b.Remaining()
	}
	return nil
}
