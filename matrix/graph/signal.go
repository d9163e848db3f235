// SPDX-License-Identifier: Apache-2.0

package graph

import "strings"

// Signals travel with blocks. A task's outputs get those of its inputs unless [PortConfig] or [Dispatch.SetSignals] says otherwise.
type Signals uint32

// The signals, with PTask's numbers: begin and end of a stream, begin and end of an iteration, a failure, and a block for nobody.
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

// Has reports whether all of the given signals are set.
func (s Signals) Has(all Signals) bool { return s&all == all }

// String returns PTask's names, joined by |.
func (s Signals) String() string {
	var names []string
	for i, n := range signalNames {
		if s&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if names == nil {
		return "NONE"
	}
	return strings.Join(names, "|")
}

// Predicate tells which blocks pass an end of a channel; see [OpenOn], [CloseOn] and [Ask]. The zero value lets all pass.
//
// A predicate on signals treats a block that stands for an error as one with all signals, so that it leaves loops. At an output
// of the graph such a block always passes.
type Predicate struct {
	opens bool // on the signals; else it closes
	on    Signals
	asks  bool
	ask   func(*Block) bool
}

// OpenOn lets blocks pass that have one of the signals, and no others. OpenOn(0) lets nothing pass, as PTask's DEVNULL.
func OpenOn(s Signals) Predicate { return Predicate{opens: true, on: s} }

// CloseOn lets blocks pass that have none of the signals.
func CloseOn(s Signals) Predicate { return Predicate{on: s} }

// Ask is a predicate of the caller's. The function may look at the block while it runs. It is called when a block enters the
// channel, and by [Graph.Reconsider]. If it panics the block does not pass.
func Ask(passes func(b *Block) bool) Predicate { return Predicate{asks: true, ask: passes} }

func (p Predicate) name() string {
	switch {
	case p.asks:
		return "ASK"
	case p.opens && p.on == 0:
		return "DEVNULL"
	case p.opens:
		return "OPEN_ON_" + p.on.String()
	case p.on == 0:
		return ""
	}
	return "CLOSE_ON_" + p.on.String()
}

func (p Predicate) passes(b *Block) (ok bool) {
	if !p.asks {
		return p.open(b.Signals())
	}
	if p.ask != nil {
		guard(func() { ok = p.ask(b) })
	}
	return ok
}

func (p Predicate) open(s Signals) bool {
	if s.Has(Failed) {
		s = allSignals
	}
	return (s&p.on != 0) == p.opens
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
