// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
)

type channelKind uint8

const (
	plainChannel  channelKind = iota
	inputChannel              // from outside
	outputChannel             // to outside
)

// Channel says how a channel works: a queue of bounded length between two ports, or between a port and the graph's outside. The
// zero value is a queue for four blocks that all pass.
//
// A task runs only when all of its output channels have capacity left, so that a full channel stalls only the task that fills it. A
// channel from a task to itself needs a capacity of two, since the task's input is still in the channel when capacity for its output
// is required.
type Channel struct {
	Capacity int       // blocks; 0 stands for 4
	Push     Predicate // at the end where blocks enter: a block that does not pass is released
	Pull     Predicate // at the end where blocks leave: a block that does not pass is released, or waits with Hold
	Hold     bool      // blocks that Pull refuses wait, and all behind them, until [Graph.Reconsider]
	Control  bool      // the port's control channel: its blocks come before those of the port's other channel
}

const defaultCapacity = 4

// channel is a channel of a graph.
type channel struct {
	Channel
	g        *Graph
	name     string
	kind     channelKind
	from, to *Port // nil at the end outside

	queue   queue[item]
	stats   ChannelStats
	changed condition // a block came or left, or may leave now
}

// item is a block in a channel.
type item struct {
	b    *Block
	open bool // it may leave
}

// Connect makes a channel from an output to an input. Mistakes are faults of the graph.
func (g *Graph) Connect(from, to *Port, config ...Channel) {
	g.channel(plainChannel, from.label()+"-"+to.label(), from, to, config)
}

func (g *Graph) channel(kind channelKind, name string, from, to *Port, config []Channel) *channel {
	c := &channel{Channel: last(config), g: g, name: name, kind: kind, from: from, to: to}
	c.Capacity = cmp.Or(c.Capacity, defaultCapacity)
	if g != nil {
		g.change(func() { g.channels = append(g.channels, c) })
	}
	return c
}

// ready reports whether a block could be taken.
func (c *channel) ready() bool { return c.queue.len() > 0 && c.queue.all()[0].open }

// put adds a block; there is capacity.
func (c *channel) put(i item) {
	c.queue.push(i)
	c.stats.Pushed++
	c.stats.Peak = max(c.stats.Peak, c.queue.len())
	c.notify(c.to)
}

// pop takes the first block.
func (c *channel) pop() *Block {
	b := c.queue.pop().b
	c.notify(c.from)
	return b
}

// notify wakes callers that wait for the channel, or updates the task at its end.
func (c *channel) notify(end *Port) {
	c.changed.broadcast()
	if end != nil {
		c.g.update(end.task)
	}
}

// parcel is a block on its way into a channel, if the channel admits it.
type parcel struct {
	c  *channel
	in bool
	item
}

// admit asks the predicates whether a block gets into the channel, and whether it can leave it.
func (c *channel) admit(b *Block) parcel {
	p := parcel{c: c}
	switch {
	case c.kind == outputChannel && b.err != nil:
		p.in, p.open = true, true
	case b.Signals()&DevNull != 0 && b.err == nil, !c.Push.passes(b):
	default:
		p.open = c.Pull.passes(b)
		p.in = p.open || c.Hold
	}
	return p
}

// writes reports whether the task that takes blocks from the channel writes them.
func (c *channel) writes() bool { return c.to != nil && c.to.written }

// send appends a parcel for each channel of an output that admits a block: channels of tasks that read it get the block itself, those of
// tasks that write it clones. If no task reads it, the first one that writes gets the block itself. The caller's reference goes to the
// first parcel with the block.
func (p *Port) send(ctx context.Context, b *Block, sent []parcel) []parcel {
	reader, given, list := false, false, sent
	for _, c := range p.outs {
		q := c.admit(b)
		list = append(list, q)
		reader = reader || q.in && !c.writes()
	}
	if p.SuppressClones {
		b.open.Store(true)
	}
	for i := len(sent); i < len(list); i++ {
		q := &list[i]
		switch {
		case !q.in:
		case q.c.writes() && !p.SuppressClones && (reader || given):
			c, err := b.clone(ctx)
			if err != nil {
				c = b.t.failedBlock(err, 0)
			}
			q.b = c
		case given:
			q.b = b.Retain()
		default:
			q.b, given = b, true
		}
	}
	if !given {
		b.Release()
	}
	return list
}

// deliver puts a parcel into its channel, which has capacity.
func (p parcel) deliver() {
	if p.in {
		p.c.put(p.item)
	} else {
		p.c.stats.Dropped++
	}
}

// Reconsider asks the predicates again for the blocks that channels hold.
func (g *Graph) Reconsider() {
	if g == nil {
		return
	}
	var held []parcel
	g.lock()
	for _, c := range g.channels {
		for _, i := range c.queue.all() {
			if !i.open {
				held = append(held, parcel{c: c, item: item{b: i.b.Retain()}})
			}
		}
	}
	g.unlock()
	for i := range held {
		held[i].open = held[i].c.Pull.passes(held[i].b)
	}
	g.lock()
	defer g.unlock()
	for _, h := range held {
		list := h.c.queue.all()
		if i := slices.Index(list, item{b: h.b}); i >= 0 && h.open {
			list[i].open = true
			h.c.notify(h.c.to)
		}
		g.drop(h.b)
	}
	g.schedule(nil)
}

// Input is where blocks enter the graph from outside.
type Input struct{ c *channel }

// Input makes an input of the graph for a port.
func (g *Graph) Input(name string, to *Port, config ...Channel) *Input {
	return &Input{g.channel(inputChannel, name, nil, to, config)}
}

// Push sends a block in. It waits until the input has capacity. The graph takes over the caller's reference. After
// an error the caller still has it. If no waiting is needed Push succeeds even if ctx has ended. A stopped graph takes no blocks until
// it runs again.
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

// Pull takes the next block out and waits for it. The caller gets a reference. The block may carry an error, see [Block.Err]. If the
// graph is stopped and the output empty, the error is [ErrStopped].
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

// await waits until done reports true or the graph is torn down. The lock is held before and after. The condition is signalled when done
// may have changed. In the deterministic mode tasks run meanwhile.
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

// queue is a first-in, first-out list that reuses its memory.
type queue[T any] struct {
	list []T
	head int // where those begin that have not left
}

func (q *queue[T]) len() int { return len(q.list) - q.head }

// all returns the elements, the first one in front, until the next push.
func (q *queue[T]) all() []T { return q.list[q.head:] }

func (q *queue[T]) push(v T) {
	if len(q.list) == cap(q.list) && q.head >= q.len() {
		n := copy(q.list, q.all())
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, v)
}

func (q *queue[T]) pop() (v T) {
	v, q.list[q.head] = q.list[q.head], v
	q.head++
	return v
}
