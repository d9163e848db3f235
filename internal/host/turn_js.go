// SPDX-License-Identifier: Apache-2.0

package host

import "syscall/js"

// A program in a page has one thread, which it shares with the page: events, timers and frames get their turn only when no goroutine
// can go on. What computes for long rests now and then until they had it.

var (
	after []func() // what to call when the page has had its turn
	post  func()   // asks for it
)

// AfterTurn calls f when the page, or Node, has run what it had to.
func AfterTurn(f func()) {
	if post == nil {
		post = newPost()
	}
	if after = append(after, f); len(after) == 1 {
		post()
	}
}

// newPost returns a function that lets the page have its turn and then calls those that wait for it. A timer would wait for 4 ms.
func newPost() func() {
	had := js.FuncOf(func(js.Value, []js.Value) any {
		list := after
		after = nil
		for _, f := range list {
			f()
		}
		return nil
	})
	if immediate := js.Global().Get("setImmediate"); immediate.Type() == js.TypeFunction { // Node, where messages overtake timers
		return func() { immediate.Invoke(had) }
	}
	channel := js.Global().Get("MessageChannel").New()
	channel.Get("port1").Set("onmessage", had)
	port := channel.Get("port2")
	return func() { port.Call("postMessage", 0) }
}
