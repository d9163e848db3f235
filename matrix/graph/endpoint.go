// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
)

// Input is where blocks enter the graph from outside.
type Input struct {
	g    *Graph
	name string
	src  source
	turn chan struct{} // held by who pushes
}

// Input makes an input of the graph's for a port. More ports are added by [Input.Also].
func (g *Graph) Input(name string, to *Port, opts ...ChannelOption) *Input {
	in := &Input{g: g, name: name, turn: make(chan struct{}, 1)}
	if g != nil {
		_ = g.change(func() { g.inputs = append(g.inputs, in) }) // has become a fault
	}
	return in.Also(to, opts...)
}

// Also lets the input's blocks go to another port, too. It returns the input.
func (in *Input) Also(to *Port, opts ...ChannelOption) *Input {
	if in == nil || in.g == nil {
		return in
	}
	g := in.g
	c := g.channel(inputChannel, in.name+"-"+to.Name(), opts)
	if g.enters(c, to) {
		if t := in.Template(); t != nil {
			g.agree(c, t, to.tmpl)
		}
		g.bind(c, &in.src, to)
	}
	return in
}

// Template returns what blocks the input takes, nil if it has no port.
func (in *Input) Template() *Template {
	if list := in.channels(); len(list) > 0 {
		return list[0].to.tmpl
	}
	return nil
}

// channels returns the channels as they are now.
func (in *Input) channels() []*Channel {
	if in == nil || in.g == nil {
		return nil
	}
	in.g.lock()
	defer in.g.unlock()
	return in.src.channels
}

// Push sends a block in. It waits until all channels of the input have room. The caller's hold of the block goes to the graph;
// after an error the caller still has it. If ctx has ended already, what needs no waiting happens all the same. A graph that was
// stopped takes no blocks until it runs again.
func (in *Input) Push(ctx context.Context, b *Block) error {
	const op = "Push"
	if in == nil || in.g == nil || ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil argument")
	}
	if err := b.usable(op); err != nil {
		return err
	}
	for _, c := range in.channels() {
		if err := c.to.takes(op, b); err != nil {
			return err
		}
	}
	if err := in.wait(ctx); err != nil {
		return err
	}
	defer func() { <-in.turn }()
	return in.push(ctx, b)
}

// wait waits for the caller's turn to push. A context that has ended only keeps from waiting.
func (in *Input) wait(ctx context.Context) error {
	in.g.lock()
	over := in.g.over
	in.g.unlock()
	select {
	case in.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case in.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		in.g.lock()
		defer in.g.unlock()
		return fail("Push", in.g.because(ErrTornDown))
	}
}

func (in *Input) push(ctx context.Context, b *Block) error {
	g := in.g
	g.lock()
	epoch, src := g.epoch, in.src
	err := g.roomFor(ctx, &src)
	g.unlock()
	if err != nil {
		return err
	}
	list := src.admit(b)
	given := src.share(b, list)
	g.lock()
	defer g.unlock()
	if err := g.accepts(epoch); err != nil {
		for _, p := range list {
			if p.b != b || !given {
				g.drop(p.b)
			}
			given = given && p.b != b // the caller's hold is the caller's again
		}
		return err
	}
	deliver(list)
	if !given {
		g.drop(b)
	}
	g.schedule()
	return nil
}

// roomFor waits for room in all channels.
func (g *Graph) roomFor(ctx context.Context, src *source) error {
	epoch := g.epoch
	for _, c := range src.channels {
		err := g.await(ctx, &c.drained, func() (bool, error) {
			return c.room(), g.accepts(epoch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// accepts tells why blocks cannot come in.
func (g *Graph) accepts(epoch uint64) error {
	switch {
	case g.epoch != epoch || g.state >= TearingDown:
		return fail("Push", g.because(ErrTornDown))
	case g.state == Building:
		return fail("Push", ErrState, "the graph is not finalized")
	case g.stopped || g.state == Quiescing:
		return fail("Push", ErrStopped)
	}
	return nil
}

// Output is where blocks leave the graph.
type Output struct {
	g *Graph
	c *Channel
}

// Output makes an output of the graph's from a port.
func (g *Graph) Output(name string, from *Port, opts ...ChannelOption) *Output {
	c := g.channel(outputChannel, name, opts)
	if g.exits(c, from) {
		_ = g.change(func() { // has become a fault
			c.from = &from.out
			from.out.channels = append(from.out.channels, c)
			g.channels = append(g.channels, c)
		})
	}
	return &Output{g, c}
}

// Channel returns the output's channel.
func (o *Output) Channel() *Channel {
	if o == nil {
		return nil
	}
	return o.c
}

// Pull takes the next block out and waits for it. The caller has a hold of it. A block that stands for an error is one,
// too: see [Block.Err]. Once the graph is stopped and the output empty, it is [ErrStopped].
func (o *Output) Pull(ctx context.Context) (*Block, error) {
	const op = "Pull"
	if o == nil || o.g == nil || ctx == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil argument")
	}
	g := o.g
	g.lock()
	defer g.unlock()
	epoch := g.epoch
	err := g.await(ctx, &o.c.filled, func() (bool, error) {
		switch {
		case g.epoch != epoch || g.state >= TearingDown:
			return false, fail(op, g.because(ErrTornDown))
		case o.c.ready():
			return true, nil
		case g.stopped:
			return false, fail(op, ErrStopped)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	b := o.c.pop()
	g.schedule()
	return b, nil
}

// await waits, with the lock held before and after, until done says so. The bell rings when that may have changed. In the
// deterministic mode tasks run meanwhile.
func (g *Graph) await(ctx context.Context, b *bell, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.step(ctx) {
			continue
		}
		rung, over := b.wait(), g.over
		var other <-chan struct{}
		if g.conf.single {
			other = g.quiet.wait() // whoever runs tasks may leave the rest to us
		}
		g.unlock()
		select {
		case <-rung:
		case <-other:
		case <-over:
		case <-ctx.Done():
		}
		g.lock()
	}
}
