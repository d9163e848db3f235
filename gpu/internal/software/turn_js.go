// SPDX-License-Identifier: Apache-2.0

package software

import "github.com/sublet-gpu/sublet/internal/host"

// turn is closed when the page has a turn, nil if nobody wants to know.
var turn chan struct{}

// nextTurn returns a channel that is closed when the page has run what it had to.
func nextTurn() <-chan struct{} {
	if turn == nil {
		turn = make(chan struct{})
		host.AfterTurn(func() {
			close(turn)
			turn = nil
		})
	}
	return turn
}
