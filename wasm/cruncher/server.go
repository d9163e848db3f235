// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"errors"
	"strconv"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/start"
)

var (
	// ErrInternal is a mistake of Sublet's own.
	ErrInternal = fault.New("ErrInternal", "internal error")
	// errAborted is the code of what the page has given up.
	errAborted = fault.New("ErrAborted", "it was aborted")
)

// server is what the page's calls act on. Go has one thread here, and what runs on behalf of a call from JavaScript is not
// interrupted by another, so nothing is locked.
type server struct {
	page  *start.Page
	dev   *gpu.Device // of the Gpu
	ended chan struct{}

	last      int // handle
	crunchers map[int]*crunch
	arrays    map[int]*cruncher.Any
	batches   map[int]*batch

	ctx    context.Context // of all calls
	cancel context.CancelFunc
	calls  map[uint32]context.CancelFunc // by ticket
}

func newServer(page *start.Page, dev *gpu.Device) *server {
	s := &server{
		page: page, dev: dev, ended: make(chan struct{}),
		crunchers: map[int]*crunch{}, arrays: map[int]*cruncher.Any{}, batches: map[int]*batch{},
		calls: map[uint32]context.CancelFunc{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run returns when the page has ended the program. The caller's GPUDevice lives on, without what was made on it.
func (s *server) run() {
	<-s.ended
	s.cancel()
	for _, c := range s.crunchers {
		_ = c.closeDevices()
	}
	_ = s.dev.Close()
}

// end is called by the page once, last.
func (s *server) end(*arguments) any {
	close(s.ended)
	return nil
}

func (s *server) handle() int {
	s.last++
	return s.last
}

// functions are those that JavaScript may call.
func (s *server) functions() map[string]any {
	list := map[string]any{}
	for name, f := range map[string]func(*arguments) any{
		"array": s.array, "get": s.get, "set": s.set, "touch": s.touch,
		"stats": s.stats, "report": s.report, "traffic": s.traffic,
		"reached": s.reached, "remaining": s.remaining, "cancel": s.cancelCall, "end": s.end,
	} {
		list[name] = s.now(f)
	}
	for name, f := range map[string]later{
		"open": s.open, "close": s.close, "closeArray": s.closeArray, "compute": s.compute, "fetch": s.fetch, "evict": s.evict,
		"batch": s.batch, "compute in batch": s.computeInBatch, "end batch": s.endBatch,
	} {
		list[name] = s.later(f)
	}
	return list
}

// now makes a function of JavaScript's that returns a value.
func (s *server) now(f func(*arguments) any) js.Func {
	return js.FuncOf(func(_ js.Value, list []js.Value) (value any) {
		a := &arguments{list: list}
		if err := a.guard(func() { value = f(a) }); err != nil {
			s.fail(0, err)
			return nil
		}
		return value
	})
}

// later is a function that reads its arguments, which it must not do afterwards, and returns one that may wait.
type later func(a *arguments) work

// work is what may wait. Its value is what the page gets.
type work func(ctx context.Context) (any, error)

// later makes a function of JavaScript's that returns at once and reports under the ticket that is its first argument.
func (s *server) later(f later) js.Func {
	return js.FuncOf(func(_ js.Value, list []js.Value) any {
		a := &arguments{list: list}
		ticket := uint32(a.int())
		var run work
		if err := a.guard(func() { run = f(a) }); err != nil {
			s.fail(ticket, err)
			return nil
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.calls[ticket] = cancel
		go func() {
			var value any
			err := guard(func() (err error) { value, err = run(ctx); return err })
			if errors.Is(err, context.Canceled) && ctx.Err() != nil {
				err = fault.Fail("cruncher", errAborted)
			}
			cancel()
			delete(s.calls, ticket)
			s.settle(ticket, value, err)
		}()
		return nil
	})
}

// cancelCall gives up what has a ticket, if that is still under way.
func (s *server) cancelCall(a *arguments) any {
	if cancel := s.calls[uint32(a.int())]; cancel != nil {
		cancel()
	}
	return nil
}

func (s *server) settle(ticket uint32, value any, err error) {
	if err != nil {
		s.fail(ticket, err)
		return
	}
	s.page.Settle(ticket, value)
}

func (s *server) fail(ticket uint32, err error) { s.page.Fail(ticket, gpu.Code(err), err) }

// guard turns a panic into an error: it would end the program and take every cruncher of the page with it.
func guard(run func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = fault.Fail("cruncher", ErrInternal, p.Error())
		case string:
			err = fault.Fail("cruncher", ErrInternal, p)
		default:
			err = fault.Fail("cruncher", ErrInternal, "panic")
		}
	}()
	return run()
}

// arguments are those of a call, which are read one after the other. The first that is not what it should be stays the error.
type arguments struct {
	list []js.Value
	err  error
}

func (a *arguments) guard(run func()) error {
	if err := guard(func() error { run(); return nil }); err != nil {
		return err
	}
	return a.err
}

func (a *arguments) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *arguments) next(t js.Type) (v js.Value, ok bool) {
	if len(a.list) > 0 {
		v, a.list = a.list[0], a.list[1:]
	}
	if ok = v.Type() == t; !ok {
		a.fail(fault.Fail("cruncher", gpu.ErrInvalid, v.Type().String(), " in place of ", t.String()))
	}
	return v, ok
}

// maxInt is JavaScript's largest safe integer.
const maxInt = 1<<53 - 1

func (a *arguments) int() int {
	v, ok := a.next(js.TypeNumber)
	if !ok {
		return 0
	}
	f := v.Float()
	n := int(max(-maxInt, min(f, maxInt)))
	if float64(n) != f {
		a.fail(fault.Fail("cruncher", gpu.ErrInvalid, strconv.FormatFloat(f, 'g', -1, 64), " in place of an integer"))
	}
	return n
}

func (a *arguments) bool() bool {
	v, ok := a.next(js.TypeBoolean)
	return ok && v.Bool()
}

func (a *arguments) text() string {
	v, ok := a.next(js.TypeString)
	if !ok {
		return ""
	}
	return v.String()
}

func (a *arguments) object() js.Value {
	v, _ := a.next(js.TypeObject)
	return v
}

// more returns the elements of an array as further arguments.
func (a *arguments) more() *arguments {
	v, ok := a.next(js.TypeObject)
	if !ok {
		return &arguments{}
	}
	list := make([]js.Value, v.Length())
	for i := range list {
		list[i] = v.Index(i)
	}
	return &arguments{list: list}
}

func (a *arguments) left() bool { return len(a.list) > 0 && a.err == nil }

// named returns what a name stands for.
func named[T any](a *arguments, what string, table map[string]T) T {
	name := a.text()
	v, ok := table[name]
	if !ok {
		a.fail(fault.Fail("cruncher", gpu.ErrInvalid, what, " ", strconv.Quote(name)))
	}
	return v
}

// known returns what a handle stands for.
func known[T any](a *arguments, what string, table map[int]T) T {
	v, ok := table[a.int()]
	if !ok {
		a.fail(fault.Fail("cruncher", gpu.ErrClosed, what))
	}
	return v
}
