// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/internal/host"
)

// Timers run while something asks for turns without end.
func TestAfterTurn(t *testing.T) {
	done := make(chan struct{})
	timer := js.FuncOf(func(js.Value, []js.Value) any {
		close(done)
		return nil
	})
	defer timer.Release()
	js.Global().Call("setTimeout", timer, 5)
	turns, ended := 0, make(chan struct{})
	var again func()
	again = func() {
		select {
		case <-done:
			close(ended)
		default:
			if turns++; turns == 1_000_000 {
				t.Error("the timer has not run in a million turns")
				close(ended)
				return
			}
			host.AfterTurn(again)
		}
	}
	host.AfterTurn(again)
	<-ended
}
