// SPDX-License-Identifier: Apache-2.0

package software

import "github.com/sublet-gpu/sublet/internal/host"

// turn is closed once the page has had a turn; nil if none was asked for.
var turn chan struct{}

// nextTurn asks for a turn of the page, and returns a channel that is closed after it.
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
