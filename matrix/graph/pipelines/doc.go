// SPDX-License-Identifier: Apache-2.0

// Package pipelines has two task graphs as examples of package graph: [Edges] takes images to their edges and those to a
// histogram, [Train] trains a network of two layers as CNTK mapped it onto PTask. The command native/pipelines and a page
// of web/demo run them.
//
//	e, err := pipelines.NewEdges(devices, pipelines.EdgesConfig{Width: 640, Height: 480}, graph.Config{Trace: 1000})
//	err = e.Run(ctx, next, show)     // next gives frames, show gets the results
//	err = e.Graph.WriteTrace(file)   // for Perfetto
//	err = e.Graph.Teardown()
//
// Both work in the goroutine that calls Run, with some work in flight, also in the graph's deterministic mode.
package pipelines

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("pipelines: "+op, err, detail...)
}

func itoa(i int) string { return strconv.Itoa(i) }

// defaultInFlight keeps two devices and the host busy; maxInFlight bounds the memory.
const (
	defaultInFlight = 4
	maxInFlight     = 64
)

// pipeline is what both have in common.
type pipeline struct {
	Graph    *graph.Graph // for its statistics, its trace and its end, [graph.Graph.Teardown]
	in       *graph.Input
	inFlight int
	prepare  func() error // sets the inputs that keep blocks, which a Teardown releases
	busy     atomic.Bool
}

// init makes the graph with the tasks that build adds.
func (p *pipeline) init(devices []*gpu.Device, config []graph.Config, build func()) error {
	var err error
	if p.Graph, err = graph.New(devices, config...); err != nil {
		return err
	}
	build()
	if err = p.prepare(); err == nil {
		err = p.Graph.Finalize()
	}
	if err != nil {
		_ = p.Graph.Teardown() // nothing has run
	}
	return err
}

// sender makes the n-th block to send, none at the end, and reports whether more follow. stop tells it to come to an end.
type sender func(n int, stop bool) (b *graph.Block, more bool, err error)

// stream runs the graph: it sends blocks and takes what comes of them, so that never more than inFlight are on their way, and stops
// the graph at the end, which send is told of once take has had enough. After an error the graph is torn down. If somebody else stops
// the graph the stream ends.
func (p *pipeline) stream(ctx context.Context, send sender, take func(n int) (more bool, err error)) error {
	if !p.busy.CompareAndSwap(false, true) {
		return fail("Run", graph.ErrBusy)
	}
	defer p.busy.Store(false)
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.Graph.Run(ctx); err != nil {
		return err
	}
	err := p.pump(ctx, send, take)
	if err == nil || errors.Is(err, graph.ErrStopped) {
		err = p.Graph.Stop(ctx)
	}
	if err != nil {
		_ = p.Graph.Teardown() // the first error tells more
	}
	return err
}

func (p *pipeline) pump(ctx context.Context, send sender, take func(int) (bool, error)) error {
	sent, more, stop := 0, true, false
	for taken := 0; ; taken++ {
		for more && sent-taken < p.inFlight {
			b, follow, err := send(sent, stop)
			if more = follow; err == nil && b != nil {
				if err = p.in.Push(ctx, b); err != nil {
					b.Release()
				} else {
					sent++
				}
			}
			if errors.Is(err, graph.ErrStopped) {
				more = false
			} else if err != nil {
				return err
			}
		}
		if taken == sent {
			return nil
		}
		wanted, err := take(taken)
		if err != nil {
			return err
		}
		stop = stop || !wanted
	}
}

// pull takes the next block of an output and copies it.
func pull(ctx context.Context, out *graph.Output, into []byte) error {
	b, err := out.Pull(ctx)
	if err != nil {
		return err
	}
	defer b.Release()
	return b.View(ctx, func(mem []byte) error { copy(into, mem); return nil })
}

// words returns the elements of the block at a port.
func words(d *graph.Dispatch, port string) ([]uint32, error) {
	b, err := d.Block(port)
	if err != nil {
		return nil, err
	}
	return graph.Values[uint32](d.Context(), b)
}

// update writes the elements of an output.
func update(d *graph.Dispatch, port string, elements []float32) error {
	return d.Update(port, func(mem []byte) error { copy(mem, matrix.Host(elements).Bytes); return nil })
}
