// SPDX-License-Identifier: Apache-2.0

package graph

import "strings"

// Signals travel with blocks. A task's outputs get those of its inputs unless [PortConfig] or [Dispatch.SetSignals] says otherwise.
type Signals uint32

// The signals, with PTask's numbers: begin and end of a stream, begin and end of an iteration, a failure, and a block to be dropped.
const (
	BOF            Signals = 1 << iota // begin of stream
	EOF                                // end of stream
	BeginIteration                     // begin of iteration
	EndIteration                       // end of iteration
	Failed                             // the block stands for an error: see [Block.Err]
	DevNull                            // no channel takes the block
)

const allSignals = BOF | EOF | BeginIteration | EndIteration | Failed | DevNull

var signalNames = [...]string{"BOF", "EOF", "BEGINITERATION", "ENDITERATION", "ERR", "DEVNULL"}

// settable reports whether a program may give blocks these signals.
func (s Signals) settable() bool { return s&^(allSignals&^Failed) == 0 }

// meets reports whether one of some signals is set. A block that carries an error counts as one with all of them.
func (s Signals) meets(some Signals) bool {
	if s&Failed != 0 {
		s = allSignals
	}
	return s&some != 0
}

// name returns PTask's names, joined by |.
func (s Signals) name() string {
	var names []string
	for i, n := range signalNames {
		if s&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}

// Predicate says which blocks pass an end of a channel: those that no field refuses. The zero value lets all pass.
//
// A predicate on signals treats a block that carries an error as one with all signals, so that it leaves loops. Such a block always
// passes an output of the graph.
type Predicate struct {
	OpenOn  Signals // blocks that have none of these do not pass; with [DevNull] only errors pass
	CloseOn Signals // blocks that have one of these do not pass

	// Ask may look at the block while it runs. It is called when a block enters the channel, and by [Graph.Reconsider]. If it
	// panics the block does not pass.
	Ask func(b *Block) bool
}

func (p Predicate) name() string {
	var names []string
	if p.OpenOn != 0 {
		names = append(names, "OPEN_ON_"+p.OpenOn.name())
	}
	if p.CloseOn != 0 {
		names = append(names, "CLOSE_ON_"+p.CloseOn.name())
	}
	if p.Ask != nil {
		names = append(names, "ASK")
	}
	return strings.Join(names, " ")
}

func (p Predicate) passes(b *Block) bool {
	s := b.Signals()
	ok := (p.OpenOn == 0 || s.meets(p.OpenOn)) && !s.meets(p.CloseOn)
	if ok && p.Ask != nil {
		guard(func() {
			ok = false
			ok = p.Ask(b)
		})
	}
	return ok
}

// condition wakes goroutines that wait for a change. The graph's lock guards it.
type condition struct{ ch chan struct{} }

func (c *condition) wait() <-chan struct{} {
	if c.ch == nil {
		c.ch = make(chan struct{})
	}
	return c.ch
}

func (c *condition) broadcast() {
	if c.ch != nil {
		close(c.ch)
		c.ch = nil
	}
}
