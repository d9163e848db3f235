// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"time"

	"github.com/sublet-gpu/sublet/internal/host"
)

// A graph with much to do rests now and then until the page has had its turn.

// breath is how long the page waits for its turn at most, beside the dispatch that runs just then. A frame takes twice as long.
const breath = 8 * time.Millisecond

var loaded = time.Now()

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
		host.AfterTurn(func() {
			g.lock()
			p.asked = false
			g.schedule(nil)
			g.unlock()
		})
	}
	return now-p.at > breath
}
