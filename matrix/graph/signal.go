// SPDX-License-Identifier: Apache-2.0

package graph

import "strings"

// Signals travel with blocks. A task's outputs get those of its inputs; see [SignalsFrom].
type Signals uint32

// The signals: begin and end of a stream, begin and end of an iteration, a failure, and a block for nobody.
const (
	BOF            Signals = 1 << iota // begin of stream
	EOF                                // end of stream
	BeginIteration                     // begin of iteration
	EndIteration                       // end of iteration
	Failed                             // the block stands for an error: see [Block.Err]
	DevNull                            // no channel takes the block
)

const allSignals = BOF | EOF | BeginIteration | EndIteration | Failed | DevNull

var signalNames = [...]string{"BOF", "EOF", "BEGINITER", "ENDITER", "ERR", "DEVNULL"}

// Has reports whether all of the given signals are set.
func (s Signals) Has(all Signals) bool { return s&all == all }

// String returns the names, joined by |.
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

// Predicate tells which blocks pass an end of a channel. The zero value lets all pass.
//
// A block that stands for an error opens predicates that open on a signal and closes those that close on one, so that it
// leaves loops; at an output of the graph it always passes.
type Predicate struct {
	name string
	kind uint8
	bits Signals
	ask  func(*Block) bool
}

const (
	passAll uint8 = iota
	passWith
	passWithout
	passAsked
	passNone
)

// The predicates.
var (
	Always                = Predicate{}
	OpenOnBOF             = Predicate{"OPEN_ON_BOF", passWith, BOF, nil}
	CloseOnBOF            = Predicate{"CLOSE_ON_BOF", passWithout, BOF, nil}
	OpenOnEOF             = Predicate{"OPEN_ON_EOF", passWith, EOF, nil}
	CloseOnEOF            = Predicate{"CLOSE_ON_EOF", passWithout, EOF, nil}
	OpenOnBeginIteration  = Predicate{"OPEN_ON_BEGINITERATION", passWith, BeginIteration, nil}
	CloseOnBeginIteration = Predicate{"CLOSE_ON_BEGINITERATION", passWithout, BeginIteration, nil}
	OpenOnEndIteration    = Predicate{"OPEN_ON_ENDITERATION", passWith, EndIteration, nil}
	CloseOnEndIteration   = Predicate{"CLOSE_ON_ENDITERATION", passWithout, EndIteration, nil}
	Never                 = Predicate{"DEVNULL", passNone, 0, nil}
)

// Ask is a predicate of the caller's. The function may look at the block while it runs, and is called where a block enters
// the channel, and for blocks that a channel holds at [Channel.Reconsider]. If it panics the block does not pass.
func Ask(passes func(b *Block) bool) Predicate { return Predicate{"ASK", passAsked, 0, passes} }

// String returns the predicate's name in PTask, or "".
func (p Predicate) String() string { return p.name }

func (p Predicate) passes(b *Block) bool {
	if p.kind == passAsked {
		return p.asked(b)
	}
	return p.open(b.Signals())
}

func (p Predicate) open(s Signals) bool {
	if s.Has(Failed) {
		s = allSignals
	}
	switch p.kind {
	case passWith:
		return s.Has(p.bits)
	case passWithout:
		return s&p.bits == 0
	}
	return p.kind == passAll
}

func (p Predicate) asked(b *Block) (ok bool) {
	if p.ask == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return p.ask(b)
}

// bell wakes those who wait for something.
type bell struct{ ch chan struct{} }

func (b *bell) wait() <-chan struct{} {
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
