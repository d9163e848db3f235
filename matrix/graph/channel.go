// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
)

type channelKind uint8

const (
	plainChannel channelKind = iota
	outputChannel
	initialChannel // has a new block whenever a task asks
	nullChannel    // takes everything and keeps nothing
)

// Channel says how a channel works: a queue of bounded length between two ports, or between a port and the graph's outside. The
// zero value is a queue for four blocks that all pass.
//
// A task runs only when all of its output channels have capacity left, so that a full channel stalls those who fill it, and nobody
// else. A task that feeds itself needs a capacity of two: it runs only when there is capacity for what it makes, and what it
// is going to take is still there then.
type Channel struct {
	Capacity     int       // blocks; 0 stands for 4
	Push         Predicate // at the end where blocks enter: a block that does not pass is released
	Pull         Predicate // at the end where blocks leave: a block that does not pass is released, or waits with Hold
	Hold         bool      // blocks that Pull refuses wait, and all behind them, until [Graph.Reconsider]
	Control      bool      // the port's control channel: its blocks come before those of the port's other channel
	ControlledBy *Port     // for [Graph.Initialize]: Pull looks at the next block of this other input of the task
}

const defaultCapacity = 4

// channel is a channel of a graph.
type channel struct {
	Channel
	g    *Graph
	name string
	kind channelKind
	from *source
	to   *Port

	queue   []item
	stats   ChannelStats
	arrived condition // a block came, or may leave now
}

// item is a block in a channel.
type item struct {
	b    *Block
	open bool // it may leave
}

// hasCapacity reports whether one more block may come.
func (c *channel) hasCapacity() bool { return c.kind == nullChannel || len(c.queue) < c.Capacity }

// ready reports whether a block could be taken.
func (c *channel) ready() bool {
	if c.kind == initialChannel {
		return c.initial()
	}
	return len(c.queue) > 0 && c.queue[0].open
}

// initial reports whether an initialiser's predicate is open for the block that its controller would bring next.
func (c *channel) initial() bool {
	p := c.ControlledBy
	if p == nil {
		return c.Pull.open(0)
	}
	b := p.pinned
	if b == nil {
		b = p.sticking()
		for _, n := range [...]*channel{p.data, p.control} {
			if n != nil && n.kind != initialChannel && n.ready() {
				b = n.queue[0].b
			}
		}
	}
	return b != nil && c.Pull.open(b.Signals())
}

// put adds a block; there is capacity.
func (c *channel) put(i item) {
	c.queue = append(c.queue, i)
	c.stats.Pushed++
	c.stats.Peak = max(c.stats.Peak, len(c.queue))
	c.arrived.broadcast()
	if c.to != nil {
		c.g.update(c.to.task)
	}
}

// pop takes the first block, nil from an initialiser.
func (c *channel) pop() *Block {
	if c.kind == initialChannel {
		return nil
	}
	b := c.queue[0].b
	c.queue[0] = item{}
	c.queue = c.queue[1:]
	c.from.changed.broadcast()
	if c.from.port != nil {
		c.g.update(c.from.port.task)
	}
	return b
}

// empty drops all blocks.
func (c *channel) empty() {
	for _, i := range c.queue {
		c.g.drop(i.b)
	}
	c.queue = nil
}

// admits asks the predicates whether a block gets into the channel, and whether it can leave it.
func (c *channel) admits(b *Block) (in, open bool) {
	switch {
	case c.kind == nullChannel:
		return false, false
	case c.kind == outputChannel && b.err != nil:
		return true, true
	case b.Signals().Has(DevNull) && b.err == nil, !c.Push.passes(b):
		return false, false
	}
	open = c.Pull.passes(b)
	return open || c.Hold, open
}

// writes reports whether the task that takes blocks from the channel writes them.
func (c *channel) writes() bool { return c.to != nil && c.to.written }

// Reconsider asks the predicates again for the blocks that channels hold.
func (g *Graph) Reconsider() {
	if g == nil {
		return
	}
	var held []parcel
	g.lock()
	for _, c := range g.channels {
		for _, i := range c.queue {
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
		for i := range h.c.queue {
			if q := &h.c.queue[i]; q.b == h.b && h.open {
				q.open = true
			}
		}
		g.drop(h.b)
		h.c.arrived.broadcast()
		if h.c.to != nil {
			g.update(h.c.to.task)
		}
	}
	g.schedule()
}

// source is where blocks come from: an output of a task, or an input of the graph. Each block goes to all of its channels.
type source struct {
	port     *Port // nil for an input of the graph
	suppress bool  // [PortConfig.SuppressClones]
	channels []*channel
	changed  condition // a block left one of the channels
}

func (s *source) hasCapacity() bool {
	return !slices.ContainsFunc(s.channels, func(c *channel) bool { return !c.hasCapacity() })
}

// parcel is a block on its way into a channel, if the channel admits it.
type parcel struct {
	c  *channel
	in bool
	item
}

// admit asks the predicates of all channels.
func (s *source) admit(b *Block) []parcel {
	list := make([]parcel, len(s.channels))
	for i, c := range s.channels {
		list[i].c = c
		list[i].in, list[i].open = c.admits(b)
	}
	return list
}

// share gives each channel that admits the block what it gets: readers the block itself, writers clones. If nobody reads it, the
// first writer gets the block itself. The first channel to get the block takes over the caller's reference; given reports
// whether there is one.
func (s *source) share(b *Block, list []parcel) (given bool) {
	reader := slices.ContainsFunc(list, func(p parcel) bool { return p.in && !p.c.writes() })
	if s.suppress {
		b.open.Store(true)
	}
	for i := range list {
		p := &list[i]
		switch {
		case !p.in:
		case !p.c.writes() || s.suppress, !reader && !given:
			if p.b = b; given {
				b.Retain()
			}
			given = true
		default:
			p.b = b.cloneOrError()
		}
	}
	return given
}

// deliver puts what share made into the channels, which have capacity.
func deliver(list []parcel) {
	for _, p := range list {
		if p.in {
			p.c.put(p.item)
		} else {
			p.c.stats.Dropped++
		}
	}
}

// Connect makes a channel from an output to an input. Mistakes are faults of the graph.
func (g *Graph) Connect(from, to *Port, config ...Channel) {
	c := g.channel(plainChannel, from.label()+"-"+to.label(), config)
	if g.leaves(c, from) && g.enters(c, to) {
		g.agree(c, from.tmpl, to.tmpl)
		g.attach(c, &from.out, to)
	}
}

// Discard lets an output's blocks go nowhere.
func (g *Graph) Discard(from *Port) {
	if c := g.channel(nullChannel, from.label()+"-null", nil); g.leaves(c, from) {
		g.attach(c, &from.out, nil)
	}
}

// Initialize gives an input, beside its other channel, new blocks with the template's initial value while the channel's Pull
// predicate is open for the next block of ControlledBy.
func (g *Graph) Initialize(to *Port, config ...Channel) {
	c := g.channel(initialChannel, to.label()+"-init", config)
	if !g.enters(c, to) {
		return
	}
	j := c.ControlledBy
	if c.Pull.asks || j == nil && !c.Pull.open(0) || j != nil && (j == to || j.task != to.task || j.kind != inputPort) {
		g.fault(fail("Initialize", gpu.ErrInvalid, to.name, ": a predicate without signals to look at"))
	}
	g.attach(c, c.from, to)
}

func (g *Graph) channel(kind channelKind, name string, config []Channel) *channel {
	c := &channel{g: g, name: name, kind: kind, from: &source{}}
	if len(config) > 0 {
		c.Channel = config[0]
	}
	if g != nil && (len(config) > 1 || c.Capacity < 0) {
		g.fault(fail("Connect", gpu.ErrInvalid, name, ": two configurations, or a capacity of ", itoa(c.Capacity)))
	}
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	return c
}

// leaves checks the end of a channel where blocks enter it.
func (g *Graph) leaves(c *channel, from *Port) bool { return g.isEnd(c, from, outputPort, "output") }

// enters checks the end of a channel where blocks leave it.
func (g *Graph) enters(c *channel, to *Port) bool { return g.isEnd(c, to, inputPort, "input") }

func (g *Graph) isEnd(c *channel, p *Port, kind portKind, what string) bool {
	if g == nil {
		return false
	}
	if p == nil || p.task == nil || p.task.g != g || p.kind != kind {
		g.fault(fail("Connect", gpu.ErrInvalid, c.name, ": ", p.label(), " is no ", what, " of the graph's tasks"))
		return false
	}
	return true
}

func (g *Graph) agree(c *channel, from, to *Template) {
	if from != nil && to != nil && !from.agrees(to) {
		g.fault(fail("Connect", ErrTemplate, c.name, ": ", from.name, " to ", to.name))
	}
}

// attach adds a channel to a source and, unless it leads out of the graph, to an input that has none of its sort.
func (g *Graph) attach(c *channel, from *source, to *Port) {
	_ = g.change(func() { // the error is a fault already
		if to != nil {
			end := &to.data
			if c.Control {
				end = &to.control
			}
			if *end != nil {
				g.faults = append(g.faults, fail("Connect", ErrBound, to.task.name, ".", to.name, " has a channel already"))
				return
			}
			*end = c
		}
		c.from, c.to = from, to
		from.channels = append(from.channels, c)
		g.channels = append(g.channels, c)
	})
}
