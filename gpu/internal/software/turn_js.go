// SPDX-License-Identifier: Apache-2.0

package software

import (
	"sync"
	"syscall/js"
)

// turn is closed when the page has a turn, nil if nobody wants to know.
var turn chan struct{}

// nextTurn returns a channel that is closed when the page has run what it had to.
func nextTurn() <-chan struct{} {
	if turn == nil {
		turn = make(chan struct{})
		later().Invoke(turned())
	}
	return turn
}

var turned = sync.OnceValue(func() js.Func {
	return js.FuncOf(func(js.Value, []js.Value) any {
		close(turn)
		turn = nil
		return nil
	})
})

// later is a function of the platform that calls another after what is to be done already. A timer, which every platform has, waits 4 ms.
var later = sync.OnceValue(func() js.Value {
	if f := js.Global().Get("setImmediate"); f.Type() == js.TypeFunction {
		return f
	}
	if s := js.Global().Get("scheduler"); s.Type() == js.TypeObject && s.Get("postTask").Type() == js.TypeFunction {
		return s.Get("postTask").Call("bind", s)
	}
	return js.Global().Get("setTimeout")
})
