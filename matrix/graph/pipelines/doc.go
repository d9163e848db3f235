// SPDX-License-Identifier: Apache-2.0

// Package pipelines has two task graphs as examples of package graph: [Edges] takes images to their edges and those to a
// histogram, [Train] trains a network of two layers as CNTK mapped it onto PTask. The command native/pipelines and a page
// of web/demo run them.
//
//	e, err := pipelines.NewEdges(devices, pipelines.EdgesConfig{Width: 640, Height: 480}, graph.WithTrace(1000))
//	err = e.Run(ctx, next, show)       // next gives frames, show gets what came of them
//	err = e.Graph().WriteTrace(file)   // for Perfetto
//	err = e.Close()
//
// Both work in the goroutine that calls Run, with some work in flight, also in the graph's deterministic mode.
package pipelines

import (
	"context"
	"errors"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
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

// stream sends items into a graph and takes what comes of them, so that never more than ahead are on their way, and stops the
// graph at the end. send is told to come to an end once take has had enough. After an error the graph is torn down. One
// that is stopped by somebody else ends the stream.
func stream(
	ctx context.Context, g *graph.Graph, ahead int,
	send func(n int, stop bool) (sent, more bool, err error), take func(n int) (more bool, err error),
) error {
	if err := g.Run(ctx); err != nil {
		return err
	}
	err := pump(ahead, send, take)
	if err == nil {
		err = g.Stop(ctx)
	}
	if err != nil {
		_ = g.Teardown() // the first error tells more
	}
	return err
}

func pump(ahead int, send func(int, bool) (bool, bool, error), take func(int) (bool, error)) error {
	sent, more, stop := 0, true, false
	for taken := 0; ; taken++ {
		for more && sent-taken < ahead {
			ok, next, err := send(sent, stop)
			switch {
			case errors.Is(err, graph.ErrStopped):
				next = false
			case err != nil:
				return err
			}
			if more = next; ok {
				sent++
			}
		}
		if taken == sent {
			return nil
		}
		next, err := take(taken)
		switch {
		case errors.Is(err, graph.ErrStopped):
			return nil
		case err != nil:
			return err
		}
		stop = stop || !next
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

// push sends a block in, or releases it.
func push(ctx context.Context, in *graph.Input, b *graph.Block, s graph.Signals) error {
	err := b.SetSignals(s)
	if err == nil {
		err = in.Push(ctx, b)
	}
	if err != nil {
		b.Release()
	}
	return err
}

// pin gives a sticky input its block.
func pin[T interface{ float32 | int32 | uint32 }](p *graph.Port, values ...T) error {
	b, err := graph.FromSlice(p.Template(), values)
	if err != nil {
		return err
	}
	if err = p.Set(b); err != nil {
		b.Release()
	}
	return err
}
