// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"syscall/js"
	"time"
)

// A program in a page has one thread, which it shares with the page: events, timers and frames get their turn only when no
// goroutine can go on. A graph with much to do would keep them waiting, so it rests now and then until they had it.

// breath is how long the page waits for its turn at most, beside the dispatch that runs just then. A frame takes twice as long.
const breath = 8 * time.Millisecond

var loaded = time.Now()

// turns calls functions when the page has had its turn. There is one thread.
var turns struct {
	port  js.Value // of a channel whose messages take their turn as all events do, and are not delayed as timers are
	after []func()
}

// afterTurn calls f when the page has had its turn.
func afterTurn(f func()) {
	t := &turns
	if t.port.IsUndefined() {
		channel := js.Global().Get("MessageChannel").New()
		channel.Get("port1").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
			after := t.after
			t.after = nil
			for _, f := range after {
				f()
			}
			return nil
		}))
		t.port = channel.Get("port2")
	}
	if t.after = append(t.after, f); len(t.after) == 1 {
		t.port.Call("postMessage", 0)
	}
}

// pageTurn is what a graph knows of the page.
type pageTurn struct {
	asked bool // for a turn that it has not had yet
	at    time.Duration
}

// due reports whether the page must have its turn before the next dispatch. When it had it the graph goes on by itself.
func (p *pageTurn) due(g *Graph) bool {
	now := time.Since(loaded)
	if !p.asked {
		p.asked, p.at = true, now
		afterTurn(func() {
			g.lock()
			p.asked = false
			g.schedule(nil)
			g.unlock()
		})
	}
	return now-p.at > breath
}
