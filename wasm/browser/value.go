// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"runtime"
	"sync"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// value returns a handle as a js.Value of the class.
func value(handle any, class string) (js.Value, bool) {
	v, ok := handle.(js.Value)
	return v, ok && v.Type() == js.TypeObject && host.Tag(v) == class
}

// text returns a property as a string, and "" where it is something else.
func text(v js.Value, property string) string {
	if p := v.Get(property); p.Type() == js.TypeString {
		return p.String()
	}
	return ""
}

// number returns a property that is a count, and 0 where it is none.
func number(v js.Value, property string) uint64 {
	if p := v.Get(property); p.Type() == js.TypeNumber && p.Float() >= 0 {
		return uint64(p.Float())
	}
	return 0
}

// sentinel tells what the name of a JavaScript error means. The helper names its own errors like the sentinels.
func sentinel(name string) error {
	switch name {
	case "ErrDeviceLost", "AbortError": // the latter of mapAsync: nobody but us unmaps or destroys
		return fault.ErrDeviceLost
	case "ErrForeign":
		return fault.ErrForeign
	case "ErrNoMemory", "GPUOutOfMemoryError", "RangeError": // the last of an ArrayBuffer that does not fit
		return fault.ErrNoMemory
	case "GPUPipelineError":
		return fault.ErrCompile
	}
	return fault.ErrInvalid
}

// failure turns a JavaScript error into ours.
func failure(op string, e js.Value) error {
	if e.Type() != js.TypeObject {
		return fault.Fail(op, fault.ErrInvalid, e.String())
	}
	name := text(e, "name")
	if name == "" {
		name = host.Tag(e) // a GPUError has no name
	}
	if text(e, "reason") == "internal" { // of a pipeline that the browser has no means to make, although it is right
		name = "ErrNoMemory"
	}
	return fault.Fail(op, sentinel(name), text(e, "message"))
}

// rescue turns an exception that JavaScript threw into an error. In syscall/js it is a panic, which would end the
// program and take every matrix of the page with it.
func rescue(op string, err *error) {
	switch p := recover().(type) {
	case nil:
	case js.Error:
		*err = failure(op, p.Value)
	case *js.ValueError:
		*err = fault.Fail(op, fault.ErrInvalid, p.Error())
	default:
		panic(p)
	}
}

// outcome is the value of a fulfilled promise, or the reason of a rejected one.
type outcome struct {
	fulfilled bool
	value     js.Value
}

// tickets are what JavaScript can report, by number.
var tickets = struct {
	mu      sync.Mutex
	last    int
	pending map[int]func(outcome)
}{pending: map[int]func(outcome){}}

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

// exportSettled is settle for a fulfilled promise whose value is a number. A call of an export costs a tenth of one of settle. It lets the
// goroutine run that waits; JavaScript has to see to it that goroutines run that are not done then.
//
// It is only for programs none of whose goroutines calls JavaScript that calls resume: within that call the export would go on, and Go
// cannot return from it there.
//
//go:wasmexport sublet_settled
func exportSettled(ticket, value uint32) { //nolint:unused // by JavaScript
	tickets.mu.Lock()
	then := tickets.pending[int(ticket)]
	tickets.mu.Unlock()
	if then != nil {
		then(outcome{true, js.ValueOf(value != 0)})
	}
	runtime.Gosched()
}

// expect returns a ticket. Whatever is reported under it until forget, then is called with; it must not block.
func expect(then func(outcome)) (ticket int) {
	tickets.mu.Lock()
	defer tickets.mu.Unlock()
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
	if err := fault.Ended(ctx, op); err != nil {
		return js.Undefined(), err
	}
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
