// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"slices"
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
// A task runs only when all of its output channels have capacity left, so that a full channel stalls those who fill it, and nobody
// else. A task that feeds itself needs a capacity of two: it runs only when there is capacity for what it makes, and what it
// is going to take is still there then.
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

// notify tells those who wait outside, or the task at an end, that the channel has changed.
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

// send gives each channel of an output that admits a block what it gets: readers the block itself, writers clones. If nobody reads
// it, the first writer gets the block itself. The caller's reference goes to the first one that gets the block. Parcels are appended
// to those that were sent before.
func (p *Port) send(b *Block, sent []parcel) []parcel {
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
			c, err := b.clone()
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

// queue is a list that elements join at its end and leave at its beginning. Its memory serves again.
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
