// SPDX-License-Identifier: Apache-2.0

package graph

import "slices"

type channelKind uint8

const (
	internalChannel channelKind = iota
	inputChannel
	outputChannel
	initialChannel // has a new block whenever somebody asks
	nullChannel    // takes everything and keeps nothing
)

var channelKinds = [...]string{"internal", "input", "output", "initializer", "devnull"}

// DefaultCapacity is how many blocks a channel has room for unless [Capacity] says otherwise.
const DefaultCapacity = 4

// Channel is a queue of bounded length between two ports, or between a port and the graph's outside. A task runs only when
// all of its channels have room, so that one that is full stalls those who fill it, and nobody else.
type Channel struct {
	g        *Graph
	name     string
	kind     channelKind
	from     *source
	to       *Port
	capacity int
	enter    Predicate
	leave    Predicate
	hold     bool
	first    bool // before the port's other channel
	judge    *Port

	queue           []item
	head            int
	peak            int
	pushed          uint64
	refused         uint64
	filled, drained bell
}

// item is a block in a channel.
type item struct {
	b    *Block
	open bool
}

// ChannelOption is an option of a channel.
type ChannelOption func(*Channel)

// Capacity sets how many blocks a channel has room for. A task that feeds itself needs room for two: it runs only when there is
// room for what it makes, and what it is going to take is still there then.
func Capacity(n int) ChannelOption { return func(c *Channel) { c.capacity = n } }

// WhenPushed sets the predicate of the end where blocks enter: one that does not pass is released there.
func WhenPushed(p Predicate) ChannelOption { return func(c *Channel) { c.enter = p } }

// WhenPulled sets the predicate of the end where blocks leave: one that does not pass is released, or held; see [Hold].
func WhenPulled(p Predicate) ChannelOption { return func(c *Channel) { c.leave = p } }

// Hold makes blocks that do not pass the end where they leave wait there, and all behind them. [Channel.Reconsider] asks
// the predicate again.
func Hold() ChannelOption { return func(c *Channel) { c.hold = true } }

// AsControl makes a channel the control channel of its port: where both it and the port's other channel have a block, the
// control channel's comes first.
func AsControl() ChannelOption { return func(c *Channel) { c.first = true } }

// ControlledBy makes the predicate of [Graph.Initialize] look at the next block of another input of the same task.
func ControlledBy(p *Port) ChannelOption { return func(c *Channel) { c.judge = p } }

// Name returns the name.
func (c *Channel) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Len returns how many blocks are in the channel.
func (c *Channel) Len() int {
	if c == nil || c.g == nil {
		return 0
	}
	c.g.lock()
	defer c.g.unlock()
	return c.len()
}

func (c *Channel) len() int { return len(c.queue) - c.head }

// room reports whether one more block may come.
func (c *Channel) room() bool { return c.kind == nullChannel || c.len() < c.capacity }

// ready reports whether a block could be taken.
func (c *Channel) ready() bool {
	if c.kind == initialChannel {
		return c.initial()
	}
	return c.len() > 0 && c.queue[c.head].open
}

// initial tells whether an initialiser's predicate is open: for the block that its controller would bring next.
func (c *Channel) initial() bool {
	if c.leave.kind == passAll {
		return true
	}
	p := c.judge
	switch {
	case p == nil:
		return c.leave.open(0)
	case p.pinned != nil:
		return c.leave.open(p.pinned.Signals())
	}
	for _, n := range [...]*Channel{p.control, p.data} {
		if n != nil && n.kind != initialChannel && n.ready() {
			return c.leave.open(n.queue[n.head].b.Signals())
		}
	}
	return p.sticky && p.last != nil && c.leave.open(p.last.Signals())
}

// put adds a block; there is room.
func (c *Channel) put(i item) {
	c.queue = append(c.queue, i)
	c.pushed++
	c.peak = max(c.peak, c.len())
	c.filled.ring()
	if c.to != nil {
		c.g.update(c.to.task)
	}
}

// pop takes the first block, nil from an initialiser.
func (c *Channel) pop() *Block {
	if c.kind == initialChannel {
		return nil
	}
	b := c.queue[c.head].b
	c.queue[c.head] = item{}
	c.head++
	switch {
	case c.head == len(c.queue):
		c.queue, c.head = c.queue[:0], 0
	case c.head > 64 && c.head > len(c.queue)/2: // the room in front of a queue that is never empty
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue, c.head = c.queue[:n], 0
	}
	c.drained.ring()
	if c.from.port != nil {
		c.g.update(c.from.port.task)
	}
	return b
}

// empty drops all blocks.
func (c *Channel) empty() {
	for _, i := range c.queue[c.head:] {
		c.g.drop(i.b)
	}
	c.queue, c.head = nil, 0
}

// admits asks the predicates whether a block gets into the channel, and whether it can leave it.
func (c *Channel) admits(b *Block) (in, open bool) {
	switch {
	case c.kind == nullChannel:
		return false, false
	case c.kind == outputChannel && b.err != nil:
		return true, true
	case b.Signals().Has(DevNull) && b.err == nil, !c.enter.passes(b):
		return false, false
	}
	open = c.leave.passes(b)
	return open || c.hold, open
}

// Reconsider asks the predicate again for blocks that the channel holds.
func (c *Channel) Reconsider() {
	if c == nil || c.g == nil {
		return
	}
	g := c.g
	g.lock()
	var held []*Block
	for _, i := range c.queue[c.head:] {
		if !i.open {
			held = append(held, i.b.Retain())
		}
	}
	g.unlock()
	open := map[*Block]bool{}
	for _, b := range held {
		open[b] = c.leave.passes(b)
	}
	g.lock()
	defer g.unlock()
	for k := range c.queue[c.head:] {
		if i := &c.queue[c.head+k]; open[i.b] {
			i.open = true
		}
	}
	for _, b := range held {
		g.drop(b)
	}
	c.filled.ring()
	if c.to != nil {
		g.update(c.to.task)
	}
	g.schedule()
}

// source is where blocks come from: an output, or an input of the graph's. Each block goes to all of its channels.
type source struct {
	port     *Port // nil for an input of the graph's
	suppress bool
	channels []*Channel
}

func (s *source) room() bool {
	for _, c := range s.channels {
		if !c.room() {
			return false
		}
	}
	return true
}

// parcel is a block on its way into a channel, if that admits it.
type parcel struct {
	c  *Channel
	in bool
	item
}

// admit asks the predicates of all channels.
func (s *source) admit(b *Block) []parcel {
	list := make([]parcel, len(s.channels))
	for i, c := range s.channels {
		in, open := c.admits(b)
		list[i] = parcel{c, in, item{nil, open}}
	}
	return list
}

// share makes of a block what each channel that admits it gets. Readers share it. Writers get clones: all of them if anybody
// reads it, all but one otherwise. The first one to get the block itself gets the caller's hold; if there is none the caller
// keeps it.
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
			p.b = cloneFor(b)
		}
	}
	return given
}

// cloneFor makes a clone, or a block that says why there is none.
func cloneFor(b *Block) *Block {
	c, err := b.clone()
	if err != nil {
		return b.t.failedBlock(err)
	}
	return c
}

// writes reports whether whoever takes blocks from the channel writes them.
func (c *Channel) writes() bool { return c.to != nil && c.to.written }

// deliver puts what share made into the channels. There is room.
func deliver(list []parcel) {
	for _, p := range list {
		if p.in {
			p.c.put(p.item)
		} else {
			p.c.refused++
		}
	}
}
