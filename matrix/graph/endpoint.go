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
	busy bool // a caller pushes
}

// Input makes an input of the graph for a port. More ports are added by [Input.Also].
func (g *Graph) Input(name string, to *Port, config ...Channel) *Input {
	in := &Input{g: g, name: name}
	if g != nil {
		_ = g.change(func() { g.inputs = append(g.inputs, in) }) // the error is a fault already
	}
	return in.Also(to, config...)
}

// Also lets the input's blocks go to another port, too. It returns the input.
func (in *Input) Also(to *Port, config ...Channel) *Input {
	if in == nil || in.g == nil {
		return in
	}
	g := in.g
	c := g.channel(plainChannel, in.name+"-"+to.label(), config)
	if g.enters(c, to) {
		if list := in.channels(); len(list) > 0 {
			g.agree(c, list[0].to.tmpl, to.tmpl)
		}
		g.attach(c, &in.src, to)
	}
	return in
}

// channels returns the channels as they are now.
func (in *Input) channels() []*channel {
	in.g.lock()
	defer in.g.unlock()
	return in.src.channels
}

// Push sends a block in. It waits until all channels of the input have capacity. The graph takes over the caller's reference. After
// an error the caller still has it. If ctx has ended already, what needs no waiting happens all the same. A graph that was
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
		if err := c.to.accepts(op, b); err != nil {
			return err
		}
	}
	return in.push(ctx, b)
}

func (in *Input) push(ctx context.Context, b *Block) error {
	g := in.g
	g.lock()
	defer g.unlock()
	epoch := g.epoch
	err := g.await(ctx, &in.src.changed, func() (bool, error) {
		return !in.busy && in.src.hasCapacity(), g.accepts(epoch)
	})
	if err != nil {
		return err
	}
	in.busy = true
	list, given := in.share(b)
	if err := g.accepts(epoch); err != nil {
		for _, p := range list {
			if p.b != b || !given {
				g.drop(p.b)
			}
			given = given && p.b != b // the caller's reference is the caller's again
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

// share is source.share for a caller that has the lock, which it gives up while predicates are asked and clones made.
func (in *Input) share(b *Block) (list []parcel, given bool) {
	src := source{suppress: in.src.suppress, channels: in.src.channels}
	in.g.unlock()
	defer func() { // also if a predicate ends the goroutine
		in.g.lock()
		in.busy = false
		in.src.changed.broadcast()
	}()
	list = src.admit(b)
	return list, src.share(b, list)
}

// accepts tells why blocks cannot come in.
func (g *Graph) accepts(epoch uint64) error {
	switch {
	case g.epoch != epoch || g.state >= tearingDown:
		return fail("Push", g.because(ErrTornDown))
	case g.state == building:
		return fail("Push", ErrState, "the graph is not finalized")
	case g.stopped || g.state == quiescing:
		return fail("Push", ErrStopped)
	}
	return nil
}

// Output is where blocks leave the graph.
type Output struct {
	g *Graph
	c *channel
}

// Output makes an output of the graph from a port.
func (g *Graph) Output(name string, from *Port, config ...Channel) *Output {
	c := g.channel(outputChannel, name, config)
	if g.leaves(c, from) {
		g.attach(c, &from.out, nil)
	}
	return &Output{g, c}
}

// Pull takes the next block out and waits for it. The caller gets a reference. A block that stands for an error is one,
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
	err := g.await(ctx, &o.c.arrived, func() (bool, error) {
		switch {
		case g.epoch != epoch || g.state >= tearingDown:
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

// await waits, with the lock held before and after, until done says so. The condition tells when that may have changed. In the
// deterministic mode tasks run meanwhile.
func (g *Graph) await(ctx context.Context, c *condition, done func() (bool, error)) error {
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
		changed, over := c.wait(), g.over
		var other <-chan struct{}
		if g.conf.single {
			other = g.quiet.wait() // the goroutine that runs tasks may leave the rest to this one
		}
		g.unlock()
		select {
		case <-changed:
		case <-other:
		case <-over:
		case <-ctx.Done():
		}
		g.lock()
	}
}
