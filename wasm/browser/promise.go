// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"sync"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// faultTicket is the ticket under which errors arrive that belong to no call.
const faultTicket = 0

// promises follows JavaScript's promises for Go. One callback serves them all: it gets a ticket that tells which promise
// it is about, whether that was fulfilled, and the value or the reason.
//
// The callback never blocks, because the event loop, and with it every other promise, would wait for it.
type promises struct {
	settled js.Func
	fault   func(reason js.Value)
	closing chan struct{} // closed by close, for the goroutines that wait

	mu      sync.Mutex
	pending map[int]func(outcome)
	last    int // ticket
}

// outcome is the value of a fulfilled promise, or the reason of a rejected one.
type outcome struct {
	fulfilled bool
	value     js.Value
}

// newPromises makes a register that passes errors without a call to fault.
func newPromises(fault func(reason js.Value)) *promises {
	p := &promises{fault: fault, closing: make(chan struct{}), pending: map[int]func(outcome){}}
	p.settled = js.FuncOf(p.callback)
	return p
}

func (p *promises) callback(_ js.Value, args []js.Value) any {
	var failed error
	defer rescue("browser: callback", &failed) // there is nobody to tell
	o := outcome{fulfilled: args[1].Bool()}
	if len(args) > 2 { // a promise may have no value
		o.value = args[2]
	}
	ticket := args[0].Int()
	if ticket == faultTicket {
		p.fault(o.value)
		return nil
	}
	p.mu.Lock()
	then := p.pending[ticket]
	p.mu.Unlock()
	if then != nil {
		then(o)
	}
	p.forget(ticket)
	return nil
}

// expect returns a ticket for a promise. When it is settled, then is called; it must not block.
func (p *promises) expect(then func(outcome)) (ticket int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.pending[p.last] = then
	return p.last
}

// follow makes a promise settle a ticket.
func (p *promises) follow(promise js.Value, ticket int) {
	promise.Call("then", p.settled.Call("bind", nil, ticket, true), p.settled.Call("bind", nil, ticket, false))
}

// close calls off all waits.
func (p *promises) close() {
	close(p.closing)
	p.forget(faultTicket)
}

// forget says that a ticket will not be settled any more. The last one frees the callback of a closed register: JavaScript must
// not call a freed one.
func (p *promises) forget(ticket int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, ticket)
	select {
	case <-p.closing:
		if len(p.pending) == 0 {
			p.settled.Release()
		}
	default:
	}
}

// wait is a promise that a goroutine waits for.
type wait struct {
	ticket int
	done   chan outcome // holds one, so that the callback need not wait
}

// wait makes a wait. Somebody has to make a promise settle its ticket.
func (p *promises) wait() *wait {
	w := &wait{done: make(chan outcome, 1)}
	w.ticket = p.expect(func(o outcome) { w.done <- o })
	return w
}

// result waits for a promise.
func (p *promises) result(ctx context.Context, op string, promise js.Value) (js.Value, error) {
	w := p.wait()
	p.follow(promise, w.ticket)
	return p.await(ctx, op, w)
}

// await blocks the goroutine until the promise is settled, the device is closed or the context is done.
func (p *promises) await(ctx context.Context, op string, w *wait) (js.Value, error) {
	select {
	case o := <-w.done:
		if !o.fulfilled {
			return js.Undefined(), failure(op, o.value)
		}
		return o.value, nil
	case <-p.closing:
		return js.Undefined(), fault.Fail(op, fault.ErrClosed)
	case <-ctx.Done():
		return js.Undefined(), fault.Fail(op, ctx.Err())
	}
}
