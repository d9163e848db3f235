// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"sync"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// outcome is the value of a fulfilled promise, or the reason of a rejected one.
type outcome struct {
	fulfilled bool
	value     js.Value
}

// tickets are what JavaScript can report, by number.
var tickets struct {
	mu      sync.Mutex
	last    int
	pending map[int]func(outcome)
}

// settle is how JavaScript reports: one callback, as long as the program runs, which gets a ticket, whether a promise was fulfilled,
// and the value or the reason. It never blocks, because the event loop, and with it every other promise, would wait for it.
var settle = js.FuncOf(func(_ js.Value, args []js.Value) any {
	var failed error
	defer rescue("browser: callback", &failed) // there is nobody to tell
	o := outcome{fulfilled: args[1].Bool()}
	if len(args) > 2 { // a promise may have no value
		o.value = args[2]
	}
	tickets.mu.Lock()
	then := tickets.pending[args[0].Int()]
	tickets.mu.Unlock()
	if then != nil {
		then(o)
	}
	return nil
})

// expect returns a ticket. Whatever is reported under it until forget, then is called with; it must not block.
func expect(then func(outcome)) (ticket int) {
	tickets.mu.Lock()
	defer tickets.mu.Unlock()
	if tickets.pending == nil {
		tickets.pending = map[int]func(outcome){}
	}
	tickets.last++
	tickets.pending[tickets.last] = then
	return tickets.last
}

// forget makes reports under a ticket go unheard.
func forget(ticket int) {
	tickets.mu.Lock()
	defer tickets.mu.Unlock()
	delete(tickets.pending, ticket)
}

// settler is the callback for one end of a promise.
func settler(ticket int, fulfilled bool) js.Value { return settle.Call("bind", nil, ticket, fulfilled) }

// follow makes a promise settle a ticket.
func follow(promise js.Value, ticket int) {
	promise.Call("then", settler(ticket, true), settler(ticket, false))
}

// await runs start, which makes something settle the ticket that it gets, and blocks the goroutine until then, at the latest until
// closed or the context is done.
func await(ctx context.Context, op string, closed <-chan struct{}, start func(ticket int) error) (js.Value, error) {
	done := make(chan outcome, 1) // the callback need not wait
	ticket := expect(func(o outcome) { done <- o })
	defer forget(ticket)
	if err := start(ticket); err != nil {
		return js.Undefined(), err
	}
	select {
	case o := <-done:
		if !o.fulfilled {
			return js.Undefined(), failure(op, o.value)
		}
		return o.value, nil
	case <-closed:
		return js.Undefined(), fault.Fail(op, fault.ErrClosed)
	case <-ctx.Done():
		return js.Undefined(), fault.Fail(op, ctx.Err())
	}
}

// awaitPromise waits for a promise.
func awaitPromise(ctx context.Context, op string, promise js.Value) (js.Value, error) {
	return await(ctx, op, nil, func(ticket int) error {
		follow(promise, ticket)
		return nil
	})
}
