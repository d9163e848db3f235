// SPDX-License-Identifier: Apache-2.0

package host

import "syscall/js"

// A program in a page shares its one thread with the page: events, timers and frames of the page get a turn only when no goroutine can
// run. Code that computes for long therefore waits for a turn of the page now and then.

var (
	after []func() // functions to call once the page has had a turn
	post  func()   // asks for a turn, and calls them then; nil before the first call of AfterTurn
)

// AfterTurn returns at once, and has f called after a turn of the page's event loop, or of Node's. f runs in a callback of JavaScript's: it
// must not block.
func AfterTurn(f func()) {
	if post == nil {
		post = newPost()
	}
	if after = append(after, f); len(after) == 1 {
		post()
	}
}

// newPost returns a function that has the functions of after called after a turn of the event loop. It uses messages, as timers wait for
// 4 ms: https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#timers
func newPost() func() {
	had := js.FuncOf(func(js.Value, []js.Value) any {
		list := after
		after = nil
		for _, f := range list {
			f()
		}
		return nil
	})
	if immediate := js.Global().Get("setImmediate"); immediate.Type() == js.TypeFunction { // Node, where messages would be delivered before timers that are due
		return func() { immediate.Invoke(had) }
	}
	channel := js.Global().Get("MessageChannel").New()
	channel.Get("port1").Set("onmessage", had)
	port := channel.Get("port2")
	return func() { port.Call("postMessage", 0) }
}
