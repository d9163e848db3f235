// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
)

// Input is where blocks enter the graph from outside.
type Input struct{ c *channel }

// Input makes an input of the graph for a port.
func (g *Graph) Input(name string, to *Port, config ...Channel) *Input {
	return &Input{g.channel(inputChannel, name, nil, to, config)}
}

// Push sends a block in. It waits until the input has capacity. The graph takes over the caller's reference. After
// an error the caller still has it. If ctx has ended already, what needs no waiting happens all the same. A graph that was
// stopped takes no blocks until it runs again.
func (in *Input) Push(ctx context.Context, b *Block) error {
	const op = "Push"
	if in == nil || in.c == nil || in.c.g == nil || in.c.to == nil || ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil argument, or an input that leads nowhere")
	}
	c, g := in.c, in.c.g
	if err := c.to.accepts(op, b); err != nil {
		return err
	}
	p := c.admit(b) // may call the program: not with the lock
	g.lock()
	defer g.unlock()
	looks := 0
	err := g.await(ctx, op, &c.changed, func() (bool, error) {
		looks++
		switch {
		case g.state >= tearingDown:
			return false, fail(op, g.because(ErrTornDown))
		case g.state == building:
			return false, fail(op, ErrState, "the graph is not finalized")
		case g.stopped || g.state == quiescing:
			return false, fail(op, ErrStopped)
		}
		return !p.in || c.queue.len() < c.Capacity, nil
	})
	if err != nil {
		return err
	}
	if p.b = b; !p.in {
		g.drop(b)
	}
	p.deliver()
	if looks > 1 && c.Hold && !p.open { // the answer is old
		g.dropped = append(g.dropped, g.Reconsider)
	}
	g.schedule(nil)
	return nil
}

// Output is where blocks leave the graph.
type Output struct{ c *channel }

// Output makes an output of the graph from a port.
func (g *Graph) Output(name string, from *Port, config ...Channel) *Output {
	return &Output{g.channel(outputChannel, name, from, nil, config)}
}

// Pull takes the next block out and waits for it. The caller gets a reference. A block that stands for an error is one,
// too: see [Block.Err]. Once the graph is stopped and the output empty, it is [ErrStopped].
func (o *Output) Pull(ctx context.Context) (*Block, error) {
	const op = "Pull"
	if o == nil || o.c == nil || o.c.g == nil || ctx == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil argument")
	}
	c, g := o.c, o.c.g
	g.lock()
	defer g.unlock()
	err := g.await(ctx, op, &c.changed, func() (bool, error) {
		switch {
		case g.state >= tearingDown:
			return false, fail(op, g.because(ErrTornDown))
		case !c.ready() && g.stopped:
			return false, fail(op, ErrStopped)
		}
		return c.ready(), nil
	})
	if err != nil {
		return nil, err
	}
	b := c.pop()
	g.schedule(nil)
	return b, nil
}

// await waits, with the lock held before and after, until done says so or the graph is torn down. The condition tells when that may
// have changed. In the deterministic mode tasks run meanwhile.
func (g *Graph) await(ctx context.Context, op string, c *condition, done func() (bool, error)) error {
	for epoch := g.epoch; ; {
		if g.epoch != epoch {
			return fail(op, g.because(ErrTornDown))
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.step(ctx) {
			continue
		}
		changed := c.wait()
		var other <-chan struct{}
		if g.conf.Deterministic {
			other = g.quiet.wait() // the goroutine that runs tasks may leave the rest to this one
		}
		g.unlock()
		select {
		case <-changed:
		case <-other:
		case <-ctx.Done():
		}
		g.lock()
	}
}
